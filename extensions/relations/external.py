"""External: no object in the cluster refers to the entry; only the finalizer ensures its removal.

An id of "" is saved before the first request to the register: from then on an entry may exist, and
a crash loses nothing. A force deletion sends no request to the register; the entry remains and is
recorded.
"""

from collections.abc import Iterable

from actuator import Actuator, Cluster, Context, ExternalResource
from extensions.relations.kinds import Entry
from extensions.relations.register import REGION, TYPE, Register


class Entries(Actuator[Entry]):
    """An entry in the register."""

    def __init__(self, register: Register) -> None:
        self._register = register

    def reconcile(self, ctx: Context, obj: Entry, cluster: Cluster) -> None:
        """Create or update the entry in the register; write its id to the status."""
        if obj.status.id is None:
            obj.status.id = ""
            ctx.save(obj)  # from now on an entry may exist
        ctx.check()
        obj.status.id = self._register.put(_owner(obj), obj.spec.text)

    def delete(self, ctx: Context, obj: Entry, cluster: Cluster) -> None:
        """Remove the entry from the register."""
        if obj.status.id is None:
            return  # no entry was ever requested
        ctx.check()
        self._register.remove(_owner(obj))
        obj.status.id = None

    def external_resources(self, obj: Entry) -> Iterable[ExternalResource]:
        """Return the entry, by id, or by owner if the id is unknown."""
        if obj.status.id is not None:
            yield ExternalResource(type=TYPE, id=obj.status.id, tags=_owner(obj), region=REGION)

    def still_exists(self, resource: ExternalResource) -> bool:
        """Whether the register has that id, or an entry of that owner. Raises ActuatorError."""
        return any(
            entry.id == resource.id if resource.id else entry.tags == resource.tags
            for entry in self._register.entries()
        )


def _owner(obj: Entry) -> dict[str, str]:
    """Return the tags of an entry; the uid distinguishes objects of the same name."""
    meta = obj.metadata
    return {"namespace": meta.namespace, "name": meta.name, "uid": meta.uid}
