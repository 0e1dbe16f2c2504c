"""`actuator new`: the commands of docs/new-project.md work in their order.

`tests/unit/generic/test_new.py` runs mypy and pyright, on a similar project.
"""

import inspect
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

from isolation import isolated

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
        name: one for name, one in runpy.run_path("tests/test_acme.py").items() if callable(one)
    }
    tests = {name: test for name, test in tests.items() if name.startswith("test_")}
    assert len(tests) == 5
    for name, test in tests.items():
        own = folder / name
        own.mkdir()
        test(*[own] * len(inspect.signature(test).parameters))
