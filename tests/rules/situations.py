"""Situations in which each alert must and must not fire, and values of recorded series.

Data for `promtool test rules` (see `promtool`). Time starts at 0, with a sample every minute.
Alerts read recorded series only. Not here: a whole extension, and all alerts at once (`causes`).
"""

from collections.abc import Mapping, Sequence

import attrs

from generic.tools.monitoring.objectives import BURN, ERRORS, OBJECTIVES
from tests.support.rules.series import Series, each, one

_E = {"extension": "ext"}
_CK = {"controller": "infra", "kind": "Infrastructure"}


@attrs.frozen
class Situation:
    """Series, and the minute at which Prometheus is queried."""

    series: Series
    minute: int


@attrs.frozen
class Recorded:
    """Series, and the expected recording at minute 120: labels but the extension, and value."""

    series: Series
    labels: Mapping[str, str]
    value: float | None


def _seed(name: str, values: str, /, **labels: str) -> Series:
    return one(f"seed:actuator_{name}", values, **_E, **labels)


def _stuck(values: str, cause: str = "ERR_A", extension: str = "ext") -> Series:
    return one("seed:actuator_stuck_shoots:sum", values, extension=extension, cause=cause)


def _api(values: str) -> Series:
    return _seed("api_errors:ratio", values)


def _over(name: str, over: str, under: str, late: int, /, **labels: str) -> "Alerted":
    """Return the situations of an alert on a value, which fires only from minute `late` on."""
    fires = Situation(_seed(name, f"{over}x200", **labels), late)
    quiet = [Situation(_seed(name, f"{under}x200", **labels), 150)]
    if late > 2:
        quiet.append(Situation(fires.series, late - 4))
    return fires, quiet


def _orphans(**ages: str) -> Series:
    return each("seed:actuator_open_orphans:sum", "age", ages, **_E)


_TARGETS = "targets:count"
Alerted = tuple[Situation, Sequence[Situation]]

