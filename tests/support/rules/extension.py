"""An extension as Prometheus scrapes it: the events, and the circumstances of the scrapes.

A situation has only the events. Circumstances (`Seen`) then add a restart, a gap in the
samples, a standby, more seeds, a second job, or the federation into a second Prometheus.
"""

from collections.abc import Iterator, Mapping

import attrs

from tests.support.rules.series import Name, Series, Value, labelled, named, together, written

EXTENSION = "extension-aws"
_CK = {"controller": "infrastructure", "kind": "Infrastructure"}
_HOLD = 2
"""Scrapes in which a new counter is 0: those within 75 seconds."""
_WINDOW = 60

Changes = Mapping[int, float]
"""The value from each minute on."""
Counts = Mapping[int, int]
"""The increments of a counter, by minute."""


def deletions(outcome: str) -> Name:
    """Return the counter of deletions with this outcome."""
    return named("actuator_deletions_total", **_CK, outcome=outcome)


def stripped(resource: str) -> Name:
    """Return the counter of finalizers that were removed from these objects."""
    name = "actuator_seed_finalizers_stripped_total"
    return named(name, controller="infrastructure", resource=resource)


LOST = named("actuator_force_deletions_not_recorded_total", controller="infrastructure")
"""The counter of force deletions that left no record."""


def stuck(cause: str) -> Name:
    """Return the gauge of shoots that are stuck for a cause."""
    return named("actuator_stuck_shoots", cause=cause)


def terminating(state: str) -> Name:
    """Return the gauge of terminating objects in a state."""
    return named("actuator_terminating_objects", **_CK, state=state)


def open_orphans(age: str) -> Name:
    """Return the gauge of open Orphans of an age."""
    return named("actuator_open_orphans", age=age)


_HEALTHY_COUNTERS = (
    *map(deletions, ("deleted", "force_deleted", "orphaned", "failed", "gave_up", "skipped")),
    named("actuator_deletion_duration_seconds_count", **_CK, outcome="deleted"),
    named("actuator_deletion_duration_seconds_bucket", **_CK, outcome="deleted", le="600.0"),
    named("actuator_force_deletion_duration_seconds_count", **_CK),
    named("actuator_force_deletions_over_budget_total", **_CK),
    named("actuator_finalizers_removed_externally_total", **_CK),
    LOST,
    named("controller_runtime_reconcile_panics_total", controller="infrastructure"),
    named("actuator_collector_errors_total", collector="terminating"),
)
_HEALTHY_GAUGES = (
    stuck("none"),
    *map(terminating, ("deleting", "failing", "gave_up", "skipped", "foreign_finalizer")),
    *map(open_orphans, ("1d", "7d", "30d", "older")),
    named("workqueue_longest_running_processor_seconds", name="infrastructure"),
)


_BESIDE = {
    named("actuator_build_info", version="1"): 1.0,
    named("actuator_informer_stream_age_seconds", kind="infrastructures"): 10.0,
}
_LEADER = named("leader_election_master_status", name="lease")
_RENEWED = named("actuator_heartbeat_last_renewal_timestamp_seconds")
_RECORDED = {
    "actuator_deletions_total": "seed:actuator_deletions:sum",
    "actuator_seed_finalizers_stripped_total": "seed:actuator_seed_finalizers_stripped:sum",
    "actuator_force_deletions_not_recorded_total": "seed:actuator_force_deletions_not_recorded:sum",
    "actuator_stuck_shoots": "seed:actuator_stuck_shoots:sum",
    "actuator_terminating_objects": "seed:actuator_terminating_objects:sum",
    "actuator_open_orphans": "seed:actuator_open_orphans:sum",
}


@attrs.frozen(kw_only=True)
class Extension:
    """The events in so many minutes; everything else is healthy."""

    minutes: int
    counts: Mapping[Name, Counts] = {}
    gauges: Mapping[Name, Changes] = {}
    ends: int | None = None
    """The minute of its uninstallation."""
    down: int | None = None
    """The minute from which it does not answer, though it is a target."""

    def gained(self, name: Name, until: int, minutes: int = _WINDOW) -> int:
        """Return the increments of a counter in the minutes before, as the test counts itself."""
        found = self.counts.get(name, {})
        return sum(number for at, number in found.items() if until - minutes < at <= until)


@attrs.frozen(kw_only=True)
class Seen:
    """Circumstances under which Prometheus sees the extension."""

    restart: int | None = None
    """The minute in which a new pod replaces the leader."""
    reset: int | None = None
    """The minute in which its process starts again at the same address."""
    gap: tuple[int, int] | None = None
    """Minutes without samples, up to the second."""
    first: int = 0
    """The minute in which Prometheus is new."""
    standby: bool = False
    lead_changes: int | None = None
    """The minute in which the standby becomes the leader."""
    seeds: int = 0
    jobs: int = 1
    federated: bool = False


@attrs.frozen
class _Process:
    instance: str
    since: int
    until: int
    leads_since: int
    leads_until: int

    def leads(self, at: int) -> bool:
        return self.since <= at < self.until and self.leads_since <= at < self.leads_until

    def total(self, counts: Counts, at: int, *, is_late: bool) -> float | None:
        """Return the exposed value: 0 at first, then the increments in this process."""
        mine = sorted(minute for minute in counts if self.leads(minute))
        born = self.since if not is_late else (mine[0] if mine else self.until)
        if at < born:
            return None
        shown = [counts[minute] for minute in mine if minute <= at] if at - born >= _HOLD else []
        return float(sum(shown))


