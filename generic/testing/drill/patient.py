"""PatientClient: for those who go on while the API server is down, refuses, or comes back."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from actuator.errors import AlreadyExists, TooManyRequests, Unavailable
from actuator.interface import Client, Resource
from actuator.meta import Raw
from generic.kube.delegating import DelegatingClient

_AGAIN_SECONDS = 0.2
T = TypeVar("T")


class PatientClient(DelegatingClient):
    """A Client that asks again where no API server answered, for at most `patience` seconds.

    Only for what may be asked twice: creating what a lost answer had created already returns it
    as it is, so names have to be one's own. A JSON patch that tests may fail the second time.
    """

    def __init__(self, inner: Client, patience: float = 60.0) -> None:
        super().__init__(inner)
        self._patience = patience

    def create(self, resource: Resource, obj: Raw) -> Raw:
        """See Client. Raises AlreadyExists where it was there before the first attempt."""
        attempts = 0

        def create() -> Raw:
            nonlocal attempts
            attempts += 1
            try:
                return self._inner.create(resource, obj)
            except AlreadyExists:
                if attempts == 1:
                    raise
                meta = obj["metadata"]
                return self._inner.get(resource, meta["name"], meta.get("namespace", ""))

        return self._around(create)

    def _around(self, request: Callable[[], T]) -> T:
        deadline = time.monotonic() + self._patience
        while True:
            try:
                return request()
            except (Unavailable, TooManyRequests):
                if time.monotonic() > deadline:
                    raise
                time.sleep(_AGAIN_SECONDS)
