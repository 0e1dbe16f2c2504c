"""From the versions of all objects to the protocol of each flow. Pure.

A flow of one shoot in one seed is a run. What the Cluster shows tells which flow a write belongs
to. Bastions are deleted before gardenlet begins the deletion of their shoot, and a bucket belongs
to no shoot: these objects tell it themselves.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from attrs import define, field

from actuator.cluster import FORCE_DELETION
from actuator.meta import Raw
from generic.kube.deleting import CONFIRM_DELETION
from generic.testing.garden.readiness import not_migrated_because, not_ready_because
from generic.testing.watching import DELETED
from hack.gardenlet.protocol import DELETION, FlowProtocol, sorted_flow
from hack.gardenlet.watching import ObjectVersion
from hack.gardenlet.writes import DELETE, is_for_deletion, is_repeated, write_between

CREATE = "create"
REMOVE = "delete"
FORCE = "force-delete"
HIBERNATE = "hibernate"
WAKE = "wake"
MIGRATE = "migrate"
RESTORE = "restore"
_PLAIN = frozenset({"Cluster", "Namespace"})
_BUCKET = "BackupBucket"
_ENTRY = "BackupEntry"
_SOURCE = "source-"
Object = tuple[str, str]


@define
class ReductionRun:
    """One flow of one shoot.

    The writes to a kind that lead to its deletion are a phase, as are all others.
    """

    steps: dict[Object, list[str]] = field(factory=lambda: defaultdict(list))
    """gardenlet's writes by object, each once."""
    begins: dict[str, int] = field(factory=dict)
    """By phase: the place of the first write."""
    awaited: set[tuple[str, Object]] = field(factory=set)
    """The objects of each phase."""
    outcomes: dict[tuple[str, Object], int] = field(factory=dict)
    """The places at which the objects of each phase were first ready, or gone."""
    ended: bool = False
    """Whether the flow came to its end."""

    def write(self, key: Object, step: str, place: int) -> None:
        """Add a write of gardenlet, unless it repeats another."""
        if is_repeated(step, self.steps[key]):
            return
        self.steps[key].append(step)
        phase = DELETION + key[0] if is_for_deletion(step) else key[0]
        self.begins.setdefault(phase, place)
        self.awaited.add((phase, key))

    def ends(self) -> Mapping[str, int]:
        """Return, by phase, the place at which its last object has the outcome, if all have."""
        missing = {phase for phase, _ in self.awaited - self.outcomes.keys()}
        ends: dict[str, int] = {}
        for (phase, _), place in self.outcomes.items():
            ends[phase] = max(place, ends.get(phase, 0))
        return {phase: place for phase, place in ends.items() if phase not in missing}

    def precedes(self, phase: str, later: str) -> bool:
        """Whether the outcome of a phase was there before the first write of another."""
        ends = self.ends()
        return phase in ends and later in self.begins and ends[phase] < self.begins[later]


def flows_of(
    logs: Iterable[Iterable[ObjectVersion]],
    shoots: Collection[str],
    retried: Collection[tuple[str, str]] = (),
) -> Mapping[str, FlowProtocol]:
    """Return the protocol of each flow that came to its end, from the log of each seed.

    `shoots` are the namespaces of the shoots, and the names of buckets; `retried` are flows to
    leave out, with their shoots.
    """
    found: dict[str, list[ReductionRun]] = defaultdict(list)
    for versions in logs:
        for (flow, shoot), run in _runs_of(versions, shoots).items():
            if run.ended and (flow, shoot) not in retried:
                found[flow].append(run)
    return {flow: protocol_of(found[flow]) for flow in sorted(found)}


def retried_in(garden: Iterable[ObjectVersion]) -> set[tuple[str, str]]:
    """Return the flows, with their shoots, of which an attempt failed and was retried.

    Deletions are retried as long as Bastions exist, without an attempt.
    """
    flows: dict[str, str] = {}
    found = set[tuple[str, str]]()
    for version in garden:
        status = version.obj.get("status") or {}
        shoot = status.get("technicalID", "")
        flows[shoot] = _flow_shown(version.obj, flows.get(shoot, CREATE))
        if (status.get("lastOperation") or {}).get("state") == "Error":
            found.add((flows[shoot], shoot))
    return {(flow, shoot) for flow, shoot in found if flow not in (REMOVE, FORCE)}


