"""Tests and their commands find this process as it was: modules, finders, paths, settings."""

from __future__ import annotations

import ast
import gc
import importlib
import logging
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.support.pages.commands import run_command
from tests.support.suite.isolation import _STATE, isolated, unchanged

HERE = Path(__file__).parents[1]
KIND = '''
import attrs
from actuator.meta import Kind, Object

@attrs.define
class {name}Spec:
    size: int = 0
    """The size of {name}."""

@attrs.define(kw_only=True)
class {name}(Object):
    KIND = Kind(name="{name}", group="example.org")
    spec: {name}Spec
'''


def write(folder: Path, name: str, module: str = "alike") -> None:
    """Write a module with a kind of that name."""
    folder.mkdir(exist_ok=True)
    (folder / f"{module}.py").write_text(KIND.format(name=name))


def test_a_command_finds_its_own_module_after_each_kind_of_test(tmp_path, monkeypatch):
    """After a fixture that loaded a package of the same name, and after another command."""
    with isolated():
        (tmp_path / "other" / "alike").mkdir(parents=True)
        (tmp_path / "other" / "alike" / "__init__.py").write_text("")
        with monkeypatch.context() as patched:
            patched.syspath_prepend(tmp_path / "other")
            importlib.import_module("alike")
        for name in ("First", "Second"):
            write(tmp_path / name, name)
            monkeypatch.chdir(tmp_path / name)
            assert f"{name.lower()}s.example.org" in run_command("crds", f"alike:{name}").stdout
            run_command("crds", "alike:Third", status=1)


def test_a_module_of_the_same_name_has_its_own_descriptions(tmp_path, monkeypatch):
    for folder, text in (("a", "The size."), ("b", "The number.")):
        write(tmp_path / folder, "Same")
        file = tmp_path / folder / "alike.py"
        file.write_text(file.read_text().replace("The size of Same.", text))
        monkeypatch.chdir(tmp_path / folder)
        assert f"description: {text}" in run_command("crds", "alike:Same").stdout


def test_a_module_that_is_written_right_after_a_listing_is_found(tmp_path, monkeypatch):
    """In the same tick of the file system, in which the folder's time does not change."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "First", module="first")
    run_command("crds", "first:First")
    monkeypatch.syspath_prepend(tmp_path)
    times = tmp_path.stat()
    assert importlib.util.find_spec("second") is None  # it lists the folder
    write(tmp_path, "Second", module="second")
    os.utime(tmp_path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert importlib.util.find_spec("second") is None
    run_command("crds", "second:Second")


def test_a_command_with_another_status_fails_with_its_output():
    with pytest.raises(AssertionError, match=r"status 1, not 0\nError: nowhere:x: module 'nowh"):
        run_command("crds", "nowhere:x")
    with pytest.raises(AssertionError, match="status 0, not 1"):
        run_command("crds", status=1)


def leave_module(folder: Path) -> None:
    sys.modules["left"] = ModuleType("left")
    sys.modules["left"].__file__ = str(folder / "left.py")


def leave_folder(folder: Path) -> None:
    (folder / "package" / "part").mkdir(parents=True)
    sys.path.insert(0, str(folder))
    importlib.import_module("package.part")
    sys.path.remove(str(folder))


def test_a_part_of_a_package_that_is_hidden_hinders_no_command(tmp_path):
    """As where a test hides an installed package: the path of the part cannot be read."""
    with isolated():
        leave_folder(tmp_path)
        sys.modules["package"] = HIDDEN
        run_command("crds")


HIDDEN: Any = None
"""In place of a module: its import fails."""
HOOK: Any = object()
PLANTED = {
    "sys.path": lambda folder: sys.path.append(str(folder)),
    "sys.meta_path": lambda _: sys.meta_path.insert(0, HOOK),
    "sys.path_hooks": lambda _: sys.path_hooks.append(HOOK),
    "sys.argv": lambda _: sys.argv.append("x"),
    "sys.dont_write_bytecode": lambda _: setattr(
        sys, "dont_write_bytecode", not sys.dont_write_bytecode
    ),
    "the recursion limit": lambda _: sys.setrecursionlimit(sys.getrecursionlimit() + 1),
    "the working directory": os.chdir,
    "os.environ": lambda _: os.environ.update(LEFT_BY_A_TEST="hunter2"),
    "the handlers of the root logger": lambda _: logging.getLogger().addHandler(
        logging.NullHandler()
    ),
    "the level of the root logger": lambda _: logging.getLogger().setLevel(logging.DEBUG + 1),
    "the signal handlers": lambda _: signal.signal(signal.SIGINT, lambda *_args: None),
    "the garbage collector": lambda _: gc.set_threshold(7),
    "sys.modules: left is left": leave_module,
    "sys.modules: package.part is left": leave_folder,
    "sys.modules: hidden is left": lambda _: sys.modules.update(hidden=HIDDEN),
    "sys.modules: json is another one": lambda _: sys.modules.update(json=ModuleType("json")),
    "sys.modules: ast is another one, or missing": lambda _: sys.modules.pop("ast"),
}


@pytest.mark.parametrize("what", PLANTED)
def test_state_that_a_test_leaves_is_found_and_restored(what, tmp_path):
    with pytest.raises(AssertionError) as failed, unchanged():
        PLANTED[what](tmp_path)
    assert f"\n{what}" in str(failed.value)
    assert "hunter2" not in str(failed.value)
    with unchanged():
        pass
    assert not {"left", "package", "package.part", "hidden"} & sys.modules.keys()


def test_each_part_of_the_state_has_a_planted_change():
    assert _STATE.keys() <= PLANTED.keys()


def test_every_test_is_checked(request):
    names = {"process_of_a_test_is_unchanged", "process_of_a_module_is_unchanged"}
    assert names <= set(request.fixturenames)


def commands_of(tree: ast.AST) -> Iterator[int]:
    """The lines that run a command, or import code that can run one, in this process."""
    for node in ast.walk(tree):
        match node:
            case (
                ast.ImportFrom(module="click.testing")
                | ast.Import(names=[ast.alias(name="click.testing" | "generic.tools.cli.main")])
            ):
                yield node.lineno
            case ast.ImportFrom(module="generic.tools.cli.main", names=names):
                if any(name.name != "cli" for name in names):
                    yield node.lineno
            case ast.Call(func=ast.Attribute(attr="main" | "invoke")):
                yield node.lineno


def test_commands_run_isolated_and_their_status_is_checked():
    """By `commands.run_command` alone; a program of its own needs neither."""
    found = [
        f"{path.relative_to(HERE)}:{line}"
        for path in HERE.rglob("*.py")
        if path != HERE / "support" / "pages" / "commands.py"
        for line in commands_of(ast.parse(path.read_text()))
    ]
    assert found == []


@pytest.mark.parametrize(
    "text",
    [
        "from generic.tools.cli.main import main",
        "from generic.tools.cli.main import cli, main as actuator",
        "import generic.tools.cli.main",
        "from click.testing import CliRunner",
        "import click.testing",
        "chart.main(['x'], standalone_mode=False)",
        "context.invoke(chart)",
    ],
)
def test_a_command_that_runs_otherwise_is_found(text):
    assert list(commands_of(ast.parse(text))) == [1]
