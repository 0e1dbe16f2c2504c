"""Caches: the objects of one resource in all namespaces, kept equal to the API server's.

Not here: what follows from a change (`kubelet`, `services`).
"""

import base64
import threading
from collections.abc import Callable

from actuator.codec import read_json
from actuator.interface import SECRETS, Resource
from actuator.meta import Raw
from generic.kube.client import HttpClient
from generic.kube.headers import Event, Header, Request, header
from generic.kube.informer import Informer
from generic.kube.store import Store
from generic.testing.landscape.pods import Data

PODS = Resource("v1", "pods")
SERVICES = Resource("v1", "services")


class Cache:
    """An informer in a thread of its own; `on_event` is called there for each change."""

    def __init__(
        self, client: HttpClient, resource: Resource, on_event: Callable[[Event[Header]], None]
    ) -> None:
        self.store: Store[Header] = Store(resource, header)
        self._informer = Informer(client, self.store, on_event)

    def start(self, stop: threading.Event) -> None:
        """Watch until `stop` is set."""
        name = f"cache-{self._informer.plural}"
        threading.Thread(target=self._informer.run, args=(stop,), name=name, daemon=True).start()

    def wait(self, seconds: float) -> bool:
        """Wait until the cache is complete; return whether it is."""
        return self._informer.settled.wait(seconds)

    def get(self, request: Request) -> Raw | None:
        """Return an object, or None if it does not exist."""
        entry = self.store.get(request)
        return read_json(entry.raw) if entry is not None else None

    def data(self, request: Request) -> Data | None:
        """Return the data of a Secret or a ConfigMap, or None if it does not exist."""
        obj = self.get(request)
        if obj is None:
            return None
        texts = obj.get("data") or {}
        encoded = obj.get("binaryData") or {}
        if self.store.resource == SECRETS:
            texts, encoded = {}, texts
        data = {key: text.encode() for key, text in texts.items()}
        return data | {key: base64.b64decode(text) for key, text in encoded.items()}