def _runs_of(
    versions: Iterable[ObjectVersion], shoots: Collection[str]
) -> Mapping[tuple[str, str], ReductionRun]:
    """Split the writes to the objects of these shoots into runs, by flow and shoot."""
    found: dict[tuple[str, str], ReductionRun] = defaultdict(ReductionRun)
    flows: dict[str, str] = dict.fromkeys(shoots, CREATE)
    before: dict[Object, Raw] = {}
    for version in versions:
        obj = version.obj
        shoot = _shoot_of(version.obj)
        if shoot not in flows:
            continue
        flows[shoot] = _flow_of(obj, flows[shoot])
        key = _kind_of(obj), f"{shoot}/{obj['metadata']['name']}"
        _note(found[flows[shoot], shoot], flows[shoot], key, before.get(key), version)
        if version.event == DELETED:
            before.pop(key, None)
        else:
            before[key] = obj
    return found


def _kind_of(obj: Raw) -> str:
    """Return the kind; that of backups in the bucket of the other seed is one of its own."""
    kind = str(obj["kind"])
    is_source = kind == _ENTRY and obj["metadata"]["name"].startswith(_SOURCE)
    return f"{kind} of the source" if is_source else kind


def _shoot_of(obj: Raw) -> str:
    """Return the shoot of an object, or its own name; a BackupEntry is named after its shoot."""
    meta = obj["metadata"]
    if obj["kind"] == _ENTRY:
        return str(meta["name"]).removeprefix(_SOURCE).rpartition("--")[0]
    return str(meta.get("namespace") or meta["name"])


def _flow_of(obj: Raw, current: str) -> str:
    """Return the flow that a shoot is in after this version; before it was in the `current` one."""
    if obj["kind"] in ("Bastion", _BUCKET):
        meta = obj["metadata"]
        annotations = meta.get("annotations") or {}
        if FORCE_DELETION in annotations:
            return FORCE
        is_left = CONFIRM_DELETION in annotations or "deletionTimestamp" in meta
        return REMOVE if is_left else current
    return _flow_shown(obj["spec"]["shoot"], current) if obj["kind"] == "Cluster" else current


def _flow_shown(shoot: Raw, current: str) -> str:
    meta = shoot.get("metadata") or {}
    status = shoot.get("status") or {}
    if "deletionTimestamp" in meta:
        return FORCE if FORCE_DELETION in (meta.get("annotations") or {}) else REMOVE
    operation = status.get("lastOperation") or {}
    if operation.get("state") != "Processing":
        return current
    sleeps = bool((shoot["spec"].get("hibernation") or {}).get("enabled"))
    if operation["type"] == "Reconcile" and sleeps != bool(status.get("hibernated")):
        return HIBERNATE if sleeps else WAKE
    return str(operation["type"]).lower()


def _note(
    run: ReductionRun, flow: str, key: Object, before: Raw | None, version: ObjectVersion
) -> None:
    """Add a version to its run."""
    obj = version.obj
    kind = key[0]
    is_gone = version.event == DELETED
    if kind in ("Cluster", _BUCKET):
        run.ended = is_gone or kind == _BUCKET or _has_succeeded(obj)
    if is_gone:
        if before is not None and "deletionTimestamp" not in before["metadata"]:
            run.write(key, DELETE, version.number)
        run.outcomes.setdefault((DELETION + kind, key), version.number)
        return
    if step := write_between(before, obj):
        run.write(key, step, version.number)
    if (kind, key) in run.awaited and _has_outcome(kind, flow, obj):
        run.outcomes.setdefault((kind, key), version.number)


def _has_succeeded(cluster: Raw) -> bool:
    status = cluster["spec"]["shoot"].get("status") or {}
    return (status.get("lastOperation") or {}).get("state") == "Succeeded"


def _has_outcome(kind: str, flow: str, obj: Raw) -> bool:
    """Whether an object has reached what its flow waits for."""
    if kind in _PLAIN:
        return True
    check = not_migrated_because if flow == MIGRATE else not_ready_because
    return check(obj) is None


def protocol_of(runs: Sequence[ReductionRun]) -> FlowProtocol:
    """Return what several runs of one flow have in common.

    An order is kept if it held in each run that has both phases.
    """
    steps: dict[str, set[tuple[str, ...]]] = defaultdict(set)
    for run in runs:
        for (kind, _), written in run.steps.items():
            steps[kind].add(tuple(written))
    phases = {phase for run in runs for phase in run.begins}
    order = {later: [phase for phase in phases if _always(runs, phase, later)] for later in phases}
    return sorted_flow(len(runs), steps, {later: found for later, found in order.items() if found})


def _always(runs: Sequence[ReductionRun], phase: str, later: str) -> bool:
    """Whether the order held in each run with both phases, and there is one."""
    having = [run for run in runs if run.begins.keys() >= {phase, later}]
    return bool(having) and all(run.precedes(phase, later) for run in having)