def scraped(extension: Extension, seen: Seen) -> Series:
    """Return all series of the extension under these circumstances."""
    if seen.federated:
        series: Series = labelled(_recorded(extension, seen), extension=EXTENSION)
    else:
        targets = _targets(extension, seen)
        series = together(labelled(targets, job=f"job-{job}") for job in range(seen.jobs))
    if not seen.seeds:
        return labelled(series, seed="seed-0") if seen.federated else series
    return together(labelled(series, seed=f"seed-{number}") for number in range(seen.seeds))


def _processes(extension: Extension, seen: Seen) -> Iterator[_Process]:
    end = extension.minutes if extension.ends is None else extension.ends
    change = end if seen.lead_changes is None else seen.lead_changes
    cut = seen.restart or seen.reset
    if cut is None:
        yield _Process("a", 0, end, 0, change)
    else:
        yield _Process("a", 0, cut, 0, change)
        yield _Process("b" if seen.restart else "a", cut + 1, end, cut + 1, change)
    if seen.standby or seen.lead_changes is not None:
        yield _Process("standby", 0, end, change, end)


def _targets(extension: Extension, seen: Seen) -> Series:
    values: dict[Name, list[Value]] = {}
    for process in _processes(extension, seen):
        for name, found in _samples(extension, seen, process):
            # Processes at one address follow each other.
            before = values.get(name, [None] * extension.minutes)
            both = zip(before, found, strict=True)
            values[name] = [new if new is not None else old for old, new in both]
    return {name: written(found) for name, found in values.items()}


def _samples(
    extension: Extension, seen: Seen, process: _Process
) -> Iterator[tuple[Name, list[Value]]]:
    minutes = range(extension.minutes)
    shown: dict[Name, list[float | None]] = {}
    for name in {*_HEALTHY_COUNTERS, *extension.counts}:
        counts = extension.counts.get(name, {})
        is_late = name not in _HEALTHY_COUNTERS
        shown[name] = [process.total(counts, at, is_late=is_late) for at in minutes]
    for name in {*_HEALTHY_GAUGES, *extension.gauges}:
        changes = extension.gauges.get(name, {})
        shown[name] = [_value(changes, at) if process.leads(at) else 0.0 for at in minutes]
    for name, value in _BESIDE.items():
        shown[name] = [value] * extension.minutes
    shown[_LEADER] = [float(process.leads(at)) for at in minutes]
    shown[_RENEWED] = [60.0 * at if process.leads(at) else 0.0 for at in minutes]
    down = extension.minutes if extension.down is None else extension.down
    answers = attrs.evolve(process, until=min(process.until, down))
    for name, values in shown.items():
        yield (
            name.but(instance=process.instance, extension=EXTENSION),
            [_sample(extension, seen, answers, at, value) for at, value in enumerate(values)],
        )
    is_up = [float(at < down) for at in minutes]
    yield (
        named("up", instance=process.instance),
        [_sample(extension, seen, process, at, value) for at, value in enumerate(is_up)],
    )


def _sample(
    extension: Extension, seen: Seen, process: _Process, at: int, value: float | None
) -> Value:
    if _is_missed(seen, at):
        return None
    if at == process.until and at < extension.minutes:
        return "stale"
    return value if process.since <= at < process.until else None


def _is_missed(seen: Seen, at: int) -> bool:
    return at < seen.first or (seen.gap is not None and seen.gap[0] <= at < seen.gap[1])


def _value(changes: Changes, at: int) -> float:
    since = max((minute for minute in changes if minute <= at), default=None)
    return 0.0 if since is None else changes[since]


def _recorded(extension: Extension, seen: Seen) -> Series:
    """Return the recordings of a seed's Prometheus, counted here and not by the rules."""
    minutes = range(extension.minutes)
    shown: dict[Name, list[float]] = {}
    for name in {*_HEALTHY_COUNTERS, *extension.counts}:
        if metric := _RECORDED.get(name.metric):
            shown[attrs.evolve(name, metric=metric)] = [
                float(extension.gained(name, at)) for at in minutes
            ]
    for name in {*_HEALTHY_GAUGES, *extension.gauges}:
        if metric := _RECORDED.get(name.metric):
            changes = extension.gauges.get(name, {})
            shown[attrs.evolve(name, metric=metric)] = [_value(changes, at) for at in minutes]
    replicas = 2.0 if seen.standby else 1.0
    shown[named("seed:actuator_targets:count")] = [replicas] * extension.minutes
    shown[named("seed:actuator_leaders:sum", name="lease")] = [1.0] * extension.minutes
    shown[named("seed:actuator_heartbeat_age_seconds:max")] = [30.0] * extension.minutes
    end = extension.minutes if extension.ends is None else extension.ends
    process = _Process("", 0, end, 0, end)
    return {
        name: written(
            _sample(extension, seen, process, at, value) for at, value in enumerate(values)
        )
        for name, values in shown.items()
    }
