"""From the versions of all objects to the protocol of each flow. Pure.

A flow of one shoot is a run. What the Cluster shows tells which flow a write belongs to.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from attrs import define, field, frozen

from actuator.cluster import FORCE_DELETION
from actuator.meta import Raw
from generic.testing.garden.readiness import error_of, not_migrated_because, not_ready_because
from hack.gardenlet.protocol import FlowProtocol, sorted_flow
from hack.gardenlet.watching import GONE, Version
from hack.gardenlet.writes import CONFIRM, DELETE, write_between

CREATE, REMOVE, FORCE, INTERRUPTED = "create", "delete", "force-delete", "delete-interrupted"
_DELETIONS = frozenset({REMOVE, FORCE, INTERRUPTED})
_PLAIN = frozenset({"Cluster", "Namespace"})
Object = tuple[str, str]


@define
class Run:
    """One flow of one shoot."""

    steps: dict[Object, list[str]] = field(factory=lambda: defaultdict(list))
    """gardenlet's writes by object, each once."""
    begins: dict[str, int] = field(factory=dict)
    """By kind: the place of the first write, in a deletion of the first that requests it."""
    outcomes: dict[Object, int] = field(factory=dict)
    """The places at which objects were first ready, or gone."""
    failed: set[str] = field(factory=set)
    """The kinds with an error in their status."""

    def ends(self) -> Mapping[str, int]:
        """Return, by kind, the place at which its last object has the outcome, if all have."""
        missing = {kind for kind, _ in self.steps.keys() - self.outcomes.keys()}
        ends: dict[str, int] = {}
        for (kind, _), place in self.outcomes.items():
            ends[kind] = max(place, ends.get(kind, 0))
        return {kind: place for kind, place in ends.items() if kind not in missing}

    def precedes(self, kind: str, later: str) -> bool:
        """Whether the outcome of a kind was there before the first write to another."""
        ends = self.ends()
        return kind in ends and later in self.begins and ends[kind] < self.begins[later]


@frozen
class Runs:
    """All runs, by flow and by shoot."""

    by_flow: Mapping[str, Mapping[str, Run]]

    def protocols(self) -> Mapping[str, FlowProtocol]:
        """Return the protocol of each flow that came to its end."""
        flows = [name for name in sorted(self.by_flow) if name != INTERRUPTED]
        return {name: protocol_of([*self.by_flow[name].values()]) for name in flows}


def runs_of(versions: Iterable[Version], shoots: Collection[str]) -> Runs:
    """Split the writes to the objects of these namespaces into runs."""
    found: dict[str, dict[str, Run]] = defaultdict(lambda: defaultdict(Run))
    flows: dict[str, str] = dict.fromkeys(shoots, CREATE)
    before: dict[Object, Raw] = {}
    for version in versions:
        obj, shoot = version.obj, _shoot_of(version.obj)
        if shoot not in flows:
            continue
        if obj["kind"] == "Cluster":
            flows[shoot] = _flow_of(obj)
        key = obj["kind"], f"{shoot}/{obj['metadata']['name']}"
        _note(found[flows[shoot]][shoot], flows[shoot], key, before.get(key), version)
        if version.event == GONE:
            before.pop(key, None)
        else:
            before[key] = obj
    _set_interrupted_apart(found)
    return Runs({flow: dict(runs) for flow, runs in found.items()})


def _set_interrupted_apart(found: dict[str, dict[str, Run]]) -> None:
    """Deletions that were forced later did not come to their end."""
    for shoot in found[FORCE].keys() & found[REMOVE].keys():
        found[INTERRUPTED][shoot] = found[REMOVE].pop(shoot)
    for flow in [flow for flow, runs in found.items() if not runs]:
        del found[flow]


def _shoot_of(obj: Raw) -> str:
    meta = obj["metadata"]
    return str(meta.get("namespace") or meta["name"])


def _flow_of(cluster: Raw) -> str:
    """Return the flow that the shoot in a Cluster is in."""
    shoot = cluster["spec"]["shoot"]
    meta, status = shoot.get("metadata") or {}, shoot.get("status") or {}
    if "deletionTimestamp" in meta:
        return FORCE if FORCE_DELETION in (meta.get("annotations") or {}) else REMOVE
    operation = (status.get("lastOperation") or {}).get("type", CREATE)
    sleeps = bool((shoot["spec"].get("hibernation") or {}).get("enabled"))
    if operation == "Reconcile" and sleeps != bool(status.get("isHibernated")):
        return "hibernate" if sleeps else "wake"
    return str(operation).lower()


def _note(run: Run, flow: str, key: Object, before: Raw | None, version: Version) -> None:
    """Add a version to its run."""
    obj, kind = version.obj, key[0]
    if version.event == GONE:
        if before is not None and "deletionTimestamp" not in before["metadata"]:
            _write(run, flow, key, DELETE, version.number)
        run.outcomes.setdefault(key, version.number)
        return
    if step := write_between(before, obj):
        _write(run, flow, key, step, version.number)
    if kind not in _PLAIN and error_of(obj):
        run.failed.add(kind)
    if flow not in _DELETIONS and key in run.steps and _has_outcome(kind, flow, obj):
        run.outcomes.setdefault(key, version.number)


def _write(run: Run, flow: str, key: Object, step: str, place: int) -> None:
    if step not in run.steps[key]:
        run.steps[key].append(step)
    if flow not in _DELETIONS or step == DELETE or CONFIRM in step:
        run.begins.setdefault(key[0], place)


def _has_outcome(kind: str, flow: str, obj: Raw) -> bool:
    """Whether an object has reached what a flow other than a deletion waits for."""
    if kind in _PLAIN:
        return True
    check = not_migrated_because if flow == "migrate" else not_ready_because
    return check(obj) is None


def protocol_of(runs: Sequence[Run]) -> FlowProtocol:
    """Return what several runs of one flow have in common.

    An order is kept if it held in each run that has both kinds.
    """
    steps: dict[str, set[tuple[str, ...]]] = defaultdict(set)
    for run in runs:
        for (kind, _), written in run.steps.items():
            steps[kind].add(tuple(written))
    order = {kind: [one for one in steps if _always(runs, one, kind)] for kind in steps}
    return sorted_flow(len(runs), steps, {kind: found for kind, found in order.items() if found})


def _always(runs: Sequence[Run], kind: str, later: str) -> bool:
    """Whether the order held in each run with both kinds, and there is one."""
    having = [run for run in runs if _writes(run) >= {kind, later}]
    return bool(having) and all(run.precedes(kind, later) for run in having)


def _writes(run: Run) -> set[str]:
    return {kind for kind, _ in run.steps}
