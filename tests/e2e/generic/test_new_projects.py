"""`actuator new`: the commands of docs/new-project.md work in their order, and drills of variants.

`tests/unit/generic/test_new_variants.py` runs the checks and the unit tests of each variant.
"""

import inspect
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.suite.isolation import isolated

PAGE = (Path(__file__).parents[3] / "docs" / "new-project.md").read_text()
BLOCKS = re.findall(r"^```sh\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
MORE_KINDS = ("--kind", "ControlPlane", "--kind", "Worker", "--own-kind", "Peering", "--webhooks")


def test_every_command_of_the_page_works(tmp_path, monkeypatch, command):
    """All but the installation of the project, which the tests of the wheel execute."""
    first, tests, *others = [shlex.split(line) for line in "".join(BLOCKS).splitlines()]
    monkeypatch.chdir(tmp_path)
    command(*first[1:], *MORE_KINDS)
    monkeypatch.chdir("acme")
    assert tests == ["pytest"]
    with isolated():
        monkeypatch.syspath_prepend(Path.cwd())
        run_tests(tmp_path)
    assert others == [["ruff", "check"], ["mypy"], ["pyright"]]
    done = subprocess.run([sys.executable, "-m", *others[0]], capture_output=True, check=False)
    assert done.returncode == 0, done.stdout


def run_tests(folder):
    """Run the tests of the project in this process, with its cluster."""
    tests = {
        name: item for name, item in runpy.run_path("tests/test_acme.py").items() if callable(item)
    }
    tests = {name: test for name, test in tests.items() if name.startswith("test_")}
    assert len(tests) == 6
    for name, test in tests.items():
        own = folder / name
        own.mkdir()
        test(*[own] * len(inspect.signature(test).parameters))


VARIANTS = {
    "worker": ("--kind", "Worker"),
    "control-plane": ("--kind", "ControlPlane"),
    "backup-entry": ("--kind", "BackupEntry"),
    "in-shoot": ("--in-shoot", "--admission"),
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_drill_of_each_variant_is_green_untouched(tmp_path, monkeypatch, command, variant):
    """Their unit tests, lint and types are checked without a cluster."""
    project = tmp_path / "acme"
    command("new", "acme", *VARIANTS[variant], "--output", project)
    with isolated():
        monkeypatch.syspath_prepend(project)
        tests = runpy.run_path(str(project / "tests/test_acme.py"))
        [drill] = [test for name, test in tests.items() if name.startswith("test_a_force_deletion")]
        drill()
