"""Situations in which each alert must and must not fire, and values of recorded series.

Data for `promtool test rules` (see `promtool`). Time starts at 0, with a sample every minute. The
series of "stranger" belong to another program, which our rules must ignore.
"""

from collections.abc import Mapping, Sequence

import attrs

Series = Mapping[str, str]

_CK = 'job="ext", controller="infra", kind="Infrastructure"'
_C = 'job="ext", controller="infra"'
_STRANGER = 'job="stranger", controller="pods"'
_BUILD = {'actuator_build_info{job="ext", version="1"}': "1x2000"}


@attrs.frozen
class Situation:
    """Series, and the minute at which Prometheus is queried."""

    series: Series
    minute: int


@attrs.frozen
class Recorded:
    """Series, and the expected recording at minute 120: labels without the name, and value."""

    series: Series
    labels: str
    value: float


def _counter(metric: str, labels: str) -> tuple[Situation, list[Situation]]:
    """Return the situations of an alert on any increase of a counter."""
    name = f"{metric}{{{labels}}}"
    return Situation({name: "0x10 1x60"}, 15), [Situation({name: "7x60"}, 15)]


def _by(label: str, metric: str, labels: str, values: Mapping[str, str]) -> dict[str, str]:
    """Return one series for each value of a label."""
    return {f'{metric}{{{labels}, {label}="{name}"}}': value for name, value in values.items()}


def _deletions(**outcomes: str) -> dict[str, str]:
    return _by("outcome", "actuator_deletions_total", _CK, outcomes)


def _terminating(**states: str) -> dict[str, str]:
    return _by("state", "actuator_terminating_objects", _CK, states)


def _oldest(values: str) -> dict[str, str]:
    return {f"actuator_terminating_oldest_deletion_timestamp_seconds{{{_CK}}}": values}


def _errors(code: str, values: str, operation: str = "delete") -> dict[str, str]:
    return _by("code", "actuator_errors_total", f'{_C}, operation="{operation}"', {code: values})


def _leaders(job: str, *values: str) -> dict[str, str]:
    replicas = {str(number): value for number, value in enumerate(values)}
    labels = f'job="{job}", name="lease"'
    return _by("instance", "leader_election_master_status", labels, replicas)


def _reconciles(who: str, errors: str, successes: str) -> dict[str, str]:
    results = {"error": errors, "success": successes}
    failed = {f"controller_runtime_reconcile_errors_total{{{who}}}": errors}
    return failed | _by("result", "controller_runtime_reconcile_total", who, results)


def _waits(who: str, **buckets: str) -> dict[str, str]:
    named = {name.lstrip("_").replace("Inf", "+Inf"): v for name, v in buckets.items()}
    return _by("le", "workqueue_queue_duration_seconds_bucket", who, named)


def _requests(job: str, **codes: str) -> dict[str, str]:
    named = {name.lstrip("_").replace("none", "<error>"): v for name, v in codes.items()}
    return _by("code", "rest_client_requests_total", f'job="{job}", method="GET"', named)


_LONGEST = "workqueue_longest_running_processor_seconds"
_PANICS = "controller_runtime_reconcile_panics_total"
_RENEWED = 'actuator_heartbeat_last_renewal_timestamp_seconds{job="ext"}'
_UNSERVED = 'actuator_unserved_objects{job="ext", kind="workers", type="acmee"}'
_AGE = 'actuator_informer_stream_age_seconds{job="ext", kind="infrastructures"}'
_ORPHANED = f'actuator_orphaned_resources_reported_total{{{_C}, resource_type="vpc"}}'
_HOOK = 'actuator_webhook_outcomes_total{job="ext", webhook="mutate"'
_EXPIRY = 'actuator_webhook_certificate_expiry_timestamp_seconds{job="ext"}'
_COLLECTOR = 'actuator_collector_errors_total{job="ext", collector="terminating"}'

