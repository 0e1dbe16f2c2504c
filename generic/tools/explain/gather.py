"""Collects the explanation of one object, or the states of a namespace's objects."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

import attrs

from actuator.codec import decode
from actuator.errors import ActuatorError, DecodeError, NotFound, NotServed
from actuator.interface import Actuator, Client, SeedObjects, innermost, resource_of
from actuator.meta import Kind, Raw
from actuator.suggestions import did_you_mean
from actuator.v1alpha1 import BackupEntry
from generic.kube.events import EVENTS
from generic.kube.headers import as_dict, header, request_of
from generic.manager.registry import Registration
from generic.reconciler.orphans import ORPHANS, Orphan, remaining
from generic.reconciler.orphans.kind import SHOOT_LABEL
from generic.reconciler.reporter import STATUS_NOT_WRITTEN
from generic.tools.explain import facts
from generic.tools.explain.reader import Reader, Surroundings
from generic.tools.explain.standing import Parsed, deleting_since, parse, stand
from generic.tools.explain.webhooks import SelectedObject, errors_of, webhooks

_INSTALL = "select a seed with --kubeconfig and --context, or install the kinds: `actuator crds`"
NO_SEED = f"this cluster serves no extension kind; {_INSTALL}"


def explain(
    client: Client,
    kind: Kind,
    namespace: str,
    name: str,
    now: datetime,
    registrations: Sequence[Registration] | None = None,
) -> facts.Explanation:
    """Explain one object; `registrations` are those of its extension, if known.

    Raises ActuatorError if the object does not exist or may not be read, ApiError if the API
    server does not answer.
    """
    reader = Reader(client)
    parsed = parse(kind, _find(reader, kind, namespace, name), registrations or ())
    around = Surroundings(client, reader, namespace)
    standing = stand(parsed, around, now)
    told = warnings(reader, standing.subject)
    refused = tuple(
        f"the API server does not store the status as the extension sends it: {item.message}"
        for item in told
        if item.reason == STATUS_NOT_WRITTEN
    )
    standing = attrs.evolve(standing, blockers=(*refused[:1], *standing.blockers))
    notes: list[str] = []
    if registrations is not None and parsed.by is None:
        notes += _not_served(registrations, parsed)
    if standing.untouched:
        notes += _other_types(reader, kind, parsed.header.type)
    removal = _removal(reader, parsed, namespace, notes)
    home = around.namespace
    labels = None if home is None else as_dict(home["metadata"].get("labels"))
    target = SelectedObject(parsed.kind, parsed.header.labels, labels, errors_of(standing, told))
    return facts.Explanation(
        standing=standing,
        removal=removal,
        webhooks=tuple(webhooks(reader, target)),
        orphans=tuple(_orphans(reader, standing.subject, notes)),
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
) -> facts.Overview:
    """Return the states of the objects of these kinds in the namespace, and its BackupEntries.

    Raises ActuatorError if the namespace does not exist, or no kind may be read; ApiError if the
    API server does not answer.
    """
    reader = Reader(client)
    around = Surroundings(client, reader, namespace)
    nowhere = Surroundings(client, reader, "")
    standings: list[facts.Standing] = []
    found = around.namespace or {}
    listed = [(kind, _objects(reader, kind, namespace)) for kind in kinds]
    if around.blockers and not any(objects for _, objects in listed):
        raise ActuatorError(f"namespace {namespace} not found")
    _check_served(reader, [kind for kind, objects in listed if objects is not None])
    for kind, objects in listed:
        for obj in objects or ():
            place = around if kind.namespaced else nowhere
            standings.append(stand(parse(kind, obj, registrations), place, now))
    meta = as_dict(found.get("metadata"))
    return facts.Overview(
        namespace=namespace,
        deleting=deleting_since(meta.get("deletionTimestamp"), now),
        remaining=tuple(conditions_of(found)),
        objects=tuple(sorted(standings, key=_trouble_first)),
        unread=tuple(reader.unread),
    )


def _find(reader: Reader, kind: Kind, namespace: str, name: str) -> Raw:
    where = f"{namespace}/{name}" if namespace else name
    try:
        obj = reader.get(resource_of(kind), name, namespace)
    except NotFound as error:
        absent = isinstance(error, NotServed)
        why = f"is not installed here; {_INSTALL}" if absent else f"{where} not found"
        raise ActuatorError(f"{kind.name} {why}") from None
    if obj is None:
        raise _unreadable(reader)
    return obj


def _check_served(reader: Reader, kinds: Sequence[Kind]) -> None:
    """Raise ActuatorError if the cluster serves no kind, or none may be listed."""
    if not kinds:
        raise ActuatorError(NO_SEED)
    refused = {item.resource for item in reader.unread if item.verb == "list"}
    if refused.issuperset(str(resource_of(kind)) for kind in kinds):
        raise _unreadable(reader)


def _unreadable(reader: Reader) -> ActuatorError:
    """Return the error of a command that may read nothing."""
    return ActuatorError("; ".join([str(reader.unread[0]), *facts.grant(reader.unread)]))


def _not_served(registrations: Sequence[Registration], parsed: Parsed) -> Iterator[str]:
    """Yield why the extension never acts on an object that it does not serve."""
    kind = parsed.kind
    head = parsed.header
    request = parsed.request
    known = {type for registration in registrations for type in registration.types}
    where = f" in namespace {request.namespace}" if head.type in known and kind.namespaced else ""
    hint = "" if where else did_you_mean(head.type, known)
    yield f"the extension serves no {kind.name} of type {head.type!r}{where}{hint}"
    for registration in registrations:
        if registration.kind.name == kind.name and registration.kind.finalizer in head.finalizers:
            yield (
                f"the finalizer {registration.kind.finalizer} stays "
                "unless another extension removes it; "
                "correct spec.type, or the types and namespaces of the extension"
            )
            return


def _other_types(reader: Reader, kind: Kind, type: str) -> Iterator[str]:
    """Yield a note about the types of `kind` whose objects in this seed are reconciled."""
    headers = map(header, reader.list(resource_of(kind)))
    known = sorted({item.type for item in headers if item.succeeded} - {type, ""})
    if known:
        hint = did_you_mean(type, known)
        yield f"{kind.name} objects of these types are reconciled here: {', '.join(known)}{hint}"


def _removal(
    reader: Reader, parsed: Parsed, namespace: str, notes: list[str]
) -> facts.ForcedRemoval | None:
    """Return the declared effect of a force deletion, if the extension is known.

    Nothing is changed. The only actuator method called is `external_resources`, which does no I/O
    by contract; its error is a note.
    """
    registration = parsed.by
    if registration is None:
        return None
    actuator = innermost(registration.actuator)
    found = [
        item for group in actuator.seed_objects for item in _seed_objects(reader, group, namespace)
    ]
    resources, problem = remaining(registration.actuator, registration.cls, parsed.raw)
    if problem:
        notes.append(f"external_resources failed, so an unknown resource is recorded: {problem}")
    return facts.ForcedRemoval(
        actuator=type(actuator).__name__,
        own_way=type(actuator).force_delete is not Actuator.force_delete,
        seed_objects=tuple(found),
        remaining_resources=tuple(resources),
    )


def _seed_objects(reader: Reader, group: SeedObjects, namespace: str) -> Iterator[facts.SeedObject]:
    where = namespace if group.resource.namespaced else ""
    try:
        found = reader.list(group.resource, where, label_selector=group.label_selector)
    except NotFound:  # the type is not installed
        return
    for obj in found:
        meta = obj["metadata"]
        finalizers = meta.get("finalizers") or []
        yield facts.SeedObject(
            resource=str(group.resource),
            namespace=meta.get("namespace", ""),
            name=meta["name"],
            deleting=meta.get("deletionTimestamp") is not None,
            stripped=tuple(f for f in finalizers if f in group.finalizers),
            holding=tuple(f for f in finalizers if f not in group.finalizers),
        )


def _objects(reader: Reader, kind: Kind, namespace: str) -> list[Raw] | None:
    """Return a namespace's objects, also those named after it; None if there can be none."""
    is_entry = kind.name == BackupEntry.KIND.name  # named <technical ID>--<uid>, see `mappers`
    if not kind.namespaced and not is_entry:
        return None
    try:
        found = reader.list(resource_of(kind), namespace if kind.namespaced else "")
    except NotFound:  # the kind is not installed
        return None
    names = (request_of(obj).name.removeprefix("source-") for obj in found)
    pairs = zip(found, names, strict=True)
    return [obj for obj, name in pairs if not is_entry or name.startswith(f"{namespace}--")]


