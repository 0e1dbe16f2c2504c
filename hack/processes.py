"""Runs programs: waits until they are ready, and stops them at the end."""

import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from actuator.errors import ActuatorError
from generic.library.programs.processes import Process, stop, tail


@contextmanager
def running(command: Sequence[str], log: Path, address: str, path: str) -> Iterator[Process]:
    """Run a program; enter the `with` block once this path returns 200, and stop it at the end.

    Raises ActuatorError with the end of its log if it does not become ready, or if the block raises
    TimeoutError.
    """

    def ready() -> bool:
        if process.poll() is not None:
            raise TimeoutError(f"ended with status {process.returncode}")
        try:
            with urllib.request.urlopen(f"http://{address}{path}", timeout=5):
                return True
        except OSError:
            return False

    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
    try:
        wait("ready", ready, 120)
        yield process
    except TimeoutError as error:
        raise ActuatorError(f"{log.stem}: {error}; its log ends with:\n{tail(log)}") from error
    finally:
        stop(process, 30)


def wait(what: str, reached: Callable[[], bool], seconds: float, *, every: float = 0.2) -> float:
    """Return the seconds until `reached` returns True. Raises TimeoutError that names `what`."""
    began = time.monotonic()
    while not reached():
        if time.monotonic() - began > seconds:
            raise TimeoutError(f"not {what} within {seconds:.0f} s")
        time.sleep(every)
    return time.monotonic() - began
