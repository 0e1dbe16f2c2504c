"""Reader: reads from the API server, goes on where it may not, and remembers what that was."""

from __future__ import annotations

from actuator.errors import ApiError, Forbidden, NotFound
from actuator.interface import Client, Resource
from actuator.meta import Raw
from generic.tools.explain.facts import Unread

__all__ = ["Reader"]

_NO_SERVER = frozenset({0, 401})
"""Statuses with which asking for something else is pointless: no answer, no credentials."""


class Reader:
    """Has no way to write. `unread` grows where the API server refuses."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.unread: list[Unread] = []

    def get(self, resource: Resource, name: str, namespace: str = "") -> Raw | None:
        """The object, None where it may not be read. Raises NotFound, or ApiError for no server."""
        try:
            return self._client.get(resource, name, namespace)
        except NotFound:
            raise
        except ApiError as error:
            where = f"{namespace}/{name}" if namespace else name
            self._note("get", resource, where, error)
            return None

    def list(
        self, resource: Resource, namespace: str = "", *, label_selector: str = ""
    ) -> list[Raw]:
        """The objects, none where they may not be read.

        Raises NotFound where the API server does not know the type, or ApiError for no server.
        """
        try:
            return self._client.list(resource, namespace, label_selector=label_selector)
        except NotFound:
            raise
        except ApiError as error:
            where = f"in namespace {namespace}" if namespace else ""
            self._note("list", resource, where, error)
            return []

    def _note(self, verb: str, resource: Resource, where: str, error: ApiError) -> None:
        if error.status in _NO_SERVER:
            raise error
        reason = "forbidden (403)" if isinstance(error, Forbidden) else error.message
        unread = Unread(verb=verb, resource=str(resource), where=where, reason=reason)
        if unread not in self.unread:
            self.unread.append(unread)
