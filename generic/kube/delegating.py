"""DelegatingClient: wraps another Client, with one method to override for all requests."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from actuator.interface import Client

T = TypeVar("T")


def _delegated(verb: str) -> Any:
    """Return a method with the parameters of the method of Client."""

    @wraps(getattr(Client, verb))
    def request(self: "DelegatingClient", *given: Any, **named: Any) -> Any:
        return self._around(lambda: getattr(self._inner, verb)(*given, **named))

    return request


class DelegatingClient:
    """A Client that passes each request to the inner one through `_around`.

    It has exactly the methods of `Client`, even if the inner client has more.
    """

    def __init__(self, inner: Client) -> None:
        self._inner = inner

    def _around(self, request: Callable[[], T]) -> T:
        """Send the request and return its answer; override to check, delay or retry."""
        return request()

    get = _delegated("get")
    list = _delegated("list")
    create = _delegated("create")
    apply = _delegated("apply")
    patch = _delegated("patch")
    delete = _delegated("delete")
