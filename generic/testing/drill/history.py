"""The history of a drill's objects: what the entries of its log tell of each. Pure."""

from collections.abc import Callable, Collection, Iterable, Mapping

from actuator.cluster import FORCE_DELETION, parse_bool
from actuator.meta import ForceSource, Kind, Raw, conditions_in
from generic.kube.headers import DELETION_BLOCKED, as_dict
from generic.reconciler.reporter import event_reason
from generic.serving.metrics import Outcome
from generic.testing.drill.bystanders import DISTURBANCE
from generic.testing.drill.evidence import Life, Strip
from generic.testing.drill.log import CLUSTER, EVENT, LoggedVersion
from generic.testing.garden import SHOOT, error_of, not_migrated_because, not_ready_because

_FINAL = {event_reason(outcome): outcome.value for outcome in Outcome if outcome.final}


def labelled_shoot(obj: Raw) -> str:
    """Return the shoot that a drill's label names."""
    return str(obj["metadata"]["labels"][SHOOT])


class History:
    """The lives of objects, and the removed finalizers; `read` continues it with one entry."""

    def __init__(
        self,
        kinds: Mapping[str, Kind],
        bad: Collection[str] = (),
        shoot_of: Callable[[Raw], str] = labelled_shoot,
        finalizers: Mapping[str, Collection[str]] = {},
    ) -> None:
        """`bad` are the shoots with an invalid object; `finalizers` are ours, by kind.

        `shoot_of` returns the shoot of an object; "": the object is no part of the drill.
        """
        self.lives: dict[str, Life] = {}
        self.strips: list[Strip] = []
        self.forced: dict[str, float] = {}
        """When the Cluster of a shoot first showed its force deletion."""
        self._kinds = kinds
        self._bad = bad
        self._shoot_of = shoot_of
        self._finalizers = finalizers
        self._events: set[str] = set()

    def read(self, entry: LoggedVersion) -> None:
        """Add what the entry tells."""
        if entry.kind == EVENT:
            self._read_event(entry)
        elif entry.kind == CLUSTER:
            self._read_cluster(entry)
        elif life := self._life(entry):
            self._note(life, entry)

    def read_all(self, entries: Iterable[LoggedVersion]) -> "History":
        """Add what all entries tell."""
        for entry in entries:
            self.read(entry)
        return self

    def _life(self, entry: LoggedVersion) -> Life | None:
        meta = entry.obj["metadata"]
        if meta["uid"] not in self.lives and (shoot := self._shoot_of(entry.obj)):
            owners = meta.get("ownerReferences") or ()
            self.lives[meta["uid"]] = Life(
                kind=entry.kind,
                shoot=shoot,
                namespace=meta.get("namespace", ""),
                name=meta["name"],
                uid=meta["uid"],
                created=entry.at,
                bad=shoot in self._bad,
                made=any(owner["uid"] in self.lives for owner in owners),
            )
        return self.lives.get(meta["uid"])

    def _note(self, life: Life, entry: LoggedVersion) -> None:
        at = entry.at
        obj = entry.obj
        kind = self._kinds[life.kind]
        if obj["metadata"].get("deletionTimestamp") is None and not entry.gone:
            _note_operation(life, obj, at)
            return
        life.deleted = _first(life.deleted, at)
        left = obj["metadata"].get("finalizers") or ()
        ours = not {*self._finalizers.get(kind.name, [kind.finalizer])}.isdisjoint(left)
        if ours and not entry.gone and (error := error_of(obj)):
            life.stuck = _first(life.stuck, at)
            _note_error(life, error)
        self._note_disturbance(life, obj, at)
        if self._is_forced(kind, life, obj):
            life.forced = _first(life.forced, at)
        if entry.gone or not ours:
            life.released = _first(life.released, at)
        if entry.gone:
            life.gone = _first(life.gone, at)

    def _note_disturbance(self, life: Life, obj: Raw, at: float) -> None:
        said = _conditions(obj)
        if DISTURBANCE in said:
            life.disturbed = _first(life.disturbed, at)
            life.blocked = life.blocked or said.get(DELETION_BLOCKED, "")
            if life.blocked and said.get(DELETION_BLOCKED, life.blocked) != life.blocked:
                life.moved_on = _first(life.moved_on, at)

    def _is_forced(self, kind: Kind, life: Life, obj: Raw) -> bool:
        match kind.force_from:
            case ForceSource.NONE:
                return False
            case ForceSource.SHOOT:
                return life.shoot in self.forced
            case _:
                return _confirms(obj)

    def _read_cluster(self, entry: LoggedVersion) -> None:
        shoot = entry.obj["metadata"]["name"]
        if not _confirms(entry.obj["spec"]["shoot"]):
            return
        self.forced.setdefault(shoot, entry.at)
        for life in self.lives.values():
            by_shoot = self._kinds[life.kind].force_from is ForceSource.SHOOT
            if life.shoot == shoot and by_shoot and life.deleted is not None and life.gone is None:
                life.forced = _first(life.forced, entry.at)

    def _read_event(self, entry: LoggedVersion) -> None:
        event = entry.obj
        uid = entry.obj["metadata"]["uid"]
        about = as_dict(event.get("involvedObject"))
        text = str(event.get("message"))
        life = self.lives.get(str(about.get("uid")))
        if about.get("kind") == "Namespace":  # the object's own one was terminating
            object, _, text = text.partition(": ")
            life = next((live for live in self.lives.values() if _as_event(live) == object), None)
        if life is None or uid in self._events:
            return
        self._events.add(uid)
        reason = event.get("reason")
        if reason in _FINAL:
            life.said.append(_FINAL[reason])
        if reason == "FinalizerStripped":
            self.strips.append(Strip(shoot=life.shoot, text=text))


def _as_event(life: Life) -> str:
    """Return how an event in the namespace `default` names the object."""
    return f"{life.kind} {life.namespace}/{life.name}"


def _confirms(obj: Raw) -> bool:
    """Return whether its annotation confirms a force deletion."""
    annotations = as_dict(as_dict(obj.get("metadata")).get("annotations"))
    return parse_bool(str(annotations.get(FORCE_DELETION, ""))) is True


def _note_operation(life: Life, obj: Raw, at: float) -> None:
    """Note the state of an object that is not under deletion."""
    if error := error_of(obj):
        life.failed = _first(life.failed, at)
        _note_error(life, error)
    if not_ready_because(obj) is None:
        life.ready = _first(life.ready, at)
    if not_migrated_because(obj) is None:
        life.migrated = _first(life.migrated, at)


def _note_error(life: Life, error: Raw) -> None:
    life.error = str(error.get("description", ""))
    life.codes = [str(code) for code in error.get("codes") or []]


def _first(before: float | None, now: float) -> float:
    return now if before is None else before


def _conditions(obj: Raw) -> dict[str, str]:
    """Return the update time and message of each condition, by type."""
    return {
        type: f"{condition.get('lastUpdateTime')}: {condition.get('message')}"
        for type, condition in conditions_in(obj.get("status")).items()
    }
