"""The observer of a drill: reads objects as administrator and notes the time of each change.

It polls several times a second and never writes.
"""

import threading
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager

from actuator.codec import decode
from actuator.interface import Client, Resource, resource_of
from actuator.meta import Kind, Raw
from generic.controller.metrics import Outcome
from generic.kube.headers import DELETION_BLOCKED, as_dict
from generic.reconciler.deletion.force_deletion import IN_SEED
from generic.reconciler.orphans import ORPHANS, SHOOT_LABEL, Orphan
from generic.reconciler.reporter import event_reason
from generic.testing.drill.bystanders import DISTURBANCE
from generic.testing.drill.evidence import Life, Record, Strip
from generic.testing.garden import SHOOT, error_of, not_ready_because
from generic.testing.polling import polling

_EVENTS = Resource("v1", "events")
_EVERY = 0.2


def labelled_shoot(obj: Raw) -> str:
    """Return the shoot that a drill's label names."""
    return str(obj["metadata"]["labels"][SHOOT])


class Observer:
    """Updates the lives of a drill's objects."""

    def __init__(
        self,
        client: Client,
        kinds: Iterable[Kind],
        selector: str,
        path: str,
        shoot_of: Callable[[Raw], str] = labelled_shoot,
    ) -> None:
        """`shoot_of` returns the shoot of an object; "": the object is not observed."""
        self._everything = bool(path)  # with a path, objects are not announced by `follow`
        self._shoot_of = shoot_of
        self.lives: dict[str, Life] = {}
        self._client = client
        self._kinds = list(kinds)
        self._selector = selector
        self._start = time.monotonic()
        self._looking = threading.Lock()

    def watching(self) -> AbstractContextManager[None]:
        """Poll until the context is left; times count from now."""
        self._start = time.monotonic()
        return polling(self.look, "observer", every=_EVERY)

    def now(self) -> float:
        """Return the seconds since the drill began."""
        return time.monotonic() - self._start

    def follow(self, obj: Raw, *, bad: bool, made: bool = False) -> Life:
        """Observe an object from now on."""
        meta = obj["metadata"]
        life = Life(
            kind=obj["kind"],
            shoot=self._shoot_of(obj),
            namespace=meta.get("namespace", ""),
            name=meta["name"],
            uid=meta["uid"],
            created=self.now(),
            bad=bad,
            made=made,
        )
        self.lives[life.uid] = life
        return life

    def look(self) -> None:
        """Read all objects of the drill once. Raises ApiError. Safe to call from any thread."""
        with self._looking:
            self._look()

    def _look(self) -> None:
        for kind in self._kinds:
            known = [life for life in list(self.lives.values()) if life.kind == kind.name]
            found = {  # read after `known`: objects followed from now on are in the next poll
                obj["metadata"]["uid"]: obj
                for obj in self._client.list(resource_of(kind), label_selector=self._selector)
            }
            for life in known:
                self._note(life, found.get(life.uid), kind)
            for obj in found.values():
                self._follow_made({**obj, "kind": kind.name})

    def _follow_made(self, obj: Raw) -> None:
        """Observe an object that the actuator of an observed object created."""
        owners = obj["metadata"].get("ownerReferences") or []
        maker = next((life for one in owners if (life := self.lives.get(one["uid"]))), None)
        made = maker is not None
        is_new = obj["metadata"]["uid"] not in self.lives and self._shoot_of(obj)
        if is_new and (made or self._everything):
            self.follow(obj, bad=maker is not None and maker.bad, made=made)

    def _note(self, life: Life, obj: Raw | None, kind: Kind) -> None:
        now = self.now()
        if obj is None:
            life.released = life.released or now
            life.gone = life.gone or now
            return
        meta = obj["metadata"]
        deleting = meta.get("deletionTimestamp") is not None
        if not deleting and life.ready is None and not_ready_because(obj) is None:
            life.ready = now
        error = error_of(obj)
        if deleting and error and kind.finalizer in (meta.get("finalizers") or []):
            life.stuck = life.stuck or now
            life.error = str(error.get("description", ""))
            life.codes = [str(code) for code in error.get("codes") or []]
        said = _conditions(obj)
        if DISTURBANCE in said and DELETION_BLOCKED in said:
            life.blocked = life.blocked or said[DELETION_BLOCKED]
            if said[DELETION_BLOCKED] != life.blocked:
                life.moved_on = life.moved_on or now
        if deleting and kind.finalizer not in (meta.get("finalizers") or []):
            life.released = life.released or now


def _conditions(obj: Raw) -> dict[str, str]:
    """Return the update time and message of each condition, by type."""
    conditions = as_dict(obj.get("status")).get("conditions") or ()
    return {
        str(one.get("type")): f"{one.get('lastUpdateTime')}: {one.get('message')}"
        for one in conditions
    }


def read_records(client: Client, namespace: str) -> list[Record]:
    """Return the remaining external resources recorded for one shoot. Raises ApiError."""
    found = client.list(ORPHANS, label_selector=f"{SHOOT_LABEL}={namespace}")
    specs = [decode(Orphan, raw).spec for raw in found]
    return [
        Record(
            shoot=namespace,
            owner=f"{spec.object.kind} {spec.object.name}",
            resource=spec.resource,
        )
        for spec in specs
        if not spec.resource_type.startswith(IN_SEED)
    ]


def read_outcomes(client: Client, namespace: str) -> dict[str, list[str]]:
    """Return the final outcomes in a namespace's events, by uid. Raises ApiError."""
    final = {event_reason(outcome): outcome.value for outcome in Outcome if outcome.final}
    told: dict[str, list[str]] = {}
    for event in client.list(_EVENTS, namespace):
        if event.get("reason") in final:
            uid = str((event.get("involvedObject") or {}).get("uid", ""))
            told.setdefault(uid, []).append(final[event["reason"]])
    return told


def read_strips(client: Client, namespace: str) -> list[Strip]:
    """Return the finalizers removed in a shoot's namespace, from events. Raises ApiError."""
    return [
        Strip(shoot=namespace, text=str(event.get("message")))
        for event in client.list(_EVENTS, namespace)
        if event.get("reason") == "FinalizerStripped"
    ]
