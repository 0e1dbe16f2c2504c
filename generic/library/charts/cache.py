"""Keeps rendered charts, so that helm runs once for each chart, values and version."""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from copy import deepcopy
from importlib.resources.abc import Traversable
from pathlib import Path

import attrs

from actuator.meta import Raw

_MAX_SIZE = 4 * 2**20


def fingerprint(chart: Path | Traversable, *inputs: str) -> str:
    """Return a hash of all files of a chart and of the other input."""
    found = hashlib.sha256()
    parts = [part for file in _files(chart, "") for part in file]
    for part in (*parts, *(text.encode() for text in inputs)):
        found.update(len(part).to_bytes(8, "big") + part)
    return found.hexdigest()


def _files(entry: Path | Traversable, path: str) -> Iterator[tuple[bytes, bytes]]:
    if entry.is_file():
        yield path.encode(), entry.read_bytes()
    else:
        for inner in sorted(entry.iterdir(), key=lambda item: item.name):
            yield from _files(inner, f"{path}/{inner.name}")


@attrs.frozen
class Rendered:
    """The manifests of a chart, and the characters of their text."""

    manifests: list[Raw]
    size: int


class Renderings:
    """The results that were used last, `max_size` characters at most. Safe to use from any thread.

    They are kept by fingerprints: values, which may be secret, are only in the manifests.
    """

    def __init__(self, max_size: int = _MAX_SIZE) -> None:
        self._max_size = max_size
        self._lock = threading.Lock()
        self._found: OrderedDict[str, Future[Rendered]] = OrderedDict()

    def get(self, key: str, make: Callable[[], Rendered]) -> list[Raw]:
        """Return a copy of the manifests, made once also for threads that ask at the same time.

        Raises the error of `make`; the next call makes them again.
        """
        own: Future[Rendered] = Future()
        with self._lock:
            found = self._found.setdefault(key, own)
            self._found.move_to_end(key)
        if found is own:
            self._make(key, own, make)
        return deepcopy(found.result().manifests)

    def _make(self, key: str, own: Future[Rendered], make: Callable[[], Rendered]) -> None:
        try:
            own.set_result(make())
        except BaseException as error:
            with self._lock:
                self._found.pop(key, None)
            own.set_exception(error)
            return
        with self._lock:
            done = [
                (name, future.result().size)
                for name, future in self._found.items()
                if future.done()
            ]
            total = sum(size for _, size in done)
            for name, size in done:
                if total > self._max_size:
                    del self._found[name]
                    total -= size
