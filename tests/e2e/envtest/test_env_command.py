"""`actuator env`: an environment that outlives the command that started it."""

import os
import signal
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from generic.testing.envtest import detached
from generic.tools.cli.env import env
from generic.tools.cli.main import main

pytestmark = pytest.mark.usefixtures("using_assets")


def run(*arguments: str) -> Result:
    """Run `actuator env` with these arguments."""
    return CliRunner().invoke(env, arguments)


@pytest.fixture
def state(tmp_path: Path) -> Iterator[Path]:
    """The state's directory of the default environment, which is down after the test."""
    directory = tmp_path / "cache" / "environments" / "default"
    yield directory
    detached.down(directory)


def test_up_kubeconfig_down(state: Path, processes_of: Callable[[Path], list[int]]) -> None:
    up = run("up")
    assert up.exit_code == 0, up.output
    kubeconfig = state / "kubeconfig"
    assert f"export KUBECONFIG={kubeconfig}" in up.output
    assert "already running" in run("up").output
    assert run("kubeconfig").output == f"{kubeconfig}\n"
    assert run("kubeconfig", "--raw").output == kubeconfig.read_text()
    assert stat.S_IMODE(kubeconfig.stat().st_mode) == 0o600
    access = detached.access(state)
    assert access is not None
    assert access.request("GET", "/readyz") == b"ok"
    assert "is stopped" in run("down").output
    assert not access.directory.exists()
    assert not processes_of(access.directory)
    assert "is not running" in run("down").output


def test_what_a_killed_environment_left_is_noticed(
    state: Path, wait_until: Callable[[Callable[[], bool], float], None]
) -> None:
    run("up")
    found = detached.State(state).read()
    assert found is not None
    pid, access = found
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not access.directory.exists(), 60)
    absent = run("kubeconfig")
    assert absent.exit_code == 1
    assert "is not running; run `actuator env up`" in absent.output
    again = run("up")
    assert "started" in again.output


def test_an_environment_that_cannot_start_is_one_clear_message(
    state: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in ("etcd", "kube-apiserver", "kube-controller-manager"):
        (tmp_path / name).write_text("#!/bin/sh\necho it is broken\nexit 1\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # where logs are kept
    with pytest.raises(SystemExit) as failed:
        main(["env", "up"])
    assert failed.value.code == 1
    said = capsys.readouterr().err
    assert "etcd ended with status 1" in said
    assert "it is broken" in said
    assert not detached.State(state).is_held()


@pytest.mark.parametrize("name", ["", "../up", "-x", "UP", "a/b"])
def test_a_name_is_a_plain_word(name: str) -> None:
    assert run("up", f"--name={name}").exit_code == 2


def test_down_with_nothing_running_is_a_success() -> None:
    down = run("down")
    assert (down.exit_code, down.output) == (0, "environment 'default' is not running\n")
