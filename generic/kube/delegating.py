"""DelegatingClient: wraps another Client, with one method to override for all requests."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from actuator.interface import Client, Propagation, Resource
from actuator.meta import Raw

T = TypeVar("T")


class DelegatingClient:
    """A Client that passes each request to the inner one through `_around`.

    It has exactly the methods of `Client`, even if the inner client has more.
    """

    def __init__(self, inner: Client) -> None:
        self._inner = inner

    def _around(self, request: Callable[[], T]) -> T:
        """Send the request and return its answer; override to check, delay or retry."""
        return request()

    def get(self, resource: Resource, name: str, namespace: str = "") -> Raw:
        """See Client."""
        return self._around(lambda: self._inner.get(resource, name, namespace))

    def list(
        self, resource: Resource, namespace: str = "", *, label_selector: str = ""
    ) -> list[Raw]:
        """See Client."""
        return self._around(
            lambda: self._inner.list(resource, namespace, label_selector=label_selector)
        )

    def create(self, resource: Resource, obj: Raw) -> Raw:
        """See Client."""
        return self._around(lambda: self._inner.create(resource, obj))

    def apply(self, resource: Resource, obj: Raw, *, field_manager: str = "actuator") -> Raw:
        """See Client."""
        return self._around(lambda: self._inner.apply(resource, obj, field_manager=field_manager))

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
        return self._around(
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
        self._around(
            lambda: self._inner.delete(resource, name, namespace, uid=uid, propagation=propagation)
        )
