"""The fixtures, as an extension's author gets them: in a pytest run of its own."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

TESTS = """
import os, signal, time
from pathlib import Path
import pytest

@pytest.mark.parametrize("number", range(6))
def test_uses_the_cluster(environment, kubeconfig, namespace, number, record):
    assert environment.request("GET", f"/api/v1/namespaces/{namespace}")
    assert kubeconfig == environment.kubeconfig
    record(environment.directory)
    record(namespace)
"""

CONFTEST = """
import os
from pathlib import Path
import pytest

pytest_plugins = ["generic.testing.envtest.pytest_plugin"]

@pytest.fixture
def record():
    def write(value):
        with open(os.environ["RECORD"], "a") as file:
            file.write(f"{value}\\n")
    return write
"""

NOT_ASKED_FOR = """
def test_uses_a_fixture(environment):
    pass
"""

CRASH = """
def test_crashes(environment):
    os.kill(os.getpid(), signal.SIGKILL)
"""

HANG = """
@pytest.mark.parametrize("number", range(2))
def test_hangs(environment, record, number):
    record(environment.directory)
    time.sleep(60)
"""

UNUSED = """
import sys

def test_nothing_is_imported():
    assert not [name for name in sys.modules if name.startswith("generic.testing.envtest.")
                and name != "generic.testing.envtest.pytest_plugin"]
"""


class Run:
    """A pytest run of its own, on tests that write down their observations."""

    def __init__(self, folder: Path, tests: str, *arguments: str, conftest: str = CONFTEST) -> None:
        self.record = folder / "record"
        (folder / "conftest.py").write_text(conftest)
        (folder / "test_it.py").write_text(tests)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
        self.process = subprocess.Popen(
            [*command, str(folder)],
            cwd=folder,
            env=os.environ | {"RECORD": str(self.record)},
            stdout=subprocess.PIPE,
            text=True,
        )

    def output(self) -> str:
        """Wait for the end."""
        return self.process.communicate(timeout=400)[0]

    @property
    def recorded(self) -> list[str]:
        """The lines that tests wrote so far."""
        return self.record.read_text().splitlines() if self.record.exists() else []

    @property
    def directories(self) -> set[str]:
        """The directories of the environments that tests saw."""
        return {line for line in self.recorded if line.startswith("/")}


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide from the inner run that it is inside another one."""
    for name in [name for name in os.environ if name.startswith(("PYTEST", "COV_"))]:
        monkeypatch.delenv(name)


@pytest.mark.usefixtures("using_assets", "alone")
def test_one_cluster_for_the_session_and_one_namespace_for_each_test(
    tmp_path: Path, processes_of: Callable[[Path], list[int]]
) -> None:
    run = Run(tmp_path, TESTS, "-p", "no:xdist")
    assert "6 passed" in run.output()
    assert len(run.directories) == 1
    assert len(set(run.recorded)) == 1 + 6
    (directory,) = map(Path, run.directories)
    assert not directory.exists()
    assert not processes_of(directory)


@pytest.mark.usefixtures("using_assets", "alone")
def test_workers_share_one_cluster_although_one_of_them_crashes(
    tmp_path: Path, processes_of: Callable[[Path], list[int]]
) -> None:
    run = Run(tmp_path, TESTS + CRASH, "-n", "2")
    assert "1 failed, 6 passed" in run.output()
    (directory,) = map(Path, run.directories)
    assert not directory.exists()
    assert not processes_of(directory)


@pytest.mark.usefixtures("using_assets", "alone")
def test_a_killed_session_leaves_no_cluster(
    tmp_path: Path,
    processes_of: Callable[[Path], list[int]],
    wait_until: Callable[[Callable[[], bool], float], None],
) -> None:
    run = Run(tmp_path, TESTS + HANG, "-n", "2", "-k", "hangs")
    wait_until(lambda: len(run.recorded) == 2, 100)
    (directory,) = map(Path, run.directories)
    run.process.send_signal(signal.SIGKILL)
    run.process.communicate(timeout=400)
    wait_until(lambda: not directory.exists() and not processes_of(directory), 60)


@pytest.mark.usefixtures("alone")
def test_a_project_that_does_not_ask_for_the_fixtures_has_none(tmp_path: Path) -> None:
    output = Run(tmp_path, NOT_ASKED_FOR, "-p", "no:xdist", conftest="").output()
    assert "fixture 'environment' not found" in output


@pytest.mark.usefixtures("alone")
def test_a_run_that_does_not_use_it_pays_nothing(tmp_path: Path) -> None:
    assert "1 passed" in Run(tmp_path, UNUSED, "-p", "no:xdist").output()


@pytest.mark.usefixtures("alone")
def test_a_cluster_that_cannot_start_is_one_clear_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", "/nowhere")
    output = Run(tmp_path, TESTS, "-p", "no:xdist").output()
    assert "KUBEBUILDER_ASSETS=/nowhere: there is no such folder" in output
    assert "Traceback" not in output
