"""`actuator new`: docs/new-project.md works in its order, and so do the tests of other projects."""

import inspect
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[3] / "docs" / "new-project.md").read_text()
CACHE = Path(__file__).parents[3] / ".mypy_cache" / "projects"
BLOCKS = re.findall(r"^```sh\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


def test_every_command_of_the_page_works(tmp_path, monkeypatch, command):
    """All but the installation of the project, which the tests of the wheel execute."""
    first, *others = [shlex.split(line) for line in "".join(BLOCKS).splitlines()]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MYPY_CACHE_DIR", str(CACHE))
    done = command(*first[1:])
    assert done.returncode == 0, done.stderr
    for tool in others:
        done = subprocess.run(
            [sys.executable, "-m", *tool], cwd="acme", capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{tool}\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("multi-cloud", ("--kind", "ControlPlane", "--kind", "Worker")),
        ("peers", ("--own-kind", "Peering")),
    ],
)
def test_the_tests_of_a_project_pass(tmp_path, monkeypatch, command, name, kinds):
    monkeypatch.chdir(tmp_path)
    assert command("new", name, *kinds).returncode == 0
    monkeypatch.syspath_prepend(tmp_path / name)
    (path,) = (tmp_path / name / "tests").glob("test_*.py")
    tests = {key: one for key, one in runpy.run_path(path).items() if key.startswith("test_")}
    assert len(tests) == 1 + len(kinds) // 2
    for key, test in tests.items():
        folder = tmp_path / key
        folder.mkdir()
        test(*[folder] * len(inspect.signature(test).parameters))
