"""Fixtures of the tests of the embedded cluster: programs, other users, a look at its remains."""

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from generic.library.programs.processes import Processes, ProcessGroup
from generic.testing.envtest import find_binaries

UNPRIVILEGED = 65534


@pytest.fixture(scope="session")
def assets() -> Iterator[Path]:
    """A folder in envtest's manner with the real programs, which every user can run."""
    folder = Path(tempfile.mkdtemp(prefix="actuator-test-assets-"))
    folder.chmod(0o755)
    for program in find_binaries(print).values():
        try:
            os.link(program, folder / program.name)
        except OSError:  # another file system
            shutil.copy2(program, folder / program.name)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def using_assets(assets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make this test and its processes use the programs and a cache of their own."""
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(assets))
    monkeypatch.setenv("ACTUATOR_CACHE", str(tmp_path / "cache"))
    return assets


@pytest.fixture
def wait_until() -> Callable[[Callable[[], bool], float], None]:
    """Wait for something to become true, for so many seconds at most."""

    def wait(condition: Callable[[], bool], seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"not so within {seconds} s"
            time.sleep(0.02)

    return wait


@pytest.fixture
def group() -> Iterator[ProcessGroup]:
    """A process group with an empty directory, both ended with the test."""
    made = ProcessGroup(Path(tempfile.mkdtemp(prefix="actuator-test-")))
    yield made
    made.close()


@pytest.fixture
def named() -> Iterator[Processes]:
    """Named processes in an empty directory, ended with the test."""
    made = Processes(Path(tempfile.mkdtemp(prefix="actuator-test-")))
    yield made
    made.close()


@pytest.fixture
def as_ordinary_user() -> list[str]:
    """The start of a command that runs the rest as an ordinary user.

    For root that is `nobody` with root's read access: the interpreter is often below root's
    home. It writes and owns as `nobody`.
    """
    if os.getuid() != 0:
        return []
    identity = [f"--reuid={UNPRIVILEGED}", f"--regid={UNPRIVILEGED}", "--clear-groups"]
    reading = ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]
    return ["setpriv", *identity, *reading, "--"]


@pytest.fixture
def python() -> list[str]:
    """The start of a command that runs Python code: `[*python, code]`."""
    return [sys.executable, "-c"]