def conditions_of(namespace: Raw) -> Iterator[str]:
    """Yield why a namespace still exists.

    Source: Kubernetes documentation, "Namespaces" (conditions during deletion).
    """
    for condition in as_dict(namespace.get("status")).get("conditions") or ():
        if condition.get("status") == "True":
            yield str(condition.get("message") or condition.get("type"))


def _trouble_first(standing: facts.Standing) -> tuple[bool, bool, str, str]:
    subject = standing.subject
    return not standing.blockers, standing.deleting is None, subject.kind, subject.name


WARNINGS = 10
"""The maximum number of shown events."""


def _orphans(reader: Reader, subject: facts.Subject, notes: list[str]) -> Iterator[facts.Orphaned]:
    for orphan in _recorded(reader, subject.namespace, notes):
        if orphan.spec.object.uid == subject.uid:
            yield _orphaned(orphan)


def open_orphans(reader: Reader, namespace: str, notes: list[str]) -> Iterator[facts.Orphaned]:
    """Yield the open Orphans of a shoot's namespace; note if their CRD is not installed."""
    return (_orphaned(orphan) for orphan in _recorded(reader, namespace, notes) if orphan.is_open)


def _recorded(reader: Reader, namespace: str, notes: list[str]) -> Iterator[Orphan]:
    try:
        found = reader.list(ORPHANS, label_selector=f"{SHOOT_LABEL}={namespace}")
    except NotFound:
        notes.append(
            "the CRD of Orphan is not installed: force deletions cannot record remaining resources"
        )
        return
    for raw in found:
        try:
            yield decode(Orphan, raw)
        except DecodeError:
            continue  # not created by this framework, whose Orphans can be read


