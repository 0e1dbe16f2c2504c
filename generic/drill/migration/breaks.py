"""`--break RULE` for the migration drill: what a buggy extension or framework would do."""

from __future__ import annotations

from functools import partial
from typing import Any

from actuator.errors import ActuatorError
from actuator.interface import Result, WrappedActuator
from actuator.meta import Raw
from generic.drill.breaks import FINALIZERS, Break, RewritingClient, make_twin

__all__ = ["MIGRATION_BREAKS"]


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


MIGRATION_BREAKS: dict[str, Break] = {
    "M1": Break(text="no extension can restore", actuator=_NeverRestores),
    "M2": Break(text="restore makes everything anew", actuator=_MakesTwoOnRestore),
    "M3": Break(text="the source deletes what it hands over", actuator=_DeletesOnMigrate),
    "M4": Break(text="state gets lost", actuator=_ForgetsState),
    "M5": Break(
        text="finalizers stay on", client=partial(RewritingClient, rewrite=_keeping_finalizers)
    ),
    "M6": Break(text="deletion deletes nothing", actuator=_DeletesNothing),
}
