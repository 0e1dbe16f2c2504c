"""External: nothing in the cluster knows the entry, so only the finalizer keeps it from staying.

An id of "" is saved before the register is asked for anything: from there on an entry may exist,
and a crash loses nothing. A forced deletion asks nothing of the register; the entry stays and is
on record.
"""

from __future__ import annotations

from collections.abc import Iterable

from actuator import Actuator, Cluster, Context, ExternalResource, FieldProblem
from extensions.relations.kinds import Entry, nothing_to_configure
from extensions.relations.register import REGION, TYPE, Register


class Entries(Actuator[Entry]):
    """An entry in the register."""

    def __init__(self, register: Register) -> None:
        self._register = register

    def validate(self, ctx: Context, obj: Entry, cluster: Cluster) -> Iterable[FieldProblem]:
        """What is wrong with providerConfig."""
        return nothing_to_configure(obj.spec)

    def reconcile(self, ctx: Context, obj: Entry, cluster: Cluster) -> None:
        """Afterwards the register has the entry, and the status its id."""
        if obj.status.id is None:
            obj.status.id = ""
            ctx.save(obj)  # from here on there may be an entry
        ctx.check()
        obj.status.id = self._register.put(_owner(obj), obj.spec.text)

    def delete(self, ctx: Context, obj: Entry, cluster: Cluster) -> None:
        """Afterwards the register has no entry of it."""
        if obj.status.id is None:
            return  # it was never asked for one
        ctx.check()
        self._register.remove(_owner(obj))
        obj.status.id = None

    def external_resources(self, obj: Entry) -> Iterable[ExternalResource]:
        """The entry: by its id, or by its owner where the id is not known."""
        if obj.status.id is not None:
            yield ExternalResource(type=TYPE, id=obj.status.id, tags=_owner(obj), region=REGION)

    def still_exists(self, resource: ExternalResource) -> bool:
        """Whether the register has that id, or an entry of that owner. Raises RegisterError."""
        return any(
            one.id == resource.id if resource.id else one.tags == resource.tags
            for one in self._register.entries()
        )


def _owner(obj: Entry) -> dict[str, str]:
    """The mark of an entry; the uid tells it from another object of the name."""
    meta = obj.metadata
    return {"namespace": meta.namespace, "name": meta.name, "uid": meta.uid}
