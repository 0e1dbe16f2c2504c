"""All bugs of a migration in one drill: the first shoot has the first bug, and so on.

A manager's process imports the module by the name of the rehearsal, and so knows EACH.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from actuator.interface import Actuator, Client, Resource, WrappedActuator
from actuator.meta import Raw
from generic.kube.delegating import DelegatingClient
from generic.testing.drill.breaks import MIGRATION_BREAKS, Break
from tests.support.drills.moving_rehearsal import OneNetwork
from tests.support.drills.noted_calls import Noting

__all__ = ["EACH", "EachItsOwnBug"]

EACH = "each"
T = TypeVar("T")
SINGLE = [migration_break for name, migration_break in MIGRATION_BREAKS.items() if name != EACH]


def number(namespace: str) -> int | None:
    """The index of a shoot's bug; None for other namespaces."""
    last = namespace.rpartition("--s")[2]
    return (int(last) - 1) % len(SINGLE) if last.isdecimal() else None


class Buggy(WrappedActuator):
    """Has a different bug for each shoot."""

    def __init__(self, inner: Actuator[Any]) -> None:
        super().__init__(inner)
        self._buggy = [registration.actuator(inner) for registration in SINGLE]

    def _around(
        self, operation: str, work: Callable[..., T], ctx: Any, obj: Any, cluster: Any
    ) -> T:
        index = number(obj.metadata.namespace)
        actuator = self.inner if index is None else self._buggy[index]
        result: T = getattr(actuator, operation)(ctx, obj, cluster)
        return result


class BuggyClient(DelegatingClient):
    """A client with a different bug for the objects of each shoot."""

    def __init__(self, inner: Client) -> None:
        super().__init__(inner)
        self._clients = [item.client(inner) for item in SINGLE]

    def patch(
        self, resource: Resource, name: str, namespace: str, patch: Any, *, subresource: str = ""
    ) -> Raw:
        index = number(namespace)
        client = self._inner if index is None else self._clients[index]
        return client.patch(resource, name, namespace, patch, subresource=subresource)


class EachItsOwnBug(OneNetwork):
    """A rehearsal whose module knows EACH; its calls are noted."""

    def actuators(self) -> list[Actuator[Any]]:
        return [Noting(actuator) for actuator in super().actuators()]


MIGRATION_BREAKS[EACH] = Break(text="each shoot has its own", actuator=Buggy, client=BuggyClient)
