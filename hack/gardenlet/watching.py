"""Watch the objects of extensions in a cluster, and keep each version of each of them.

Not here: what follows from the versions (`reduction`).
"""

import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from attrs import field, frozen

from actuator.errors import ApiError, Gone, Unavailable
from actuator.interface import Resource
from actuator.meta import Raw
from generic.kube.client import HttpClient
from generic.testing.watching import BOOKMARK, following, newest, short_stream


@frozen
class ObjectVersion:
    """An object after one write, or as it was when it was deleted."""

    at: float
    """Seconds of the monotonic clock when the event arrived."""
    event: str
    """ADDED, MODIFIED or DELETED."""
    obj: Raw = field(repr=False)

    @property
    def number(self) -> int:
        """Its place in the order of all writes to its cluster (one etcd serves all kinds)."""
        return int(self.obj["metadata"]["resourceVersion"])


class WatchLog:
    """The versions of all watched objects of one cluster, in the order of their writes."""

    def __init__(self) -> None:
        self._versions: list[ObjectVersion] = []
        self._lock = threading.Lock()
        self.failed: list[str] = []
        """The reasons why versions may be missing."""

    def take(self, event: str, obj: Raw) -> None:
        """Append a version."""
        with self._lock:
            self._versions.append(ObjectVersion(time.monotonic(), event, obj))

    def versions(self) -> list[ObjectVersion]:
        """Return all versions in order. Raises RuntimeError if some may be missing."""
        if self.failed:
            raise RuntimeError(f"the recording is incomplete: {'; '.join(self.failed)}")
        with self._lock:
            return sorted(self._versions, key=lambda version: version.number)

    def save(self, path: Path) -> None:
        """Write one line of JSON for each version."""
        lines = [
            json.dumps([version.at, version.event, version.obj]) for version in self.versions()
        ]
        path.write_text("\n".join(lines) + "\n")


def load(path: Path) -> list[ObjectVersion]:
    """Read the lines that `WatchLog.save` wrote."""
    return [ObjectVersion(*json.loads(line)) for line in path.read_text().splitlines()]


@contextmanager
def watched(client: HttpClient, resources: Sequence[Resource], log: WatchLog) -> Iterator[None]:
    """Record the resources in all namespaces; the log is complete when the context is left."""
    began = [threading.Event() for _ in resources]
    pairs = zip(resources, began, strict=True)
    with following([partial(_watch, client, resource, log, event) for resource, event in pairs]):
        for event in began:
            event.wait()
        yield


def _watch(
    client: HttpClient,
    resource: Resource,
    log: WatchLog,
    began: threading.Event,
    stop: threading.Event,
) -> None:
    """Follow one resource by short streams, so that the end of a stream is the end of the log.

    Sets `began` once a stream was accepted, or the watch failed. An API server that serves a kind
    anew refuses the version of its own list for a moment; nothing is recorded before `began`.
    """
    version = ""
    try:
        while True:
            ends = stop.is_set()
            try:
                version = version or newest(client, resource)
                for type, obj in short_stream(client, resource, version):
                    version = str(obj["metadata"]["resourceVersion"])
                    if type != BOOKMARK:
                        log.take(type, obj)
                began.set()
            except Unavailable:
                time.sleep(0.2)  # the connection broke: nothing is lost, for the version is known
            except Gone:
                if began.is_set():
                    raise
                version = ""
            if ends:
                return
    except (ApiError, ValueError) as error:
        log.failed.append(f"{resource}: {error}")
    finally:
        began.set()