_HAND_WRITTEN: Mapping[str, Alerted] = {
    "ActuatorDeletionStuck warning": (
        Situation({**_stuck("1x60"), **_stuck("2x60", extension="other")}, 20),
        [Situation(_stuck("1x60"), 12), Situation(_stuck("0x60"), 30)],
    ),
    "ActuatorDeletionStuckMore warning": (
        Situation(_stuck("1x99 2x99"), 120),
        [
            Situation(_stuck("1x99 2x99"), 110),
            Situation(_stuck("1x99 4x99"), 120),
            Situation(_stuck("0x99 1x99"), 120),
            Situation(_stuck("2x99 1x99"), 120),
            Situation(_stuck("1x99 2x99"), 199),
        ],
    ),
    "ActuatorResourcesOrphaned info": (
        Situation(_orphans(**{"1d": "1x60", "older": "0x60"}), 5),
        [Situation(_orphans(**{"1d": "0x60"}), 5)],
    ),
    "ActuatorOrphansMany warning": (
        Situation(_orphans(**{"1d": "60x60", "7d": "41x60", "older": "0x60"}), 20),
        [
            Situation(_orphans(**{"1d": "60x60", "7d": "40x60"}), 20),
            Situation(_orphans(**{"1d": "60x60", "7d": "41x60"}), 12),
            Situation(_orphans(**{"1d": "600x60", "older": "1x60"}), 20),
        ],
    ),
    "ActuatorFinalizerRemovedExternally warning": _over(
        "finalizers_removed_externally:sum", "1", "0", 2, **_CK
    ),
    "ActuatorForceDeletionNotRecorded warning": _over(
        "force_deletions_not_recorded:sum", "1", "0", 2, controller="infra"
    ),
    "ActuatorSeedFinalizersStripped info": _over(
        "seed_finalizers_stripped:sum", "1", "0", 2, resource="machines"
    ),
    "ActuatorDown critical": _over(_TARGETS, "0", "1", 12),
    "ActuatorUninstalled warning": (
        Situation(
            {
                **_seed(_TARGETS, "2x30 stale"),
                **one(f"seed:actuator_{_TARGETS}", "1x200", extension="b"),
            },
            50,
        ),
        [
            Situation(
                {
                    **_seed(_TARGETS, "2x30 stale"),
                    **one(f"seed:actuator_{_TARGETS}", "1x200", extension="b"),
                },
                36,
            ),
            Situation(_seed(_TARGETS, "2x200"), 50),
            Situation(_seed(_TARGETS, "0x30 stale"), 50),
            Situation(_seed(_TARGETS, "2x30 stale", seed="dead"), 50),
        ],
    ),
    "ActuatorSeedUnmonitored critical": (
        Situation(_seed(_TARGETS, "2x30 stale"), 50),
        [
            Situation(_seed(_TARGETS, "2x30 stale", seed="a"), 36),
            Situation(_seed(_TARGETS, "2x30 stale"), 50),
            Situation(_seed(_TARGETS, "2x200", seed="a"), 50),
        ],
    ),
    "ActuatorApiErrorsHigh warning": _over("api_errors:ratio", "0.06", "0.04", 17),
    "ActuatorLeaderMissing critical": (
        Situation({**_seed("leaders:sum", "0x60", name="lease"), **_api("0.4x60")}, 7),
        [
            Situation(_seed("leaders:sum", "0x60", name="lease"), 3),
            Situation(_seed("leaders:sum", "1x60", name="lease"), 10),
            Situation({**_seed("leaders:sum", "0x60", name="lease"), **_api("1x60")}, 30),
        ],
    ),
    "ActuatorLeaderDuplicate critical": _over("leaders:sum", "2", "1", 5, name="lease"),
    "ActuatorHeartbeatStale critical": (
        Situation({**_seed("heartbeat_age_seconds:max", "150x60"), **_api("0.4x60")}, 5),
        [
            Situation(_seed("heartbeat_age_seconds:max", "150x60"), 1),
            Situation(_seed("heartbeat_age_seconds:max", "100x60"), 10),
            Situation({**_seed("heartbeat_age_seconds:max", "150x60"), **_api("1x60")}, 30),
        ],
    ),
    "ActuatorStreamStale warning": (
        Situation({**_seed("stream_age_seconds:max", "400x60", kind="a"), **_api("0.4x60")}, 7),
        [
            Situation(_seed("stream_age_seconds:max", "400x60", kind="a"), 3),
            Situation(_seed("stream_age_seconds:max", "60x60", kind="a"), 10),
            Situation({**_seed("stream_age_seconds:max", "400x60", kind="a"), **_api("1x60")}, 30),
        ],
    ),
    "ActuatorTypeUnserved warning": _over(
        "unserved_objects:max", "2", "0", 17, kind="workers", type="acmee"
    ),
    "ActuatorReconcilePanics warning": _over("panics:sum", "1", "0", 2, controller="infra"),
    "ActuatorWorkerStuck warning": _over(
        "longest_call_seconds:max", "4000", "3000", 7, name="infra"
    ),
    "ActuatorQueueSlow warning": (
        Situation(_seed("queue_wait_seconds:p99", "400x60", controller="infra"), 17),
        [
            Situation(_seed("queue_wait_seconds:p99", "400x60", controller="infra"), 13),
            Situation(_seed("queue_wait_seconds:p99", "200x60", controller="infra"), 30),
            Situation(
                {**_seed("queue_wait_seconds:p99", "400x60", controller="infra"), **_stuck("1x60")},
                30,
            ),
        ],
    ),
    "ActuatorCollectorBroken warning": _over("collector_errors:sum", "1", "0", 7, collector="a"),
    "ActuatorWebhookFailing warning": _over("webhook_failures:sum", "1", "0", 7, webhook="mutate"),
    "ActuatorWebhookCertificateExpiring critical": _over(
        "webhook_certificate_seconds:min", "80000", "90000", 17
    ),
}


def _burning(objective: str, **severities: str) -> Series:
    return each(BURN, "severity", severities, **_E, objective=objective)


def _objective(name: str, severity: str, *, is_second: bool) -> Alerted:
    fires = Situation(_burning(name, **{severity: "1x200"}), 5)
    if not is_second:
        return fires, [Situation(_burning(f"not-{name}", **{severity: "1x200"}), 5)]
    known = _burning(name, critical="1x20", warning="1x200")
    return fires, [Situation(known, 10), Situation(known, 150)]


