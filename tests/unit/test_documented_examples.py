"""Each Python example of README, docs and samples passes mypy, with the settings of the project.

An example may use names that an earlier one of its page defines, and those of ASSUMED.
"""

from __future__ import annotations

import ast
import builtins
import pkgutil
import re
from pathlib import Path

from mypy import api

from tests.support.pages.documented import ROOT
from tests.support.suite.isolation import isolated

EXAMPLE = re.compile(r"^(?:Create `(\S+)`:\n\n)?```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
WORKERS = "docs/extensions.md"
NAMES_OF_AUTHORS = {"generic.mine", "generic.py"}
PAGES = ("*.md", "docs/**/*.md", "extensions/*/README.md")
ASSUMED = """
from typing import Any, ClassVar

from actuator import Actuator
from actuator.meta import ConditionedStatus, Kind, Object, own_kind
from generic import Manager

manager = Manager()
MyCloud = Any
MyFirewall = Any


class Team(Object):
    KIND: ClassVar[Kind] = own_kind("Team", "acme.example.org")
    status: ConditionedStatus


class Teams(Actuator[Team]):
    def reconcile(self, *_: Any) -> None: ...
    def delete(self, *_: Any) -> None: ...
"""
"""The parts that the pages leave to the reader."""


def bound(tree):
    """The names that an example binds at its top level."""
    for node in tree.body:
        match node:
            case ast.ImportFrom() | ast.Import():
                yield from (alias.asname or alias.name for alias in node.names)
            case ast.ClassDef() | ast.FunctionDef():
                yield node.name
            case ast.Assign():
                yield from (target.id for target in node.targets if isinstance(target, ast.Name))


def missing(tree):
    """The names that an example reads, and does not bind anywhere."""
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    inside = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    inside |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    return {node.id for node in names} - inside - {*bound(tree)} - {*dir(builtins)}


def write_examples(folder):
    """Write the examples of all pages as modules; return the page and line of each."""
    names = sorted(bound(ast.parse(ASSUMED)))
    (folder / "assumed.py").write_text(f"{ASSUMED}\n__all__ = {names}\n")
    found = {}
    for page in sorted({page for pattern in PAGES for page in ROOT.glob(pattern)}):
        known = dict.fromkeys(names, "assumed")
        text = page.read_text()
        for match in EXAMPLE.finditer(text):
            tree = ast.parse(match[2])
            line = text[: match.start(2)].count("\n")
            name = match[1] or f"{page.parent.name}_{page.stem}_{line}.py".replace("-", "_")
            defined = sorted(bound(tree))
            given = [
                f"from {known[item]} import {item}; " for item in missing(tree) if item in known
            ]
            head = f"__all__ = {defined}; {''.join(sorted(given))}"  # on the first line
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(head + match[2])
            known |= dict.fromkeys(defined, name.removesuffix(".py").replace("/", "."))
            found[name] = f"{page.relative_to(ROOT)}:{line}"
    return found


def test_each_example_passes_the_strict_type_checker(tmp_path, monkeypatch):
    examples = write_examples(tmp_path)
    assert len(examples) > 30
    monkeypatch.chdir(ROOT)  # for the configuration, and a warm cache
    monkeypatch.setenv("MYPYPATH", str(tmp_path))
    with isolated():  # from mypy, which raises the recursion limit
        paths = map(str, tmp_path.glob("**/*.py"))
        out, err, _ = api.run(["--no-error-summary", "--hide-error-context", *paths])
    assert err == ""
    errors = [line for line in out.splitlines() if ": error: " in line]

    def place(line):
        return str(Path(line.partition(":")[0]).resolve().relative_to(tmp_path))

    assert [f"{examples[place(line)]}: {line}" for line in errors] == []


def test_a_name_that_no_example_defines_is_found(tmp_path):
    assert missing(ast.parse("def a(b: C) -> D:\n    return [e for e in f(b)]\nimport g\ng.h")) == {
        "C",
        "D",
        "f",
    }


def texts():
    """Each page and its text, without the changelog, which tells of earlier versions."""
    pages = sorted({page for pattern in PAGES for page in ROOT.glob(pattern)})
    return [
        (page.relative_to(ROOT).as_posix(), page.read_text())
        for page in pages
        if "CHANGE" not in page.name
    ]


def test_each_module_class_and_function_that_a_page_names_exists():
    named = [
        (page, name)
        for page, text in texts()
        for name in re.findall(r"`((?:actuator|generic|extensions)(?:\.\w+)+)[`(]", text)
    ]
    assert len(named) > 30
    assert [
        (page, name) for page, name in named if not exists(name) and name not in NAMES_OF_AUTHORS
    ] == []


def exists(name):
    try:
        pkgutil.resolve_name(name)
    except (ImportError, AttributeError):
        return False
    return True


def test_the_page_of_workers_names_the_function_that_returns_the_sidecar():
    [section] = re.findall(
        r"^- \*\*machine-controller-manager\.(.*?)^- ",
        dict(texts())[WORKERS],
        re.DOTALL | re.MULTILINE,
    )
    assert "`machine_sidecar`" in section
    assert [page for page, text in texts() if re.search(r"framework\s+has\s+none", text)] == []


def test_a_class_takes_each_sequence_of_the_declared_entries():
    """mypy reads no type of the entries from a converter without it (`tuple`, `frozenset`)."""
    files = [path for folder in ("actuator", "generic") for path in ROOT.glob(f"{folder}/**/*.py")]
    converters = [
        (path.relative_to(ROOT).as_posix(), word.value.id)
        for path in files
        for word in ast.walk(ast.parse(path.read_text()))
        if isinstance(word, ast.keyword) and word.arg == "converter" and hasattr(word.value, "id")
    ]
    assert converters, "none is found"
    containers = {"tuple", "frozenset", "list", "set", "dict"}
    assert [place for place, name in converters if name in containers] == []
