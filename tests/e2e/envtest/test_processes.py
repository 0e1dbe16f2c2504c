"""Children end with their parent, however it ends."""

import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from generic.library.programs.errors import EnvtestError
from generic.library.programs.processes import Processes, ProcessGroup, stop

PARENT = """
import os, subprocess, sys, tempfile, time
from pathlib import Path
from generic.library.programs.processes import ProcessGroup
group = ProcessGroup(Path(tempfile.mkdtemp(prefix="actuator-test-")))
(group.directory / "data" / "deep").mkdir(parents=True)
group.start(["sh", "-c", "trap '' TERM HUP; sleep 60 & wait"], subprocess.DEVNULL, os.environ)
print(group.directory, flush=True)
{then}
time.sleep(60)
"""

# A copy of the process that keeps every file of it open, the pipe to the reaper included.
FORK = "os.fork() or time.sleep(20)"


@pytest.mark.parametrize("then", ["", FORK], ids=["plain", "with a fork that lives on"])
def test_a_killed_parent_leaves_no_child_grandchild_or_directory(
    then: str,
    python: list[str],
    processes_of: Callable[[Path], list[int]],
    wait_until: Callable[[Callable[[], bool], float], None],
) -> None:
    code = PARENT.format(then=then)
    with subprocess.Popen([*python, code], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        directory = Path(parent.stdout.readline().strip())
        wait_until(lambda: len(processes_of(directory)) >= 3, 60)  # reaper, shell, sleep
        parent.send_signal(signal.SIGKILL)
        wait_until(lambda: not processes_of(directory) and not directory.exists(), 60)


def test_children_outlive_the_thread_that_started_them(group: ProcessGroup) -> None:
    started: list[subprocess.Popen[bytes]] = []

    def start() -> None:
        started.append(group.start(["sleep", "60"], subprocess.DEVNULL, os.environ))

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    time.sleep(0.3)
    assert started[0].poll() is None


def test_closing_ends_processes_that_ignore_sigterm(
    group: ProcessGroup, processes_of: Callable[[Path], list[int]]
) -> None:
    group.start(["sh", "-c", "trap '' TERM; sleep 60"], subprocess.DEVNULL, os.environ)
    group.close()
    assert not group.directory.exists()
    assert not processes_of(group.directory)


def test_closing_works_although_the_reaper_was_killed(
    group: ProcessGroup,
    processes_of: Callable[[Path], list[int]],
    wait_until: Callable[[Callable[[], bool], float], None],
) -> None:
    wait_until(lambda: bool(processes_of(group.directory)), 60)  # empty while it is being loaded
    (reaper,) = processes_of(group.directory)
    group.start(["sleep", "60"], subprocess.DEVNULL, os.environ)
    os.kill(reaper, signal.SIGKILL)
    group.close()
    assert not group.directory.exists()
    assert not processes_of(group.directory)


def test_stopping_is_bounded(group: ProcessGroup) -> None:
    command = ["sh", "-c", "trap '' TERM; echo; sleep 60"]
    process = group.start(command, subprocess.PIPE, os.environ)
    assert process.stdout is not None
    process.stdout.readline()
    started = time.monotonic()
    stop(process, 0.2)
    process.stdout.close()
    assert process.returncode == -signal.SIGKILL
    assert time.monotonic() - started < 30


def test_a_program_that_cannot_run_is_one_clear_error(group: ProcessGroup) -> None:
    with pytest.raises(EnvtestError, match="cannot run /nowhere/etcd"):
        group.start(["/nowhere/etcd"], subprocess.DEVNULL, os.environ)


def test_a_named_process_inherits_its_share_of_the_machine_and_nothing_else(
    named: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOGC", "321")
    monkeypatch.setenv("KUBECONFIG", "not theirs")
    named.start("env", ["env"], {"OWN": "1"}).wait(60)
    lines = set(named.log("env").read_text().splitlines())
    assert lines == {"GOGC=321", f"HOME={named.directory}", f"PATH={os.defpath}", "OWN=1"} | go()


def go() -> set[str]:
    return {f"{key}={os.environ[key]}" for key in ("GOMAXPROCS", "GOMEMLIMIT") if key in os.environ}


def test_a_name_has_one_process_which_can_be_started_again(named: Processes) -> None:
    named.start("sleep", ["sleep", "60"])
    with pytest.raises(EnvtestError, match="sleep is running already"):
        named.start("sleep", ["sleep", "60"])
    named.stop("sleep")
    assert named.alive() == []
    named.start("sleep", ["sleep", "60"])
    named.kill("sleep")
    named.kill("sleep")
    assert not named.is_running("sleep")


def test_a_process_that_ends_instead_of_becoming_ready_is_explained_by_its_log(
    named: Processes,
) -> None:
    named.start("broken", ["sh", "-c", "echo no config; exit 3"])
    with pytest.raises(EnvtestError, match=r"broken ended with status 3; .*\nno config$") as caught:
        named.wait_until("broken", lambda: False, 60)
    kept = Path(f"{named.directory}-logs")
    assert str(kept) in str(caught.value)
    named.close()
    assert (kept / "broken.log").read_text() == "no config\n"
    shutil.rmtree(kept)


def test_a_process_that_does_not_become_ready_in_time_is_an_error(named: Processes) -> None:
    named.start("slow", ["sleep", "60"])
    with pytest.raises(EnvtestError, match="slow was not ready within 0 s"):
        named.wait_until("slow", lambda: False, 0.1)
    shutil.rmtree(f"{named.directory}-logs")


def test_a_working_directory_of_its_own(named: Processes, tmp_path: Path) -> None:
    named.start("pwd", ["pwd"], cwd=tmp_path).wait(60)
    assert named.log("pwd").read_text() == f"{tmp_path}\n"


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("end", [Processes.stop, Processes.kill])
def test_only_a_kept_process_that_ended_by_itself_is_started_again(
    named: Processes, keep: bool, end: Callable[[Processes, str], None]
) -> None:
    named.start("program", ["sh", "-c", "sleep 60"], keep=keep).kill()
    while named.is_running("program"):
        time.sleep(0.01)
    named.restart_ended()
    assert named.is_running("program") == keep
    named.restart_ended()  # of one that runs: nothing
    end(named, "program")
    named.restart_ended()
    assert not named.is_running("program")


def test_processes_may_be_started_while_ended_ones_are_started_again(named: Processes) -> None:
    def start() -> None:
        for number in range(40):
            named.start(f"program-{number}", ["sleep", "60"], keep=True)

    thread = threading.Thread(target=start)
    thread.start()
    while thread.is_alive():
        named.restart_ended()
    thread.join()
    for number in range(40):
        named.kill(f"program-{number}")
