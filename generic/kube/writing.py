"""Writes an object whole: fields of the previous write that are no longer wanted are removed.

Server-side apply removes the fields that its manager set before and omits now. Fields of another
manager stay, also those that the same program wrote by another kind of request, and those of a
Go extension that is replaced. So the fields of such former writers are handed over to our manager
before the first apply (Kubernetes documentation, "Server-Side Apply", "Transferring ownership
between managers").

Guarantees:
- Finalizers never belong to our manager, so that no apply removes one.
- Fields of other controllers stay: their managers set no field that we want.
- An object that was deleted since it was read is not created again.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from actuator.interface import Client, Resource
from actuator.meta import Raw
from generic.kube.client import FIELD_MANAGER
from generic.kube.finalizers import patch_latest
from generic.kube.patches import add, escape, replace, test, test_version

__all__ = ["write"]


def write(
    client: Client,
    resource: Resource,
    wanted: Raw,
    found: Raw | None,
    *,
    finalizers: Sequence[str] = (),
) -> Raw:
    """Make the object as `wanted`, which names no finalizers; return it.

    `found` is the object as it was read, None if it does not exist: then it is created with these
    `finalizers`. Raises AlreadyExists or Conflict if the object changed meanwhile, and ApiError.
    """
    meta: Raw = wanted["metadata"]
    if found is None and finalizers:
        # Not by apply, whose manager would own them: its next apply would remove them.
        return client.create(resource, {**wanted, "metadata": {**meta, "finalizers": finalizers}})
    if found is not None:  # an apply then removes what is not wanted
        patch_latest(client, resource, found, lambda now: _changes(now, wanted))
        if uid := found["metadata"].get("uid"):
            meta = {**meta, "uid": uid}
    return client.apply(resource, {**wanted, "metadata": meta})


def _changes(found: Raw, wanted: Raw) -> list[Raw]:
    """Return the patch that hands over managed fields and empties maps, if that is needed.

    An apply that removes the whole content of a map, and wants an empty one, writes null, which
    the schemas of most kinds refuse.
    """
    meta = found["metadata"]
    managed: Sequence[Raw] = meta.get("managedFields") or []
    new = handed_over(managed, wanted)
    entries = new or managed
    emptied = [
        replace("".join(f"/{escape(key)}" for key in keys), {})
        for keys in _emptied(wanted, found)
        if {entry["manager"] for entry in entries if _sets_inside(entry["fieldsV1"], keys)}
        == {FIELD_MANAGER}
    ]
    changes = [*([] if new is None else [add("/metadata/managedFields", new)]), *emptied]
    return [test("/metadata/uid", meta["uid"]), test_version(found), *changes] if changes else []


def _emptied(wanted: Raw, found: Raw) -> Iterator[tuple[str, ...]]:
    """Yield the keys that lead to each map that has to become empty, but for metadata."""
    for key, value in wanted.items():
        there = found.get(key)
        if isinstance(value, dict) and isinstance(there, dict) and there and key != "metadata":
            if not value:
                yield (key,)
            for keys in _emptied(value, there):
                yield key, *keys


def _sets_inside(fields: Raw, keys: Sequence[str]) -> bool:
    for key in keys:
        fields = fields.get(f"f:{key}") or {}
    return not fields.keys() <= {"."}


def handed_over(managed: Sequence[Raw], wanted: Raw) -> list[Raw] | None:
    """Return the managed fields with those of former writers in our manager's; None if it has them.

    A former writer is our manager with requests other than apply, at any time; and before our
    first apply every other manager that set a field that we want, with such requests.
    """
    head = {"manager": FIELD_MANAGER, "operation": "Apply", "apiVersion": wanted["apiVersion"]}
    ours = [item for item in managed if head.items() <= item.items()]
    is_first = not any(
        (item["manager"], item["operation"]) == (FIELD_MANAGER, "Apply") for item in managed
    )
    former = [item for item in managed if item not in ours and _is_former(item, wanted, is_first)]
    if not former:
        return None
    fields: Raw = {}
    for entry in [*ours, *former]:
        fields = _union(fields, _split(entry["fieldsV1"])[0])
    kept = [item for item in managed if item not in ours and item not in former]
    guards = [{**item, "fieldsV1": _split(item["fieldsV1"])[1]} for item in former]
    kept += [guard for guard in guards if guard["fieldsV1"]]
    return [*kept, {**head, "fieldsType": "FieldsV1", "fieldsV1": fields}]


def _is_former(entry: Raw, wanted: Raw, is_first: bool) -> bool:
    if entry.get("operation") != "Update" or entry.get("subresource"):
        return False
    if entry.get("apiVersion") != wanted["apiVersion"]:  # its paths may be others
        return False
    theirs = _split(entry.get("fieldsV1") or {})[0]
    return (is_first or entry.get("manager") == FIELD_MANAGER) and _sets_any(theirs, wanted)


def _split(fields: Raw) -> tuple[Raw, Raw]:
    """Return a set of fields without the finalizers, and the set of these alone."""
    meta: Raw = fields.get("f:metadata") or {}
    guards = {key: value for key, value in meta.items() if key == "f:finalizers"}
    others = {key: value for key, value in meta.items() if key not in guards}
    rest = {key: value for key, value in fields.items() if key != "f:metadata"}
    return (
        {**rest, **({"f:metadata": others} if others else {})},
        {"f:metadata": guards} if guards else {},
    )


def _sets_any(fields: Raw, wanted: Any, *, in_metadata: bool = False) -> bool:
    """Whether the set (FieldsV1) has a field of `wanted`.

    "f:" precedes a name, "k:" and others an item of a list, and "." is the map or list itself. Its
    manager created it; in metadata this can be any controller.
    """
    for key, inner in fields.items():
        if not key.startswith("f:"):
            if key != "." or not in_metadata:
                return True
        elif isinstance(wanted, dict) and key[2:] in wanted:
            is_of_metadata = in_metadata or key == "f:metadata"
            if not inner or _sets_any(inner, wanted[key[2:]], in_metadata=is_of_metadata):
                return True
    return False


def _union(fields: Raw, more: Raw) -> Raw:
    both = {key: _union(fields[key], more[key]) for key in fields.keys() & more.keys()}
    return {**fields, **more, **both}