ALERTED: Mapping[str, tuple[Situation, Sequence[Situation]]] = {
    "ActuatorDeletionStuck": (
        Situation(_oldest("0x200"), 80),
        [Situation(_oldest("0x200"), 70), Situation(_oldest("3000x200"), 100)],
    ),
    "ActuatorDeletionStuckForLong": (
        Situation(_oldest("0x1500"), 1460),
        [Situation(_oldest("0x1500"), 1445), Situation(_oldest("9000x1500"), 1460)],
    ),
    "ActuatorDeletionGaveUp": (
        Situation(_terminating(gave_up="1x20"), 10),
        [
            Situation(_terminating(gave_up="1x20"), 3),
            Situation(_terminating(failing="1x20", gave_up="0x20"), 10),
        ],
    ),
    "ActuatorDeletionFailureRatioHigh": (
        Situation(_deletions(failed="0+1x200", deleted="0+0.2x200"), 120),
        [
            Situation(_deletions(failed="0+0.2x200", deleted="0+1x200"), 120),
            Situation(_deletions(failed="0x60 1x100", deleted="0x160"), 110),
            Situation(_deletions(skipped="0+1x200", deleted="0+0.1x200"), 120),
            Situation(_deletions(failed="0+1x200", deleted="0+0.2x200"), 20),
        ],
    ),
    "ActuatorNoDeletionProgress": (
        Situation(_terminating(failing="1x300") | _deletions(deleted="0x300"), 150),
        [
            Situation(_terminating(failing="1x300") | _deletions(deleted="0x300"), 100),
            Situation(_terminating(failing="1x300") | _deletions(orphaned="0+1x300"), 150),
            Situation(_terminating(foreign_finalizer="1x300", failing="0x300"), 150),
        ],
    ),
    "ActuatorResourcesOrphaned": (
        Situation({_ORPHANED: "_x10 1x100"}, 15),
        [Situation({_ORPHANED: "_x10 1x100"}, 90)],
    ),
    "ActuatorFinalizerRemovedExternally": _counter(
        "actuator_finalizers_removed_externally_total", _CK
    ),
    "ActuatorForceDeletionsFrequent": (
        Situation(_deletions(orphaned="0+0.2x60", force_deleted="0+0.2x60"), 45),
        [
            Situation(_deletions(orphaned="0x10 3x60", force_deleted="0x70"), 45),
            Situation(_deletions(orphaned="0x10 9x60", force_deleted="0x70"), 13),
            Situation(_deletions(deleted="0+1x60", orphaned="0x60"), 45),
        ],
    ),
    "ActuatorForceDeletionsOverBudget": _counter("actuator_force_deletions_over_budget_total", _CK),
    "ActuatorSeedFinalizersStripped": _counter(
        "actuator_seed_finalizers_stripped_total", f'{_C}, resource="machines.machine"'
    ),
    "ActuatorInfraAccessDenied": (
        Situation(_errors("ERR_INFRA_UNAUTHORIZED", "0+1x60"), 45),
        [
            Situation(_errors("ERR_INFRA_UNAUTHORIZED", "0+1x60", "reconcile"), 45),
            Situation(_errors("ERR_INFRA_DEPENDENCIES", "0+1x60"), 45),
            Situation(_errors("ERR_INFRA_UNAUTHORIZED", "0x10 2x60"), 45),
            Situation(_errors("ERR_INFRA_UNAUTHORIZED", "0+1x60"), 10),
        ],
    ),
    "ActuatorDown": (
        Situation({'actuator_build_info{job="ext", version="1"}': "1x10 stale"}, 30),
        [
            Situation({'actuator_build_info{job="ext", version="1"}': "1x10 stale"}, 15),
            Situation(_BUILD, 30),
        ],
    ),
    "ActuatorLeaderMissing": (
        Situation(_BUILD | _leaders("ext", "0x20", "0x20"), 10),
        [
            Situation(_BUILD | _leaders("ext", "0x20", "1x20"), 10),
            Situation(_BUILD | _leaders("ext", "0x20", "0x20"), 3),
            Situation(_BUILD | _leaders("stranger", "0x20"), 10),
        ],
    ),
    "ActuatorLeaderDuplicate": (
        Situation(_BUILD | _leaders("ext", "1x20", "1x20"), 5),
        [
            Situation(_BUILD | _leaders("ext", "1x20", "0x20"), 5),
            Situation(_BUILD | _leaders("ext", "1x20", "1x20"), 1),
            Situation(_BUILD | _leaders("stranger", "1x20", "1x20"), 5),
        ],
    ),
    "ActuatorHeartbeatStale": (
        Situation({_RENEWED: "60x60"}, 10),
        [
            Situation({_RENEWED: "60x60"}, 4),
            Situation({_RENEWED: "0x60"}, 10),
            Situation({_RENEWED: "0+60x60"}, 10),
        ],
    ),
    "ActuatorTypeUnserved": (
        Situation({_UNSERVED: "2x60"}, 30),
        [Situation({_UNSERVED: "2x9"}, 30), Situation({_UNSERVED: "2x60"}, 9)],
    ),
    "ActuatorStreamStale": (
        Situation({_AGE: "400x60"}, 10),
        [Situation({_AGE: "400x60"}, 3), Situation({_AGE: "60x60"}, 10)],
    ),
    "ActuatorReconcileErrorsHigh": (
        Situation(_BUILD | _reconciles(_C, "0+1x60", "0+1x60"), 45),
        [
            Situation(_BUILD | _reconciles(_C, "0+1x60", "0+10x60"), 45),
            Situation(_BUILD | _reconciles(_C, "0+1x60", "0+1x60"), 20),
            Situation(_BUILD | _reconciles(_STRANGER, "0+1x60", "0+1x60"), 45),
        ],
    ),
    "ActuatorReconcilePanics": (
        Situation(_BUILD | {f"{_PANICS}{{{_C}}}": "0x5 1x20"}, 10),
        [
            Situation(_BUILD | {f"{_PANICS}{{{_C}}}": "1x20"}, 10),
            Situation(_BUILD | {f"{_PANICS}{{{_STRANGER}}}": "0x5 1x20"}, 10),
        ],
    ),
    "ActuatorWorkerStuck": (
        Situation(_BUILD | {f'{_LONGEST}{{{_C}, name="infra"}}': "4000x20"}, 10),
        [
            Situation(_BUILD | {f'{_LONGEST}{{{_C}, name="infra"}}': "4000x20"}, 3),
            Situation(_BUILD | {f'{_LONGEST}{{{_C}, name="infra"}}': "3000x20"}, 10),
            Situation(_BUILD | {f'{_LONGEST}{{{_STRANGER}, name="pods"}}': "4000x20"}, 10),
        ],
    ),
    "ActuatorQueueSlow": (
        Situation(_BUILD | _waits(_C, _300="0x60", _1000="0+1x60", Inf="0+1x60"), 30),
        [
            Situation(_BUILD | _waits(_C, _300="0+1x60", _1000="0+1x60", Inf="0+1x60"), 30),
            Situation(_BUILD | _waits(_C, _300="0x60", _1000="0+1x60", Inf="0+1x60"), 10),
            Situation(_BUILD | _waits(_STRANGER, _300="0x60", _1000="0+1x60", Inf="0+1x60"), 30),
        ],
    ),
    "ActuatorApiErrorsHigh": (
        Situation(_BUILD | _requests("ext", _500="0+1x60", _200="0+9x60"), 30),
        [
            Situation(_BUILD | _requests("ext", _404="0+1x60", _200="0+9x60"), 30),
            Situation(_BUILD | _requests("ext", _500="0+1x60", _200="0+99x60"), 30),
            Situation(_BUILD | _requests("ext", _500="0+1x60", _200="0+9x60"), 10),
            Situation(_BUILD | _requests("stranger", none="0+1x60", _200="0+9x60"), 30),
        ],
    ),
    "ActuatorCollectorBroken": (
        Situation({_COLLECTOR: "0x5 1x60"}, 12),
        [Situation({_COLLECTOR: "3x60"}, 12), Situation({_COLLECTOR: "0x5 1x60"}, 8)],
    ),
    "ActuatorWebhookFailing": (
        Situation({f'{_HOOK}, outcome="failed"}}': "0x5 1x60"}, 12),
        [
            Situation({f'{_HOOK}, outcome="failed"}}': "3x60"}, 12),
            Situation({f'{_HOOK}, outcome="denied"}}': "0+1x60"}, 12),
        ],
    ),
    "ActuatorWebhookCertificateExpiring": (
        Situation({_EXPIRY: "80000x60"}, 20),
        [
            Situation({_EXPIRY: "80000x60"}, 10),
            Situation({_EXPIRY: "100000x60"}, 20),
            Situation({_EXPIRY: "0x60"}, 20),
        ],
    ),
}
"""For each alert, a situation in which it fires, and some in which it does not."""

