"""PatientClient: for those who go on while the API server is down, refuses, or comes back."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from actuator.errors import AlreadyExists, TooManyRequests, Unavailable
from actuator.interface import Client, Propagation, Resource
from actuator.meta import Raw

__all__ = ["PatientClient"]

_AGAIN_SECONDS = 0.2
T = TypeVar("T")


class PatientClient:
    """A Client that asks again where no API server answered, for at most `patience` seconds.

    Only for what may be asked twice: creating what a lost answer had created already returns it
    as it is, so names have to be one's own. A JSON patch that tests may fail the second time.
    """

    def __init__(self, inner: Client, patience: float = 60.0) -> None:
        self._inner = inner
        self._patience = patience

    def get(self, resource: Resource, name: str, namespace: str = "") -> Raw:
        """See Client."""
        return self._insist(lambda: self._inner.get(resource, name, namespace))

    def list(
        self, resource: Resource, namespace: str = "", *, label_selector: str = ""
    ) -> list[Raw]:
        """See Client."""
        return self._insist(
            lambda: self._inner.list(resource, namespace, label_selector=label_selector)
        )

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

        return self._insist(create)

    def apply(self, resource: Resource, obj: Raw, *, field_manager: str = "actuator") -> Raw:
        """See Client."""
        return self._insist(lambda: self._inner.apply(resource, obj, field_manager=field_manager))

    def patch(
        self,
        resource: Resource,
        name: str,
        namespace: str,
        patch: Sequence[Raw] | Raw,
        *,
        subresource: str = "",
    ) -> Raw:
        """See Client."""
        return self._insist(
            lambda: self._inner.patch(resource, name, namespace, patch, subresource=subresource)
        )

    def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str = "",
        *,
        uid: str | None = None,
        propagation: Propagation = "Background",
    ) -> None:
        """See Client."""
        self._insist(
            lambda: self._inner.delete(resource, name, namespace, uid=uid, propagation=propagation)
        )

    def _insist(self, ask: Callable[[], T]) -> T:
        deadline = time.monotonic() + self._patience
        while True:
            try:
                return ask()
            except (Unavailable, TooManyRequests):
                if time.monotonic() > deadline:
                    raise
                time.sleep(_AGAIN_SECONDS)
