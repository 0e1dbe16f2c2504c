"""The cache folder, the only one outside the clone that is written to, and its locks."""

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from generic.library.programs.errors import EnvtestError

Progress = Callable[[str], None]
"""Receives one line for a person to read."""

LOCK_POLL_SECONDS = 0.1
PROGRESS_SECONDS = 5.0


def cache_directory() -> Path:
    """Return `$ACTUATOR_CACHE`, else `gardener-actuator` in the user's cache folder; it exists.

    Raises EnvtestError if it cannot be made.
    """
    directory = _location().absolute()
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EnvtestError(
            f"cannot create the cache folder: {error}; set ACTUATOR_CACHE to a writable folder"
        ) from error
    return directory


def _location() -> Path:
    if own := os.environ.get("ACTUATOR_CACHE"):
        return Path(own)
    if users := os.environ.get("XDG_CACHE_HOME"):
        return Path(users, "gardener-actuator")
    return Path("~/.cache/gardener-actuator").expanduser()


@contextlib.contextmanager
def locked(path: Path, progress: Progress) -> Iterator[None]:
    """Hold the lock file exclusively; while another process holds it, wait and report `progress`.

    The kernel releases the lock when its holder ends, in any way.
    """
    with open_lock(path) as handle:
        started = told = time.monotonic()
        while not try_lock(handle):
            time.sleep(LOCK_POLL_SECONDS)
            if time.monotonic() - told >= PROGRESS_SECONDS:
                told = time.monotonic()
                progress(f"waiting for another process, {told - started:.0f} s ({path})")
        yield


@contextlib.contextmanager
def open_lock(path: Path) -> Iterator[int]:
    """Open a lock file, creating it if needed; closing it releases the lock."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise EnvtestError(f"cannot open the lock file: {error}") from error
    try:
        yield handle
    finally:
        os.close(handle)


def try_lock(handle: int) -> bool:
    """Take the lock if it is free; return whether it was."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