ALERTED: Mapping[str, Alerted] = dict(_HAND_WRITTEN) | {
    f"{alert} {severity}": _objective(objective.name, severity, is_second=number > 0)
    for objective in OBJECTIVES
    for number, (severity, alert) in enumerate(objective.alerts.items())
}
"""For each alert and severity, a situation in which it fires, and some in which it does not."""


def _replica(metric: str, values: str, /, **labels: str) -> Series:
    return one(metric, values, **_E, instance="a", **labels)


def _two(metric: str, first: str, second: str, /, **labels: str) -> Series:
    """Return the series of two replicas."""
    return each(metric, "instance", {"a": first, "b": second}, **_E, **labels)


def _sum(metric: str, **labels: str) -> Sequence[Recorded]:
    """Return the example of a gauge that is added over replicas."""
    return [Recorded(_two(metric, "3x120", "0x120", **labels), labels, 3.0)]


def _largest(metric: str, values: str, value: float, /, **labels: str) -> Sequence[Recorded]:
    return [Recorded(_two(metric, values, "1x120", **labels), labels, value)]


def _gained(metric: str, **labels: str) -> Sequence[Recorded]:
    """Return examples of a counter: 100 before, 7 and 5 within the window, in two replicas."""
    return [
        Recorded(_two(metric, "100x111 107x9", "0x113 5x7", **labels), labels, 12.0),
        Recorded(_two(metric, "100x111 3x9", "_x112 0 0 5x7", **labels), labels, 8.0),
    ]


_REQUESTS = "rest_client_requests_total"
_WAIT = "workqueue_queue_duration_seconds_bucket"
_BUILD = _two("actuator_build_info", "1x120", "1x120", version="1")
_UP = one("up", "1x120", instance="a")

