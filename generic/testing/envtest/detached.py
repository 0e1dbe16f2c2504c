"""An environment that outlives the process that started it: `actuator env`, pytest-xdist.

This module, run as a program, is its daemon. Not here: how daemons start and end
(`library.programs.daemons`).
"""

import fcntl
import shutil
import signal
import sys
from pathlib import Path

from generic.library.programs import daemons
from generic.library.programs.cache import Progress, open_lock
from generic.library.programs.daemons import DaemonFiles, Published
from generic.library.programs.errors import EnvtestError
from generic.testing.envtest.access import ClusterAccess
from generic.testing.envtest.binaries import find_binaries

START_SECONDS = 120.0


def up(
    directory: Path, progress: Progress, while_locked: Path | None = None
) -> tuple[ClusterAccess, bool]:
    """Return the environment of this directory, and whether this call started it.

    If several processes call at once, one starts it. With `while_locked` it ends, and removes
    the directory, when no process holds that lock file any more. Raises EnvtestError.
    """
    find_binaries(progress)  # here, where progress is visible
    command = [__name__, str(directory), *([str(while_locked)] if while_locked else [])]
    found = daemons.up(DaemonFiles(directory), command, START_SECONDS, progress, "the environment")
    return _access(found.published), found.started


def down(directory: Path) -> bool:
    """Stop the environment of this directory and wait for it; False if none was running."""
    return daemons.down(DaemonFiles(directory), f"the environment in {directory}")


def access(directory: Path) -> ClusterAccess | None:
    """Return the access to the environment of this directory, None if none is running."""
    state = DaemonFiles(directory)
    found = state.published() if state.is_held() else None
    return _access(found) if found else None


def _access(published: Published) -> ClusterAccess:
    return ClusterAccess(published["url"], Path(published["directory"]))


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

    daemons.end_with_sigterm()
    state = DaemonFiles(Path(sys.argv[1]))
    while_locked = Path(sys.argv[2]) if len(sys.argv) > 2 else None
    try:
        with Environment() as environment:
            state.publish_secret("kubeconfig", environment.kubeconfig.read_bytes())
            state.publish({"url": environment.url, "directory": str(environment.directory)})
            _wait(while_locked)
        shutil.rmtree(state.directory, ignore_errors=True)
    except EnvtestError as error:
        sys.exit(str(error))
    finally:
        state.clear()


if __name__ == "__main__":
    main()