def _orphaned(orphan: Orphan) -> facts.Orphaned:
    return facts.Orphaned(
        name=orphan.metadata.name,
        resource=orphan.spec.resource,
        reason=orphan.spec.reason,
        state=orphan.state.value,
        recorded_at=orphan.spec.recorded_at,
    )


def warnings(reader: Reader, subject: facts.Subject) -> tuple[facts.WarningEvent, ...]:
    """Return the latest Warnings about this object's UID, newest first.

    An event for a namespace under deletion is in `default`, about the Namespace.
    """
    places = dict.fromkeys((subject.namespace or "default", "default"))
    events = (event for place in places for event in reader.list(EVENTS, place))
    found = [_warning(event) for event in events if _is_about(event, subject)]
    return tuple(sorted(found, key=lambda item: item.last_seen, reverse=True)[:WARNINGS])


def _is_about(event: Raw, subject: facts.Subject) -> bool:
    """Whether it is a Warning about the object, or names it in one about its Namespace."""
    involved = as_dict(event.get("involvedObject"))
    home = (involved.get("kind"), involved.get("name")) == ("Namespace", subject.namespace)
    named = home and str(event.get("message") or "").startswith(f"{subject}: ")
    return event.get("type") == "Warning" and (named or involved.get("uid") == subject.uid)


def _warning(event: Raw) -> facts.WarningEvent:
    source = event.get("reportingComponent") or as_dict(event.get("source")).get("component")
    times = (event.get(field) for field in ("lastTimestamp", "eventTime", "firstTimestamp"))
    return facts.WarningEvent(
        reason=str(event.get("reason") or ""),
        message=str(event.get("message") or ""),
        count=int(event.get("count") or 1),
        last_seen=str(next(filter(None, times), "")),
        source=str(source or ""),
    )
