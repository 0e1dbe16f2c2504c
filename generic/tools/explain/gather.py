"""Finding out everything about one object, or how all objects of a namespace stand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime

import attrs

from actuator.errors import ActuatorError, NotFound
from actuator.interface import Client, resource_of
from actuator.meta import Kind, Raw
from actuator.v1alpha1 import BackupEntry
from generic.kube.headers import as_dict, header, request_of
from generic.manager.registry import Registration
from generic.reconciler.reporter import STATUS_NOT_WRITTEN
from generic.tools.explain.facts import Explanation, Orphaned, Overview, Removal, Standing, Webhook
from generic.tools.explain.owners import as_found
from generic.tools.explain.reader import Reader
from generic.tools.explain.records import orphans, warnings
from generic.tools.explain.removal import removal, serving
from generic.tools.explain.standing import deleting_since, stand
from generic.tools.explain.surroundings import NAMESPACES, Surroundings
from generic.tools.explain.webhooks import Target, webhooks

__all__ = ["explain", "overview"]


def explain(
    client: Client,
    kind: Kind,
    namespace: str,
    name: str,
    now: datetime,
    registrations: Sequence[Registration] | None = None,
) -> Explanation:
    """Everything about one object; `registrations` are those of its extension, if it is given.

    Raises ActuatorError where the object is not there or may not be read, ApiError where the API
    server does not answer.
    """
    reader = Reader(client)
    obj = _find(reader, kind, namespace, name)
    around = Surroundings(client, reader, namespace)
    head = header(obj)
    by = serving(registrations or (), kind, request_of(obj), head)
    served = _as_served(kind, obj, by)
    standing = stand(served, obj, around, now)
    told = warnings(reader, standing.subject)
    refused = tuple(
        f"the API server refuses our patches: {one.message}"
        for one in told
        if one.reason == STATUS_NOT_WRITTEN
    )
    standing = attrs.evolve(standing, blockers=(*refused[:1], *standing.blockers))
    notes: list[str] = []
    if registrations is not None and by is None:
        notes.append(f"the given extension serves no {kind.name} of type {head.type!r}")
    return Explanation(
        standing=standing,
        removal=_removal(reader, by, obj, namespace),
        webhooks=tuple(_webhooks(reader, served, obj, around)),
        orphans=_orphans(reader, standing, notes),
        warnings=told,
        notes=tuple(notes),
        unread=tuple(reader.unread),
    )


def overview(
    client: Client,
    kinds: Iterable[Kind],
    namespace: str,
    now: datetime,
    registrations: Sequence[Registration] = (),
) -> Overview:
    """How the objects of these kinds stand: those in the namespace, and its BackupEntries.

    Raises ActuatorError where there is no such namespace, ApiError where the API server does not
    answer.
    """
    reader = Reader(client)
    try:
        found = reader.get(NAMESPACES, namespace) or {}
    except NotFound:
        raise ActuatorError(f"there is no namespace {namespace}") from None
    around, nowhere = Surroundings(client, reader, namespace), Surroundings(client, reader, "")
    standings: list[Standing] = []
    for kind in kinds:
        for obj in _objects(reader, kind, namespace):
            by = serving(registrations, kind, request_of(obj), header(obj))
            place = around if kind.namespaced else nowhere
            standings.append(stand(_as_served(kind, obj, by), obj, place, now))
    meta = as_dict(found.get("metadata"))
    return Overview(
        namespace=namespace,
        deleting=deleting_since(meta.get("deletionTimestamp"), now),
        remaining=tuple(_remaining(found)),
        objects=tuple(sorted(standings, key=_trouble_first)),
        unread=tuple(reader.unread),
    )


def _find(reader: Reader, kind: Kind, namespace: str, name: str) -> Raw:
    where = f"{namespace}/{name}" if namespace else name
    try:
        obj = reader.get(resource_of(kind), name, namespace)
    except NotFound:
        raise ActuatorError(f"there is no {kind.name} {where}") from None
    if obj is None:
        raise ActuatorError(str(reader.unread[0]))
    return obj


def _as_served(kind: Kind, obj: Raw, by: Registration | None) -> Kind:
    """The kind, with the finalizer that its extension uses for this object."""
    return as_found(kind, header(obj).finalizers) if by is None else by.kind


def _removal(reader: Reader, by: Registration | None, obj: Raw, namespace: str) -> Removal | None:
    return None if by is None else removal(reader, by, obj, namespace)


def _webhooks(reader: Reader, kind: Kind, obj: Raw, around: Surroundings) -> Iterator[Webhook]:
    namespace = around.namespace()
    labels = None if namespace is None else as_dict(namespace["metadata"].get("labels"))
    yield from webhooks(reader, Target(kind, header(obj).labels, labels))


def _orphans(reader: Reader, standing: Standing, notes: list[str]) -> tuple[Orphaned, ...]:
    try:
        return tuple(orphans(reader, standing.subject))
    except NotFound:
        notes.append("the kind Orphan is not installed: no force deletion can be recorded here")
        return ()


def _objects(reader: Reader, kind: Kind, namespace: str) -> Iterator[Raw]:
    """Those of the namespace; of kinds without one, only those that are named after it."""
    with suppress(NotFound):  # the kind is not installed
        if kind.namespaced:
            yield from reader.list(resource_of(kind), namespace)
        elif kind.name == BackupEntry.KIND.name:  # named <technical ID>--<uid>, see `mappers`
            for obj in reader.list(resource_of(kind)):
                if request_of(obj).name.removeprefix("source-").startswith(f"{namespace}--"):
                    yield obj


def _remaining(namespace: Raw) -> Iterator[str]:
    """Source: Kubernetes documentation, "Namespaces" (conditions of one that is deleted)."""
    for condition in as_dict(namespace.get("status")).get("conditions") or ():
        if condition.get("status") == "True":
            yield str(condition.get("message") or condition.get("type"))


def _trouble_first(standing: Standing) -> tuple[bool, bool, str, str]:
    subject = standing.subject
    return not standing.blockers, standing.deleting is None, subject.kind, subject.name
