"""`--break RULE` for the migration drill: what a buggy extension or framework would do.

`--break each` has all of them in one drill: the first shoot suffers from the first, and so on.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from actuator.errors import ActuatorError
from actuator.interface import Actuator, Client, Resource, Result, WrappedActuator
from actuator.meta import Raw
from generic.testing.drill.breaks import FINALIZERS, Break, RewritingClient, make_twin

__all__ = ["EACH", "MIGRATION_BREAKS"]

EACH = "each"
T = TypeVar("T")


class _NeverRestores(WrappedActuator):
    """Does not know how to go on from somebody else's state."""

    def restore(self, ctx: Any, obj: Any, cluster: Any, /) -> Result | None:
        """See Actuator."""
        raise ActuatorError("cannot restore")


class _MakesTwoOnRestore(WrappedActuator):
    """Makes everything anew in the destination."""

    def restore(self, ctx: Any, obj: Any, cluster: Any, /) -> Result | None:
        """See Actuator."""
        result = self.inner.restore(ctx, obj, cluster)
        make_twin(self.inner, ctx, obj, cluster)
        return result


class _DeletesOnMigrate(WrappedActuator):
    """Takes migration for a deletion."""

    def migrate(self, ctx: Any, obj: Any, cluster: Any, /) -> None:
        """See Actuator."""
        self.inner.migrate(ctx, obj, cluster)
        self.inner.delete(ctx, obj, cluster)


class _ForgetsState(WrappedActuator):
    """Restores as if nothing were known."""

    def restore(self, ctx: Any, obj: Any, cluster: Any, /) -> Result | None:
        """See Actuator."""
        obj.status.state = None
        return self.inner.restore(ctx, obj, cluster)


class _DeletesNothing(WrappedActuator):
    """Says that everything is gone."""

    def delete(self, ctx: Any, obj: Any, cluster: Any, /) -> None:
        """See Actuator."""


def _keeping_finalizers(op: Raw) -> Raw | None:
    """Never lets go of an object."""
    return None if op["op"] in ("replace", "remove") and op["path"] == FINALIZERS else op


class _EachItsOwn(WrappedActuator):
    """Has another bug for each shoot."""

    def __init__(self, inner: Actuator[Any]) -> None:
        super().__init__(inner)
        self._buggy = [one.actuator(inner) for one in _BREAKS.values()]

    def _around(
        self, operation: str, work: Callable[..., T], ctx: Any, obj: Any, cluster: Any
    ) -> T:
        result: T = getattr(self._of(obj), operation)(ctx, obj, cluster)
        return result

    def _of(self, obj: Any) -> Actuator[Any]:
        number = _number(obj.metadata.namespace)
        return self.inner if number is None else self._buggy[number]


class _EachItsOwnClient:
    """A client that is another one for the objects of each shoot."""

    def __init__(self, inner: Client) -> None:
        self._inner = inner
        self._clients = [one.client(inner) for one in _BREAKS.values()]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def patch(
        self, resource: Resource, name: str, namespace: str, patch: Any, *, subresource: str = ""
    ) -> Raw:
        """See Client."""
        number = _number(namespace)
        client = self._inner if number is None else self._clients[number]
        patched: Raw = client.patch(resource, name, namespace, patch, subresource=subresource)
        return patched


def _number(namespace: str) -> int | None:
    """Which of the breaks a shoot suffers from; None for what belongs to no shoot."""
    last = namespace.rpartition("--s")[2]
    return (int(last) - 1) % len(_BREAKS) if last.isdecimal() else None


_BREAKS: dict[str, Break] = {
    "M1": Break(text="no extension can restore", actuator=_NeverRestores),
    "M2": Break(text="restore makes everything anew", actuator=_MakesTwoOnRestore),
    "M3": Break(text="the source deletes what it hands over", actuator=_DeletesOnMigrate),
    "M4": Break(text="state gets lost", actuator=_ForgetsState),
    "M5": Break(
        text="finalizers stay on", client=partial(RewritingClient, rewrite=_keeping_finalizers)
    ),
    "M6": Break(text="deletion deletes nothing", actuator=_DeletesNothing),
}
MIGRATION_BREAKS: dict[str, Break] = {
    **_BREAKS,
    EACH: Break(
        text="one shoot after the other, each in another way",
        actuator=_EachItsOwn,
        client=_EachItsOwnClient,
    ),
}
