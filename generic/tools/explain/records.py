"""Records about an object: Orphans of its UID, and recent Warning events."""

from collections.abc import Iterator

from actuator.codec import decode
from actuator.errors import DecodeError
from actuator.meta import Raw
from generic.kube.events import EVENTS, About
from generic.kube.headers import as_dict
from generic.reconciler.orphans import ORPHANS, Orphan
from generic.reconciler.orphans.kind import SHOOT_LABEL
from generic.tools.explain.facts import Orphaned, Subject, WarningEvent
from generic.tools.explain.reader import Reader

WARNINGS = 10
"""The maximum number of shown events."""


def orphans(reader: Reader, subject: Subject) -> Iterator[Orphaned]:
    """Yield the Orphans of this object's UID. Raises NotFound if their CRD is not installed."""
    selector = f"{SHOOT_LABEL}={subject.namespace}"
    for raw in reader.list(ORPHANS, label_selector=selector):
        try:
            orphan = decode(Orphan, raw)
        except DecodeError:
            continue  # not created by this framework, whose Orphans can be read
        if orphan.spec.object.uid == subject.uid:
            yield Orphaned(
                name=orphan.metadata.name,
                resource=orphan.spec.resource,
                reason=orphan.spec.reason,
                state=orphan.state.value,
                recorded_at=orphan.spec.recorded_at,
            )


def warnings(reader: Reader, subject: Subject) -> tuple[WarningEvent, ...]:
    """Return the latest Warnings about this object's UID, newest first.

    An event for a namespace under deletion is in `default`, about the Namespace.
    """
    found = [
        _warning(event)
        for event in reader.list(EVENTS, subject.namespace or "default")
        if event.get("type") == "Warning"
        and as_dict(event.get("involvedObject")).get("uid") == subject.uid
    ]
    if subject.namespace:
        found += _from_default(reader, subject)
    return tuple(sorted(found, key=lambda one: one.last_seen, reverse=True)[:WARNINGS])


def _from_default(reader: Reader, subject: Subject) -> Iterator[WarningEvent]:
    about = About(
        api_version=subject.api_version,
        kind=subject.kind,
        namespace=subject.namespace,
        name=subject.name,
        uid=subject.uid,
    )
    for event in reader.list(EVENTS, "default"):
        involved = as_dict(event.get("involvedObject"))
        same = (involved.get("kind"), involved.get("name")) == ("Namespace", subject.namespace)
        said = str(event.get("message") or "").startswith(f"{about}: ")
        if event.get("type") == "Warning" and same and said:
            yield _warning(event)


def _warning(event: Raw) -> WarningEvent:
    source = event.get("reportingComponent") or as_dict(event.get("source")).get("component")
    times = (event.get(field) for field in ("lastTimestamp", "eventTime", "firstTimestamp"))
    return WarningEvent(
        reason=str(event.get("reason") or ""),
        message=str(event.get("message") or ""),
        count=int(event.get("count") or 1),
        last_seen=str(next(filter(None, times), "")),
        source=str(source or ""),
    )
