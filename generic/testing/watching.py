"""Short watches, for complete logs of drills and recordings; controllers use informers.

A stream that begins after the end of a drill ends soon, with nothing missing. Not here: what is
kept of the events (`drill.log`).
"""

import json
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from actuator.errors import api_error
from actuator.interface import Resource
from actuator.meta import Raw
from generic.kube.client import HttpClient, path_of

DELETED = "DELETED"
BOOKMARK = "BOOKMARK"
"""Types of events; an object of the second one only has a version."""
_SECONDS = 1
_SILENCE = 60.0
_ERROR = "ERROR"


@contextmanager
def following(followers: Iterable[Callable[[threading.Event], None]]) -> Iterator[None]:
    """Run each in a thread; when the context is left, set the event and wait until all end."""
    stop = threading.Event()
    threads = [threading.Thread(target=follow, args=(stop,), daemon=True) for follow in followers]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def newest(client: HttpClient, resource: Resource, *, label_selector: str = "") -> str:
    """Return the resourceVersion from which a stream has all later writes. Raises ApiError."""
    _, version = next(iter(client.pages(resource, label_selector=label_selector)))
    return version


def short_stream(
    client: HttpClient, resource: Resource, version: str, *, label_selector: str = ""
) -> Iterator[tuple[str, Raw]]:
    """Yield type and object of each event after `version`, for about a second.

    Objects that are nested too deeply to be decoded are left out. Raises ApiError, Gone if the
    version is too old, and ValueError.
    """
    query = {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": str(_SECONDS),
        "labelSelector": label_selector,
        "resourceVersion": version,
    }
    with client.stream(path_of(resource), query, read_timeout=_SILENCE) as lines:
        for line in lines:
            try:
                event = json.loads(line)
            except RecursionError:
                continue
            obj = event["object"]
            if event["type"] == _ERROR:
                raise api_error(int(obj.get("code") or 500), obj)
            yield event["type"], obj