_RECORDED: Mapping[str, Sequence[Recorded]] = {
    "seed:actuator_targets:count": [
        Recorded(_BUILD, {}, 2.0),
        Recorded(
            {
                **_replica("actuator_build_info", "1x60 stale"),
                **one("up", "1x60 0x60", instance="a"),
            },
            {},
            0.0,
        ),
        Recorded({**_replica("actuator_build_info", "1x60 stale"), **_UP}, {}, None),
        Recorded(_replica("actuator_build_info", "1x60 stale"), {}, None),
    ],
    "seed:actuator_stuck_shoots:sum": _sum("actuator_stuck_shoots", cause="ERR_A"),
    "seed:actuator_terminating_objects:sum": _sum(
        "actuator_terminating_objects", **_CK, state="failing"
    ),
    "seed:actuator_orphans:sum": _sum(
        "actuator_orphans", kind="Infrastructure", resource_type="vpc", state="Exists"
    ),
    "seed:actuator_open_orphans:sum": _sum("actuator_open_orphans", age="older"),
    "seed:actuator_deletions:sum": _gained("actuator_deletions_total", **_CK, outcome="deleted"),
    "seed:actuator_finalizers_removed_externally:sum": _gained(
        "actuator_finalizers_removed_externally_total", **_CK
    ),
    "seed:actuator_force_deletions_not_recorded:sum": _gained(
        "actuator_force_deletions_not_recorded_total", controller="infra"
    ),
    "seed:actuator_seed_finalizers_stripped:sum": _gained(
        "actuator_seed_finalizers_stripped_total", controller="infra", resource="machines"
    ),
    "seed:actuator_leaders:sum": _sum("leader_election_master_status", name="lease"),
    "seed:actuator_heartbeat_age_seconds:max": [
        Recorded(
            _two("actuator_heartbeat_last_renewal_timestamp_seconds", "7000x120", "0x120"),
            {},
            200.0,
        ),
    ],
    "seed:actuator_stream_age_seconds:max": _largest(
        "actuator_informer_stream_age_seconds", "400x120", 400.0, kind="infrastructures"
    ),
    "seed:actuator_unserved_objects:max": _largest(
        "actuator_unserved_objects", "2x120", 2.0, kind="workers", type="acmee"
    ),
    "seed:actuator_panics:sum": _gained(
        "controller_runtime_reconcile_panics_total", controller="infra"
    ),
    "seed:actuator_longest_call_seconds:max": _largest(
        "workqueue_longest_running_processor_seconds", "70x120", 70.0, name="infra"
    ),
    "seed:actuator_queue_wait_seconds:p99": [
        Recorded(
            each(
                _WAIT,
                "le",
                {"30": "0+30x120", "+Inf": "0+60x120", "60": "0+60x120"},
                **_E,
                controller="infra",
                instance="a",
            ),
            {"controller": "infra"},
            59.4,
        )
    ],
    "seed:actuator_api_errors:ratio": [
        Recorded(
            each(
                _REQUESTS,
                "code",
                {"500": "0+1x120", "<error>": "0+1x120", "404": "0+1x120", "200": "0+5x120"},
                **_E,
                method="GET",
                host="seed",
                instance="a",
            ),
            {},
            0.25,
        )
    ],
    "seed:actuator_collector_errors:sum": _gained("actuator_collector_errors_total", collector="a"),
    "seed:actuator_webhook_failures:sum": [
        Recorded(
            each(
                "actuator_webhook_outcomes_total",
                "outcome",
                {"failed": "0x111 7x9", "denied": "0x111 9x9"},
                **_E,
                webhook="mutate",
                instance="a",
            )
            | one(
                "actuator_webhook_outcomes_total",
                "9x115 0 0 5x3",
                **_E,
                webhook="mutate",
                outcome="failed",
                instance="b",
            ),
            {"webhook": "mutate"},
            12.0,
        )
    ],
    "seed:actuator_webhook_certificate_seconds:min": [
        Recorded(
            _two("actuator_webhook_certificate_expiry_timestamp_seconds", "9200x120", "0x120"),
            {},
            2000.0,
        )
    ],
}
_DELETION = "actuator_deletion_duration_seconds"
_FORCED = "actuator_force_deletion_duration_seconds_count"
_QUARTER: Mapping[str, Series] = {
    "deletion-success": each(
        "actuator_deletions_total",
        "outcome",
        {"deleted": "0+3x120", "failed": "0+9x120", "orphaned": "0+1x120"},
        **_E,
        **_CK,
        instance="a",
    ),
    "deletion-duration": {
        **_replica(f"{_DELETION}_count", "0+4x120", **_CK, outcome="deleted"),
        **_replica(f"{_DELETION}_bucket", "0+4x120", **_CK, outcome="deleted", le="1800.0"),
        **_replica(f"{_DELETION}_bucket", "0+3x120", **_CK, outcome="deleted", le="600.0"),
    },
    "force-deletion-budget": {
        **_replica(_FORCED, "0+4x120", **_CK),
        **_replica("actuator_force_deletions_over_budget_total", "0+1x120", **_CK),
    },
    "orphan-age": _orphans(**{"1d": "2x120", "30d": "1x120", "older": "1x120"}),
}
"""For each objective, series with a quarter of bad events."""


def _shares() -> dict[str, Sequence[Recorded]]:
    found: dict[str, Sequence[Recorded]] = {}
    for objective in OBJECTIVES:
        for window in {window for burn in objective.burns for window in (burn.long, burn.short)}:
            labels = {"objective": objective.name, "window": window}
            found[f"{ERRORS} {objective.name} {window}"] = [
                Recorded(_QUARTER[objective.name], labels, 0.25)
            ]
    return found


def _burns() -> dict[str, Sequence[Recorded]]:
    """Return whether an objective burns, just above and below each limit of the SRE Workbook."""
    found: dict[str, Sequence[Recorded]] = {}
    for objective in OBJECTIVES:
        for burn in objective.burns:
            labels = {"objective": objective.name, "severity": burn.severity}
            limit = burn.factor * (1 - objective.target)
            shares = [(limit + 0.01, limit + 0.01), (limit - 0.01, 1.0), (1.0, limit - 0.01)]
            examples = [
                Recorded(
                    each(
                        ERRORS,
                        "window",
                        {burn.long: f"{long:.4f}x120", burn.short: f"{short:.4f}x120"},
                        **_E,
                        objective=objective.name,
                    ),
                    labels,
                    1.0 if number == 0 else None,
                )
                for number, (long, short) in enumerate(shares)
            ]
            key = f"{BURN} {objective.name} {burn.severity}"
            found[key] = [*found.get(key, ()), *examples]
    return found


RECORDED: Mapping[str, Sequence[Recorded]] = {**_RECORDED, **_shares(), **_burns()}
"""Examples for each recorded series."""
