"""An environment that outlives the process that started it: `actuator env`, pytest-xdist.

Its state is a directory: a lock that the daemon (this module, run as a program) holds while it
lives, and files with its address and credentials. A free lock means that no daemon runs, regardless
of the files. So a reboot or a kill is noticed, and a reused process id is never mistaken for the
daemon.
"""

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple, NoReturn

from generic.library.programs.cache import Progress, open_lock, try_lock
from generic.library.programs.errors import EnvtestError
from generic.testing.envtest.access import Access
from generic.testing.envtest.binaries import find_binaries

START_SECONDS = 120.0
STOP_SECONDS = 15.0
POLL_SECONDS = 0.05


class State:
    """The files of one detached environment."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.lock = directory / "lock"
        self.log = directory / "daemon.log"
        self.kubeconfig = directory / "kubeconfig"
        self._file = directory / "state.json"

    def write(self, pid: int, access: Access) -> None:
        """Write process id and access; readers see a complete file or none."""
        self.kubeconfig.unlink(missing_ok=True)
        self.kubeconfig.touch(mode=0o600)
        self.kubeconfig.write_bytes(access.kubeconfig.read_bytes())
        content = {"pid": pid, "url": access.url, "directory": str(access.directory)}
        temporary = self._file.with_suffix(".new")
        temporary.write_text(json.dumps(content))
        temporary.replace(self._file)

    def read(self) -> tuple[int, Access] | None:
        """Return the daemon's process id and the access; None if the file cannot be read."""
        try:
            content = json.loads(self._file.read_text())
            return content["pid"], Access(content["url"], Path(content["directory"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def clear(self) -> None:
        """Remove the files that `write` wrote."""
        self._file.unlink(missing_ok=True)
        self.kubeconfig.unlink(missing_ok=True)

    def is_held(self) -> bool:
        """Return whether a daemon is alive; if none is, remove the files of a former one."""
        if not self.lock.exists():
            return False
        with open_lock(self.lock) as handle:
            if not try_lock(handle):
                return True
            self.clear()
            return False


class Up(NamedTuple):
    """The result of `up`."""

    access: Access
    started: bool
    """False if the environment was already running."""


def up(directory: Path, progress: Progress, while_locked: Path | None = None) -> Up:
    """Return the environment of this directory; start it if it is not running.

    If several processes call at once, one starts it. With `while_locked` it ends, and removes
    the directory, when no process holds that lock file any more. Raises EnvtestError.
    """
    find_binaries(progress)  # here, where progress is visible
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    state, daemon = State(directory), None
    deadline = time.monotonic() + START_SECONDS
    try:
        while time.monotonic() < deadline:
            with open_lock(state.lock) as handle:
                if try_lock(handle):
                    if daemon is not None:
                        daemon.wait(STOP_SECONDS)
                        said = state.log.read_text().strip()
                        raise EnvtestError(
                            said or f"the environment ended at once, see {state.log}"
                        )
                    state.clear()
                    daemon = _start(state, handle, while_locked)
            if found := state.read():
                if daemon is not None:  # it outlives us; else Python warns about a running child
                    daemon.returncode = 0
                return Up(found[1], started=daemon is not None)
            time.sleep(POLL_SECONDS)
        waited = f"was not ready within {START_SECONDS:.0f} s"
        raise EnvtestError(f"the environment in {directory} {waited}, see {state.log}")
    except BaseException:
        if daemon is not None:
            daemon.terminate()
        raise


def down(directory: Path) -> bool:
    """Stop the environment of this directory and wait for it; False if none was running."""
    state = State(directory)
    if not state.is_held():
        return False
    for number in (signal.SIGTERM, signal.SIGKILL):
        if _end(state, number):
            return True
    raise EnvtestError(f"the environment in {directory} does not end, see {state.log}")


def access(directory: Path) -> Access | None:
    """Return the access to the environment of this directory, None if none is running."""
    state = State(directory)
    found = state.read() if state.is_held() else None
    return found[1] if found else None


def _start(state: State, lock: int, while_locked: Path | None) -> subprocess.Popen[bytes]:
    """Run the daemon, which inherits the lock. Its log has nothing but the reason of a failure."""
    arguments = [str(state.directory), *([str(while_locked)] if while_locked else [])]
    with state.log.open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "generic.testing.envtest.detached", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
            cwd="/",
            start_new_session=True,
            pass_fds=(lock,),
        )


def _end(state: State, number: signal.Signals) -> bool:
    """Send the signal once the process id is known; return whether the daemon ended in time."""
    deadline = time.monotonic() + STOP_SECONDS
    sent = False
    while time.monotonic() < deadline:
        if not state.is_held():
            return True
        if not sent and (found := state.read()):
            os.kill(found[0], number)
            sent = True
        time.sleep(POLL_SECONDS)
    return False


def _terminate(_number: int, _frame: object) -> NoReturn:
    """Exit through the `with` statements; further SIGTERM signals are ignored."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(0)


def _wait(while_locked: Path | None) -> None:
    """Return once no other process holds the lock file; without one only SIGTERM ends the wait."""
    if while_locked is None:
        while True:
            signal.pause()
    with open_lock(while_locked) as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)


def main() -> None:
    """Run one environment; this is the daemon that `up` starts.

    Arguments: the directory of the environment's state, and optionally a lock file. It holds the
    directory's lock, inherited already taken, while it lives. It ends on SIGTERM, or once no
    other process holds the lock file: then the user of the environment has ended.
    """
    from generic.testing.envtest.environment import Environment

    signal.signal(signal.SIGTERM, _terminate)
    state = State(Path(sys.argv[1]))
    while_locked = Path(sys.argv[2]) if len(sys.argv) > 2 else None
    try:
        with Environment() as environment:
            state.write(os.getpid(), environment)
            _wait(while_locked)
        shutil.rmtree(state.directory, ignore_errors=True)
    except EnvtestError as error:
        sys.exit(str(error))
    finally:
        state.clear()


if __name__ == "__main__":
    main()