_BUCKET = "actuator_deletion_duration_seconds_bucket"
_DELETED = f'{_CK}, outcome="deleted"'
_STATE = f'{_CK}, state="failing"'

RECORDED: Mapping[str, Recorded] = {
    "job_controller_kind_outcome:actuator_deletions:rate5m": Recorded(
        _deletions(deleted="0+60x120"), _DELETED, 1.0
    ),
    "job_controller_kind_outcome:actuator_deletions:increase1h": Recorded(
        _deletions(deleted="0+1x120"), _DELETED, 60.0
    ),
    "job_controller_kind:actuator_deletions_failed:ratio_increase1h": Recorded(
        _deletions(failed="0+0.5x120", gave_up="0+0.5x120", deleted="0+3x120", skipped="0+9x120"),
        _CK,
        0.25,
    ),
    "job_controller_kind_le:actuator_deletion_duration_seconds_bucket:rate1h": Recorded(
        _by("le", _BUCKET, _DELETED, {"60": "0+60x120"}), f'{_CK}, le="60"', 1.0
    ),
    "job_controller_kind:actuator_deletion_duration_seconds:p95_rate1h": Recorded(
        _by("le", _BUCKET, _DELETED, {"60": "0x120", "120": "0+60x120", "+Inf": "0+60x120"}),
        _CK,
        117.0,
    ),
    "job_controller_kind_state:actuator_terminating_objects:max": Recorded(
        _by("instance", "actuator_terminating_objects", _STATE, {"a": "3x120", "b": "0x120"}),
        _STATE,
        3.0,
    ),
    "job_controller_kind:actuator_terminating_oldest_age_seconds:max": Recorded(
        _oldest("3600x120"), _CK, 3600.0
    ),
    "job_controller_code:actuator_deletion_errors:increase1h": Recorded(
        _errors("none", "0+1x120")
        | _errors("none", "0+1x120", "force_delete")
        | _errors("none", "0+9x120", "reconcile"),
        f'{_C}, code="none"',
        120.0,
    ),
    "job_controller:controller_runtime_reconcile_errors:ratio_rate5m": Recorded(
        _BUILD
        | _reconciles(_C, "0+1x120", "0+3x120")
        | _reconciles(_STRANGER, "0+1x120", "0+1x120"),
        _C,
        0.25,
    ),
    "job:rest_client_requests_failed:ratio_rate5m": Recorded(
        _BUILD
        | _requests("ext", _500="0+1x120", none="0+1x120", _200="0+6x120")
        | _requests("stranger", _500="0+1x120", _200="0+1x120"),
        'job="ext"',
        0.25,
    ),
    "job_controller:workqueue_queue_duration_seconds:p99_rate5m": Recorded(
        _BUILD
        | _waits(_C, _30="0x120", _60="0+60x120", Inf="0+60x120")
        | _waits(_STRANGER, _30="0x120", _60="0+60x120", Inf="0+60x120"),
        _C,
        59.7,
    ),
}
"""An example for each recorded series."""
