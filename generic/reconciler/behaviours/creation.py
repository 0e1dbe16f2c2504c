"""DNSRecord: skips the deletion of a record that was never created.

The condition `Created` records whether creation ever succeeded (Gardener's extension library,
`extensions/pkg/controller/dnsrecord`): False after a failed first attempt; True is final.
A deletion with `Created=False` does not call the actuator, so that credentials that were wrong
from the start block nothing. During the next attempt at such a record the condition is Unknown:
after a crash following a successful call, the deletion must still delete the record.
"""

from collections.abc import Iterable
from typing import Any

from actuator.cluster import Cluster
from actuator.conditions import find_condition, set_condition
from actuator.errors import Cancelled
from actuator.interface import Context, ExternalResource, Result, WrappedActuator
from actuator.meta import Condition

CREATED = "Created"
_MESSAGES = {
    "True": ("RecordCreated", "The record was created."),
    "False": ("CreationFailed", "The record has not been created yet."),
    "Unknown": ("CreationTried", "The record is being created."),
}


class RemembersCreation(WrappedActuator):
    """Keeps the condition `Created`, and skips the deletion of records never created."""

    def reconcile(self, ctx: Context, obj: Any, cluster: Cluster, /) -> Result | None:
        """See Actuator."""
        return self._create(ctx, obj, cluster, restored=False)

    def restore(self, ctx: Context, obj: Any, cluster: Cluster, /) -> Result | None:
        """See Actuator."""
        return self._create(ctx, obj, cluster, restored=True)

    def delete(self, ctx: Context, obj: Any, cluster: Cluster, /) -> None:
        """Delete the record, unless it was never created."""
        return self.inner.delete(ctx, obj, cluster) if _created(obj) != "False" else None

    def external_resources(self, obj: Any, /) -> Iterable[ExternalResource]:
        """Return the external resources; none if the record was never created."""
        return [] if _created(obj) == "False" else self.inner.external_resources(obj)

    def _create(self, ctx: Context, obj: Any, cluster: Cluster, *, restored: bool) -> Result | None:
        if _created(obj) == "False":
            _say(ctx, obj, "Unknown")
            ctx.save(obj)
        operate = self.inner.restore if restored else self.inner.reconcile
        try:
            result = operate(ctx, obj, cluster)
        except Cancelled:
            raise  # unknown how far the call came
        except BaseException:
            if _created(obj) != "True":
                _say(ctx, obj, "False")
            raise
        _say(ctx, obj, "True")
        return result


def _created(obj: Any) -> str:
    condition = find_condition(obj.status.conditions, CREATED)
    return "" if condition is None else condition.status


def _say(ctx: Context, obj: Any, status: str) -> None:
    reason, message = _MESSAGES[status]
    wanted = Condition(type=CREATED, status=status, reason=reason, message=message)
    obj.status.conditions = set_condition(obj.status.conditions, wanted, ctx.clock.now())
