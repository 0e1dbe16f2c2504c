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

from actuator.errors import ApiError, Unavailable
from actuator.interface import Resource
from actuator.meta import Raw
from generic.kube.client import HttpClient
from generic.testing.watching import BOOKMARK, following, newest, short_stream


@frozen
class Version:
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


class Log:
    """The versions of all watched objects of one cluster, in the order of their writes."""

    def __init__(self) -> None:
        self._versions: list[Version] = []
        self._lock = threading.Lock()
        self.failed: list[str] = []
        """The reasons why versions may be missing."""

    def take(self, event: str, obj: Raw) -> None:
        """Append a version."""
        with self._lock:
            self._versions.append(Version(time.monotonic(), event, obj))

    def versions(self) -> list[Version]:
        """Return all versions in order. Raises RuntimeError if some may be missing."""
        if self.failed:
            raise RuntimeError(f"the recording is incomplete: {'; '.join(self.failed)}")
        with self._lock:
            return sorted(self._versions, key=lambda version: version.number)

    def save(self, path: Path) -> None:
        """Write one line of JSON for each version."""
        lines = [json.dumps([one.at, one.event, one.obj]) for one in self.versions()]
        path.write_text("\n".join(lines) + "\n")


def load(path: Path) -> list[Version]:
    """Read the lines that `Log.save` wrote."""
    return [Version(*json.loads(line)) for line in path.read_text().splitlines()]


@contextmanager
def watched(client: HttpClient, resources: Sequence[Resource], log: Log) -> Iterator[None]:
    """Record the resources in all namespaces; the log is complete when the context is left."""
    watches = [partial(_watch, client, one, newest(client, one), log) for one in resources]
    with following(watches):
        yield


def _watch(
    client: HttpClient, resource: Resource, version: str, log: Log, stop: threading.Event
) -> None:
    """Follow one resource by short streams, so that the end of a stream is the end of the log."""
    while True:
        ends = stop.is_set()
        try:
            for type, obj in short_stream(client, resource, version):
                version = str(obj["metadata"]["resourceVersion"])
                if type != BOOKMARK:
                    log.take(type, obj)
        except Unavailable:
            time.sleep(0.2)  # the connection broke: nothing is lost, for the version is known
        except (ApiError, ValueError) as error:
            log.failed.append(f"{resource}: {error}")
            return
        if ends:
            return
