"""The records that a flow keeps in status.state: all resources that may exist, and their order.

A record says all that a deletion needs, so no configuration has to be readable then. The state of a
former extension is converted in a subclass of `FlowState`: see `from_stored` and `to_stored`.

Not here: requests to a provider, and the order of tasks (`flow`).
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from copy import deepcopy
from typing import Self

import attrs

from actuator.codec import decode, encode
from actuator.errors import ActuatorError, DecodeError, ErrorCode
from actuator.interface import ExternalResource
from actuator.meta import DefaultStatus, KeepsUnknownFields, Object, Raw

Ids = Mapping[str, str]
"""The ids of resources that exist, by the names of their tasks."""


@attrs.define(kw_only=True)
class ResourceRecord(KeepsUnknownFields):
    """One resource; `id` is "" from before its creation until its id is known."""

    name: str
    type: str
    id: str = ""
    needs: list[str] = attrs.field(factory=list)
    """The tasks whose resources are deleted after this one."""
    existing: bool = False
    """Whether it has another owner: it is never deleted, and never reported as remaining."""


@attrs.define(kw_only=True)
class FlowState(KeepsUnknownFields):
    """status.state of an object whose external resources a flow creates."""

    api_version: str = "actuator.extensions.gardener.cloud/v1alpha1"
    kind: str = "FlowState"
    resources: list[ResourceRecord] = attrs.field(factory=list)

    @classmethod
    def from_stored(cls, stored: Raw) -> Self:
        """Convert status.state; override it to read the state of a former extension, too.

        Raises DecodeError, which is reported as an error of the object.
        """
        return decode(cls, stored)

    def to_stored(self, before: Raw) -> Raw:
        """Return the new status.state, for the stored one `before` ({} without).

        Override it to write the state of a former extension, which can then take over again.
        """
        return encode(self)

    @classmethod
    def read(cls, obj: Object) -> Self | None:
        """Return the state of the object; None if no resource was ever requested.

        Raises ActuatorError if it is lost, or cannot be read.
        """
        status = status_of(obj)
        if status.state is None:
            if status.provider_status:
                raise ActuatorError(
                    f"{obj.KIND.name} {obj.key}: status.providerStatus is set, but status.state is "
                    "missing; restore status.state from a backup",
                    codes=[ErrorCode.ERR_CONFIGURATION_PROBLEM],
                )
            return None
        try:
            return cls.from_stored(status.state)
        except DecodeError as error:
            raise ActuatorError(f"status.state is no {cls.__name__}: {error}") from error

    def write(self, obj: Object) -> None:
        """Set status.state of the object; `Context.save` sends it."""
        status = status_of(obj)
        status.state = deepcopy(self.to_stored(status.state or {}))

    @property
    def ids(self) -> Ids:
        """The known ids."""
        return {record.name: record.id for record in self.resources if record.id}

    def get(self, name: str) -> ResourceRecord | None:
        """Return the record of a task."""
        return next((record for record in self.resources if record.name == name), None)

    def external_resources(
        self, tags: Callable[[str], dict[str, str]], region: str = ""
    ) -> Iterator[ExternalResource]:
        """Yield all resources that may exist; `tags` returns the tags of a task's resource."""
        for record in self.resources:
            if not record.existing:
                yield ExternalResource(
                    type=record.type, id=record.id, tags=tags(record.name), region=region
                )


def dependents(records: Iterable[ResourceRecord], name: str) -> set[str]:
    """Return the name, and all records that need it, directly or through others."""
    needed_by: dict[str, list[str]] = {}
    for record in records:
        for need in record.needs:
            needed_by.setdefault(need, []).append(record.name)
    return _reachable([name], needed_by)


def obsolete(
    records: Iterable[ResourceRecord], wanted: Collection[str]
) -> tuple[list[str], list[str]]:
    """Return the records of tasks that are no longer wanted: to delete first, and at last.

    A resource that a wanted one needed until now is deleted at last: after the wanted one was
    updated, and no longer uses it.
    """
    needs = {record.name: record.needs for record in records}
    used = _reachable([name for name in needs if name in wanted], needs)
    gone = [name for name in needs if name not in wanted]
    return [name for name in gone if name not in used], [name for name in gone if name in used]


def _reachable(start: Iterable[str], edges: Mapping[str, Iterable[str]]) -> set[str]:
    found: set[str] = set()
    todo = [*start]
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += edges.get(name, ())
    return found


def status_of(obj: Object) -> DefaultStatus:
    """Return the status of `obj`. Raises TypeError for a kind whose state an extension has not."""
    status: object = getattr(obj, "status", None)
    if not isinstance(status, DefaultStatus) or not status.OWNS_STATE:
        raise TypeError(f"{type(obj).__name__} has no state of its own, so a flow cannot be used")
    return status
