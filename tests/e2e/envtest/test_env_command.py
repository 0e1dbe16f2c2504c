"""`actuator env`: an environment that outlives the command that started it."""

import os
import signal
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from generic.library.programs.daemons import DaemonFiles
from generic.testing.envtest import detached
from tests.support.pages.commands import run_command

pytestmark = pytest.mark.usefixtures("using_assets")


def run(*arguments: str, status: int = 0) -> str:
    """Run `actuator env` with these arguments; return its output."""
    done = run_command("env", *arguments, status=status)
    return done.stdout + done.stderr


@pytest.fixture
def state(tmp_path: Path) -> Iterator[Path]:
    """The state's directory of the default environment, which is down after the test."""
    directory = tmp_path / "cache" / "environments" / "default"
    yield directory
    detached.down(directory)


def test_up_kubeconfig_down(state: Path, processes_of: Callable[[Path], list[int]]) -> None:
    up = run("up")
    kubeconfig = state / "kubeconfig"
    assert f"export KUBECONFIG={kubeconfig}" in up
    assert "already running" in run("up")
    assert run("kubeconfig") == f"{kubeconfig}\n"
    assert run("kubeconfig", "--raw") == kubeconfig.read_text()
    assert stat.S_IMODE(kubeconfig.stat().st_mode) == 0o600
    access = detached.access(state)
    assert access is not None
    assert access.request("GET", "/readyz") == b"ok"
    assert "is stopped" in run("down")
    assert not access.directory.exists()
    assert not processes_of(access.directory)
    assert "is not running" in run("down")


def test_the_state_of_a_killed_environment_is_noticed(
    state: Path, wait_until: Callable[[Callable[[], bool], float], None]
) -> None:
    run("up")
    pid = DaemonFiles(state).pid()
    access = detached.access(state)
    assert pid is not None
    assert access is not None
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not access.directory.exists(), 60)
    assert "is not running; run `actuator env up`" in run("kubeconfig", status=1)
    assert "started" in run("up")


def test_an_environment_that_cannot_start_is_one_clear_message(
    state: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("etcd", "kube-apiserver", "kube-controller-manager"):
        (tmp_path / name).write_text("#!/bin/sh\necho it is broken\nexit 1\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # where logs are kept
    said = run("up", status=1)
    assert "etcd ended with status 1" in said
    assert "it is broken" in said
    assert not DaemonFiles(state).is_held()


@pytest.mark.parametrize("name", ["", "../up", "-x", "UP", "a/b"])
def test_a_name_is_a_plain_word(name: str) -> None:
    run("up", f"--name={name}", status=2)


def test_down_with_nothing_running_is_a_success() -> None:
    assert run("down") == "environment 'default' is not running\n"
