"""The program behind a detached environment; `detached.up` runs it, nobody imports it.

Arguments: the directory of the environment's state, and optionally a lock file. It holds the
directory's lock, which it was handed already taken, as long as it lives. It ends on SIGTERM, or
once nobody else holds the lock file: then whoever wanted the environment is gone.
"""

import fcntl
import json
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import NoReturn

from generic.library.programs.cache import open_lock
from generic.library.programs.errors import EnvtestError
from generic.testing.envtest.detached import State
from generic.testing.envtest.environment import Environment


def terminate(_number: int, _frame: object) -> NoReturn:
    """End through the `with` statements, whatever is being done; further signals don't disturb."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(0)


def wait(while_locked: Path | None) -> None:
    """Return once nobody else holds the lock file; without one only SIGTERM ends the wait."""
    if while_locked is None:
        while True:
            signal.pause()
    with open_lock(while_locked) as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)


def answer(error: str | None) -> None:
    """Tell `detached.up`, which reads to the end, that the environment is ready, or why not."""
    sys.stdout.write(json.dumps({"error": error}) + "\n")
    sys.stdout.flush()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def main() -> None:
    """Run one environment."""
    signal.signal(signal.SIGTERM, terminate)
    directory = Path(sys.argv[1])
    while_locked = Path(sys.argv[2]) if len(sys.argv) > 2 else None
    try:
        with Environment() as environment:
            state = State(directory)
            state.write(os.getpid(), environment)
            answer(None)
            wait(while_locked)
    except EnvtestError as error:
        answer(str(error))
        sys.exit(1)
    finally:
        State(directory).clear()
        if while_locked is not None:
            shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
