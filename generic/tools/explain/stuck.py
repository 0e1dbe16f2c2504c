"""Everything under deletion in a seed: since when, whose turn it is, and what blocks it.

Extension objects and namespaces are read whole; of the others, only metadata are listed.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from functools import cache

import attrs

from actuator.errors import ActuatorError, ApiError, NotFound
from actuator.interface import Resource, resource_of
from actuator.meta import Kind, Raw
from generic.kube.client import HttpClient
from generic.kube.clusters import NAMESPACES
from generic.tools.explain.facts import Unread
from generic.tools.explain.gather import NO_SEED, conditions_of
from generic.tools.explain.owners import owner
from generic.tools.explain.reader import Reader, Surroundings
from generic.tools.explain.standing import parse, stand


@attrs.frozen(kw_only=True)
class Stuck:
    """An object under deletion since a time in RFC 3339, and the controllers that have to act."""

    namespace: str
    kind: str
    name: str
    since: str
    turn: str
    blockers: tuple[str, ...]

    def __str__(self) -> str:
        return "/".join(filter(None, (self.namespace, self.kind, self.name)))


def stuck(
    client: HttpClient, kinds: Sequence[Kind], now: datetime
) -> tuple[list[Stuck], list[Unread]]:
    """Return the objects under deletion, oldest first, and the refused reads.

    `kinds` are those of extension objects. Raises ApiError if the API server does not answer, and
    ActuatorError if it serves none of the kinds: nothing is stuck in a wrong cluster.
    """
    reader = Reader(client)
    lister = Reader(client.metadata_only())
    around = cache(lambda namespace: Surroundings(client, reader, namespace))
    known = {resource_of(kind): kind for kind in kinds}
    found: dict[str, Stuck] = {}

    def why(resource: Resource, meta: Raw) -> tuple[str, Sequence[str]]:
        where = meta.get("namespace", "")
        kind = known.get(resource)
        if kind is None and resource != NAMESPACES:
            return _why(meta.get("finalizers") or ())
        obj = reader.get(resource, meta["name"], where) or {"metadata": meta}  # if forbidden
        if kind is None:
            return "the namespace controller of Kubernetes", [*conditions_of(obj)]
        standing = stand(parse(kind, obj), around(where), now)
        ours = f"the extension for {kind.name} {standing.subject.type}".rstrip()
        owners = (ours if held.ours else held.owner for held in standing.finalizers)
        return ", ".join(owners), standing.blockers

    served = [*_served(client, reader)]
    if not reader.unread and not any(resource in known for resource, _ in served):
        raise ActuatorError(NO_SEED)
    for resource, name in served:
        for meta in _deleting(lister, resource):
            if meta["uid"] not in found:
                with suppress(NotFound):  # deleted after it was listed
                    found[meta["uid"]] = _stuck(name, meta, *why(resource, meta))
    ordered = sorted(found.values(), key=lambda item: (item.since, str(item)))
    return ordered, [*reader.unread, *lister.unread]


def _deleting(lister: Reader, resource: Resource) -> list[Raw]:
    """Return the metadata of the objects under deletion; none if the resource was deleted."""
    try:
        listed = [obj["metadata"] for obj in lister.list(resource)]
    except NotFound:
        return []
    return [meta for meta in listed if "deletionTimestamp" in meta]


def _stuck(kind: str, meta: Raw, turn: str, blockers: Sequence[str]) -> Stuck:
    return Stuck(
        namespace=meta.get("namespace", ""),
        kind=kind,
        name=meta["name"],
        since=meta["deletionTimestamp"],
        turn=turn or ("kubelet" if kind == "Pod" else "the API server"),
        blockers=tuple(blockers),
    )


def _why(finalizers: Sequence[str]) -> tuple[str, Sequence[str]]:
    owners = dict.fromkeys(map(owner, finalizers))
    return ", ".join(owners), [f"finalizer {name}" for name in finalizers]


def _served(client: HttpClient, reader: Reader) -> Iterator[tuple[Resource, str]]:
    """Yield each resource whose objects can be listed and deleted, with its kind."""
    groups = json.loads(client.send("GET", "/apis"))["groups"]
    for version in ("v1", *(group["preferredVersion"]["groupVersion"] for group in groups)):
        path = f"/{'apis' if '/' in version else 'api'}/{version}"
        try:
            served = json.loads(client.send("GET", path))["resources"]
        except ApiError as error:  # an extension API server that does not answer
            reader.unread.append(Unread(verb="get", resource=path, where="", reason=error.message))
            continue
        for obj in served:
            if {"list", "delete"} <= set(obj["verbs"]):
                yield Resource(version, obj["name"], namespaced=obj["namespaced"]), obj["kind"]
