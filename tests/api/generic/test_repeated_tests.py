"""CI repeats the few tests that failed in the whole run, alone: `hack/repeat.py`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hack.repeat import MAX_REPEATED, refusal

ROOT = Path(__file__).parents[3]
ALONE = "import os\ndef test_alone():\n    assert 'PYTEST_XDIST_WORKER' not in os.environ\n"
NEVER = "def test_never():\n    assert False\n"


@pytest.mark.parametrize(
    ("failed", "reason"),
    [
        (["tests/api/a.py::test_a"], ""),
        ([f"tests/e2e/a.py::test_{n}" for n in range(MAX_REPEATED)], ""),
        ([f"tests/e2e/a.py::test_{n}" for n in range(MAX_REPEATED + 1)], "4 tests failed"),
        (["tests/api/a.py::test_a", "tests/unit/b.py::test_b"], "tests/unit/b.py::test_b needs"),
        (["tests/api/a.py"], "tests/api/a.py cannot be imported"),
        ([], "no test did"),
    ],
)
def test_few_tests_with_servers_are_repeated(failed, reason):
    assert refusal(failed).startswith(reason) if failed else reason in refusal(failed)
    assert bool(refusal(failed)) == bool(reason)


@pytest.mark.parametrize(("more", "status"), [("", 0), (NEVER, 1)], ids=["passes", "fails alone"])
def test_a_test_that_fails_beside_others_is_named_and_decided_alone(tmp_path, more, status):
    tests = tmp_path / "tests" / "api"
    tests.mkdir(parents=True)
    (tests / "test_some.py").write_text(ALONE + more)
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    environment.pop("PYTEST_XDIST_WORKER", None)

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", *arguments]
        return subprocess.run(
            command, check=False, cwd=tmp_path, env=environment, capture_output=True, text=True
        )

    assert run("pytest", "-n", "1").returncode == 1
    repeated = run("hack.repeat")
    assert repeated.returncode == status, repeated.stdout + repeated.stderr
    assert "tests/api/test_some.py::test_alone" in repeated.stdout
