"""Stripping: the default force_delete deletes declared seed objects, regardless of their owners.

Steps for each object of each declared group: confirm the deletion by annotation if the kind is
protected, delete, then strip the declared finalizers.

Guarantees:
- Namespaced objects are listed, deleted and stripped only in the given namespace, never in all;
  cluster-scoped objects only where they match the group's label selector.
- Finalizers are removed only after deletionTimestamp is set: then no finalizer can be added.
- Only declared finalizers are stripped; each one is reported.
- A deleted object, or a resource type that does not exist, counts as success.

Assumptions: the API server answers. The shoot's API server, the cloud and the owners of the
finalizers need not.
Errors: ActuatorError with the remaining objects and their finalizers; ApiError. The reconciler
retries both, and every step is idempotent.

Source: Gardener documentation, "Force Deletion" (the cleanup of an extension in the seed).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct

from actuator.errors import ActuatorError, ConfigurationError, ErrorCode, NotFound
from actuator.interface import Client, SeedObjects
from actuator.meta import Raw
from generic.kube.deleting import request_deletion
from generic.kube.finalizers import Stale, patch_removing, patch_tested

_MAX_ROUNDS = 5
OUT_OF_SCOPE = (
    "{} is cluster-scoped, but its seed objects {} are namespaced: "
    "delete them by namespace and name in force_delete"
)


class Stripped(Struct, frozen=True, kw_only=True):
    """A finalizer of another controller that a force deletion removed."""

    resource: str
    namespace: str
    name: str
    finalizer: str


class HeldObject(Struct, frozen=True, kw_only=True):
    """A seed object that still exists, and its finalizers that were not declared."""

    resource: str
    name: str
    finalizers: tuple[str, ...]

    @classmethod
    def of(cls, group: SeedObjects, meta: Raw) -> "HeldObject":
        """Describe an object of the group by its metadata."""
        finalizers = tuple(meta.get("finalizers") or ())
        return cls(resource=str(group.resource), name=meta["name"], finalizers=finalizers)

    def __str__(self) -> str:
        holders = f"held by {', '.join(self.finalizers)}" if self.finalizers else "being deleted"
        return f"{self.resource} {self.name} ({holders})"


class SeedObjectsHeld(ActuatorError):
    """Seed objects that a force deletion has to remove still exist."""

    def __init__(self, held: Sequence[HeldObject]) -> None:
        super().__init__(
            f"Seed objects still exist: {'; '.join(map(str, held))}",
            codes=[ErrorCode.ERR_CLEANUP_CLUSTER_RESOURCES],
        )
        self.held = tuple(held)


def delete_seed_objects(
    client: Client,
    namespace: str,
    groups: Iterable[SeedObjects],
    on_stripped: Callable[[Stripped], None],
    kind: str = "this object",
) -> None:
    """Delete all objects of these groups; `on_stripped` receives each removed finalizer.

    `kind` names the kind of the deleted object. Raises SeedObjectsHeld, ApiError, or
    ConfigurationError for a namespaced group of an object without a namespace.
    """
    held: list[HeldObject] = []
    for group in groups:
        if group.resource.namespaced and not namespace:
            raise ConfigurationError(OUT_OF_SCOPE.format(kind, group.resource))
        held.extend(_delete_group(client, namespace, group, on_stripped))
    if held:
        raise SeedObjectsHeld(held)


def _delete_group(
    client: Client, namespace: str, group: SeedObjects, on_stripped: Callable[[Stripped], None]
) -> list[HeldObject]:
    """Delete and strip until the list is empty, or no progress is made."""
    for _ in range(_MAX_ROUNDS):
        objects = list_group(client, namespace, group)
        if not objects:
            return []
        for obj in objects:
            request_deletion(client, group.resource, obj["metadata"])
            for stripped in _strip(client, group, obj["metadata"]):
                on_stripped(stripped)
    return [HeldObject.of(group, obj["metadata"]) for obj in list_group(client, namespace, group)]


def list_group(client: Client, namespace: str, group: SeedObjects) -> list[Raw]:
    """Return the objects of the group; none if their kind is not installed. Raises ApiError."""
    where = namespace if group.resource.namespaced else ""
    try:
        return client.list(group.resource, where, label_selector=group.label_selector)
    except NotFound:  # this type was never installed here
        return []


def _strip(client: Client, group: SeedObjects, meta: Raw) -> Iterator[Stripped]:
    name = meta["name"]
    namespace = meta.get("namespace", "")
    try:
        current = client.get(group.resource, name, namespace)["metadata"]
        finalizers: list[str] = current.get("finalizers") or []
        stripped = [f for f in finalizers if f in group.finalizers]
        deleting = current.get("deletionTimestamp") is not None
        if current["uid"] != meta["uid"] or not deleting or not stripped:
            return
        patch = patch_removing(stripped, meta["uid"], finalizers)
        patch_tested(client, group.resource, name, namespace, patch)
    except (NotFound, Stale):
        return  # deleted, or processed again in the next round
    for finalizer in stripped:
        yield Stripped(
            resource=str(group.resource), namespace=namespace, name=name, finalizer=finalizer
        )
