"""ExternalResourceActuator: the base class of actuators that record what they create outside.

The record is in status.state, which control plane migration transfers; a Worker's is in
status.providerStatus, because its state belongs to gardenlet. A record with dependencies between
resources is a `Flow`.
"""

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any, TypeVar

import attrs

from actuator.cluster import Cluster
from actuator.codec import decode, encode
from actuator.errors import ActuatorError, DecodeError
from actuator.interface import Actuator, C, Context, ExternalResource
from actuator.meta import ConditionedStatus, KeepsUnknownFields, Object, Raw

K = TypeVar("K", bound=Object)
_KIND = "ExternalResources"


@attrs.define(kw_only=True)
class ExternalResources(KeepsUnknownFields):
    """The record: all resources that may exist outside the seed."""

    api_version: str = "actuator.extensions.gardener.cloud/v1alpha1"
    kind: str = _KIND
    resources: list[ExternalResource] = attrs.field(factory=list)


@attrs.define(kw_only=True)
class RecordedStatus(ConditionedStatus):
    """The status of a kind outside Gardener that has an ExternalResourceActuator."""

    state: Raw | None = None
    """The resources that the actuator recorded."""


class ExternalResourceActuator(Actuator[K, C]):
    """An actuator whose `external_resources` are those that it recorded, which `delete` deletes.

    The status of an own kind is a `RecordedStatus`. Do not also use `write_status` or a Flow. Where
    another base class has the `delete`, name that one first, and call `delete_recorded` in its
    hook.
    """

    @abstractmethod
    def delete_resource(self, ctx: Context[C], obj: K, resource: ExternalResource, /) -> None:
        """Delete one recorded resource, which may never have existed; that is success."""

    def delete(self, ctx: Context[C], obj: K, cluster: Cluster, /) -> None:
        """Delete the recorded resources; without any, send no request."""
        self.delete_recorded(ctx, obj)

    def delete_recorded(self, ctx: Context[C], obj: K) -> None:
        """Call `delete_resource` for each recorded resource, the last one first.

        The first error ends it. Raises ActuatorError for a status of another form.
        """
        for resource in reversed(self.recorded(obj)):
            ctx.check()
            self.delete_resource(ctx, obj, resource)

    def record(self, ctx: Context[Any], obj: K, *resources: ExternalResource) -> None:
        """Save all resources that may exist from now on, before they are requested.

        They replace the former record. Raises ApiError.
        """
        status: Any = getattr(obj, "status", None)
        setattr(status, _field(status), encode(ExternalResources(resources=[*resources])))
        ctx.save(obj)

    def recorded(self, obj: K) -> list[ExternalResource]:
        """Return the recorded resources. Raises ActuatorError for a status of another form."""
        status: Any = getattr(obj, "status", None)
        field = _field(status)
        stored: Raw | None = getattr(status, field)
        if not stored:
            return []
        try:
            found = decode(ExternalResources, stored)
        except DecodeError:
            found = None
        if found is None or stored.get("kind") != _KIND:
            raise ActuatorError(
                f"status.{field}: expected a record of external resources; restore the one that "
                "the extension wrote"
            )
        return found.resources

    def external_resources(self, obj: K, /) -> Iterable[ExternalResource]:
        """Return the recorded resources; one of type "unknown" for a status of another form."""
        try:
            return self.recorded(obj)
        except ActuatorError:
            return [ExternalResource(type="unknown")]


def _field(status: Any) -> str:
    return "state" if getattr(status, "OWNS_STATE", True) else "provider_status"
