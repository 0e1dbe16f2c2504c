"""Daemons: programs of this project that outlive the command which starts them.

The state of a daemon is a private directory: a lock that it holds while it lives, with its process
id, and a file with what it publishes once it is ready. A free lock means that it does not run,
regardless of the files. So a reboot or a kill is noticed, and a reused process id is never mistaken
for the daemon.

Not here: what a daemon does (`envtest.detached`, `landscape`), and its child processes
(`processes`), which end with it.
"""

import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from generic.library.programs.cache import Progress, open_lock, try_lock
from generic.library.programs.errors import EnvtestError

STOP_SECONDS = 15.0
POLL_SECONDS = 0.05

Published = dict[str, Any]


class DaemonFiles:
    """The files of one daemon."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.lock = directory / "lock"
        self.log = directory / "daemon.log"
        """Its errors: nothing but the reason of a failure."""
        self.progress = directory / "progress.log"
        """Its output: lines of progress."""
        self.kubeconfig = directory / "kubeconfig"
        self._file = directory / "state.json"

    def publish(self, content: Published) -> None:
        """Write what commands need; readers see all of it or nothing. Called by the daemon."""
        temporary = self._file.with_suffix(".new")
        temporary.write_text(json.dumps(content))
        temporary.replace(self._file)

    def publish_secret(self, name: str, content: bytes) -> Path:
        """Write a file that only the user can read; return its path. Called by the daemon."""
        target = self.directory / name
        target.unlink(missing_ok=True)
        target.touch(mode=0o600)
        target.write_bytes(content)
        return target

    def pid(self) -> int | None:
        """Return the process id of the daemon that holds the lock."""
        text = self.lock.read_text() if self.lock.exists() else ""
        return int(text) if text.isdecimal() else None

    def published(self) -> Published | None:
        """Return what the daemon published; None if the file cannot be read."""
        try:
            found = json.loads(self._file.read_text())
        except (OSError, ValueError):
            return None
        return found if isinstance(found, dict) else None

    def clear(self) -> None:
        """Remove what a daemon published."""
        self._file.unlink(missing_ok=True)
        for file in self.directory.glob("*kubeconfig"):
            file.unlink(missing_ok=True)

    def is_held(self) -> bool:
        """Return whether a daemon is alive; if none is, remove the files of a former one."""
        if not self.lock.exists():
            return False
        with open_lock(self.lock) as handle:
            if not try_lock(handle):
                return True
            self.clear()
            return False


class DaemonUp(NamedTuple):
    """The result of `up`."""

    published: Published
    started: bool
    """False if the daemon was already running."""


def up(
    state: DaemonFiles, command: Sequence[str], seconds: float, progress: Progress, what: str
) -> DaemonUp:
    """Return what the daemon publishes; start it if it does not run, and wait for it.

    `command` is a module and its arguments. If several processes call at once, one starts it.
    `what` names it in errors. Raises EnvtestError if it ends or takes longer than `seconds`.
    """
    daemon = None
    told = 0
    deadline = time.monotonic() + seconds
    try:
        while time.monotonic() < deadline:
            _make_private(state.directory)  # a daemon that ended has removed it
            with open_lock(state.lock) as handle:
                if try_lock(handle):
                    if daemon is not None:
                        daemon.wait(STOP_SECONDS)
                        said = state.log.read_text().strip()
                        raise EnvtestError(said or f"{what} ended at once, see {state.log}")
                    state.clear()
                    daemon = _start(state, handle, command)
            told = _tell(state, told, progress)
            if found := state.published():
                if daemon is not None:  # it outlives us; else Python warns about a running child
                    daemon.returncode = 0
                return DaemonUp(found, started=daemon is not None)
            time.sleep(POLL_SECONDS)
        raise EnvtestError(f"{what} was not ready within {seconds:.0f} s, see {state.log}")
    except BaseException:
        if daemon is not None:
            daemon.terminate()
        raise


def down(state: DaemonFiles, what: str, seconds: float = STOP_SECONDS) -> bool:
    """Stop the daemon and wait for it; False if none was running. Raises EnvtestError."""
    if not state.is_held():
        return False
    for number in (signal.SIGTERM, signal.SIGKILL):
        if _end(state, number, seconds):
            return True
    raise EnvtestError(f"{what} does not end, see {state.log}")


def interruptible() -> None:
    """Let SIGTERM and SIGHUP end this process like Ctrl-C, through its `with` statements."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)


def end_with_sigterm() -> None:
    """Let SIGTERM end this process through its `with` statements; later ones are ignored."""
    signal.signal(signal.SIGTERM, _terminate)


def _terminate(_number: int, _frame: object) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(0)


def _make_private(directory: Path) -> None:
    """Create the directory. Raises EnvtestError if another user can read or write it."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = directory.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise EnvtestError(f"{directory} must be a folder that only you can use; remove it")


def _start(state: DaemonFiles, lock: int, command: Sequence[str]) -> subprocess.Popen[bytes]:
    """Run the daemon, which inherits the lock."""
    with state.log.open("wb") as log, state.progress.open("wb") as progress:
        daemon = subprocess.Popen(
            [sys.executable, "-P", "-m", *command],
            stdin=subprocess.DEVNULL,
            stdout=progress,
            stderr=log,
            cwd="/",
            start_new_session=True,
            pass_fds=(lock,),
        )
    os.ftruncate(lock, 0)
    os.pwrite(lock, str(daemon.pid).encode(), 0)
    return daemon


def _tell(state: DaemonFiles, told: int, progress: Progress) -> int:
    """Pass on the complete lines of progress after the first `told`; return their new number."""
    if not state.progress.exists():
        return told
    lines = state.progress.read_text(errors="replace").split("\n")[:-1]
    for line in lines[told:]:
        progress(line)
    return len(lines)


def _end(state: DaemonFiles, number: signal.Signals, seconds: float) -> bool:
    """Send the signal; return whether the daemon ended in time."""
    deadline = time.monotonic() + seconds
    if (pid := state.pid()) is not None:
        with suppress(ProcessLookupError):
            os.kill(pid, number)
    while state.is_held():
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_SECONDS)
    return True
