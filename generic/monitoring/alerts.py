"""The alerts. Each has a page under docs/runbooks: what it means, and what to do."""

from __future__ import annotations

from generic.monitoring.model import Alert, Severity
from generic.monitoring.recording import OURS

__all__ = ["ALERTS"]

_CK = "job, controller, kind"
_INCREASE = "job_controller_kind_outcome:actuator_deletions:increase1h"
_FINAL = 'outcome=~"deleted|force_deleted|orphaned"'
_OLDEST = "job_controller_kind:actuator_terminating_oldest_age_seconds:max"
_ORPHANED = "actuator_orphaned_resources_reported_total"
"""Nobody knows the types before: a series begins with its first thing, which is no increase."""
_STATES = "job_controller_kind_state:actuator_terminating_objects:max"
_WHERE = "{{ $labels.kind }} of {{ $labels.controller }} ({{ $labels.job }})"
_CONTROLLER = "{{ $labels.controller }} ({{ $labels.job }})"

_OF_DELETIONS = (
    Alert(
        name="ActuatorDeletionStuck",
        expr=f"{_OLDEST} > 3600",
        lasting="15m",
        severity=Severity.WARNING,
        summary="An object has been under deletion for more than an hour.",
        description=f"The oldest {_WHERE} under deletion waits for "
        "{{ $value | humanizeDuration }}. `actuator explain` says what blocks it.",
    ),
    Alert(
        name="ActuatorDeletionStuckForLong",
        expr=f"{_OLDEST} > 86400",
        lasting="15m",
        severity=Severity.CRITICAL,
        summary="An object has been under deletion for more than a day.",
        description=f"The oldest {_WHERE} under deletion waits for "
        "{{ $value | humanizeDuration }}. Mend what blocks it, or force its deletion.",
    ),
    Alert(
        name="ActuatorDeletionGaveUp",
        expr=f'{_STATES}{{state="gave_up"}} > 0',
        lasting="5m",
        severity=Severity.WARNING,
        summary="Deletions are not tried any more.",
        description=f"{{{{ $value }}}} {_WHERE} failed for too long; nothing is tried before "
        "something about them changes.",
    ),
    Alert(
        name="ActuatorDeletionFailureRatioHigh",
        expr="job_controller_kind:actuator_deletions_failed:ratio_increase1h > 0.5 and "
        f'sum by ({_CK}) ({_INCREASE}{{outcome!="skipped"}}) >= 5',
        lasting="30m",
        severity=Severity.WARNING,
        summary="Most tries at deletions fail.",
        description=f"{{{{ $value | humanizePercentage }}}} of the tries at deleting {_WHERE} "
        "failed within the last hour.",
    ),
    Alert(
        name="ActuatorNoDeletionProgress",
        expr=f'sum by ({_CK}) ({_STATES}{{state=~"deleting|failing"}}) > 0 unless '
        f"sum by ({_CK}) ({_INCREASE}{{{_FINAL}}}) > 0",
        lasting="2h",
        severity=Severity.WARNING,
        summary="Objects are under deletion, and none gets through.",
        description=f"{{{{ $value }}}} {_WHERE} are under deletion, and within an hour none was "
        "let go of.",
    ),
    Alert(
        name="ActuatorResourcesOrphaned",
        expr="sum by (job, controller, resource_type) "
        f"(increase({_ORPHANED}[1h]) > 0 or ({_ORPHANED} unless {_ORPHANED} offset 1h))",
        severity=Severity.WARNING,
        summary="Something was left outside the seed.",
        description="{{ $value | humanize }} of type {{ $labels.resource_type }} may be left by "
        f"{_CONTROLLER}. `actuator orphans list` names them.",
    ),
    Alert(
        name="ActuatorDeletionBypassed",
        expr=f"sum by ({_CK}) (increase(actuator_deletions_bypassed_total[1h])) > 0",
        severity=Severity.WARNING,
        summary="Somebody removed a finalizer before cleanup was finished.",
        description=f"{{{{ $value | humanize }}}} {_WHERE} went without their cleanup; what may be "
        "left is on record as Orphans.",
    ),
    Alert(
        name="ActuatorForceDeletionsFrequent",
        expr=f'sum by ({_CK}) ({_INCREASE}{{outcome=~"force_deleted|orphaned"}}) > 5',
        lasting="5m",
        severity=Severity.WARNING,
        summary="Many deletions are forced.",
        description=f"{{{{ $value | humanize }}}} {_WHERE} were force-deleted within an hour; "
        "something that all of them need may be broken.",
    ),
    Alert(
        name="ActuatorForceDeletionsOverBudget",
        expr=f"sum by ({_CK}) (increase(actuator_force_deletions_over_budget_total[1h])) > 0",
        severity=Severity.WARNING,
        summary="Force deletions run out of their budget.",
        description=f"{{{{ $value | humanize }}}} {_WHERE} were let go of without their actuator, "
        "since it hung or failed until the budget was over.",
    ),
    Alert(
        name="ActuatorSeedFinalizersStripped",
        expr="sum by (job, controller, resource) "
        "(increase(actuator_seed_finalizers_stripped_total[1h])) > 0",
        severity=Severity.INFO,
        summary="Finalizers of others were taken off objects in the seed.",
        description="{{ $value | humanize }} came off {{ $labels.resource }} by "
        f"{_CONTROLLER}, as force deletion does.",
    ),
    Alert(
        name="ActuatorInfraAccessDenied",
        expr="job_controller_code:actuator_deletion_errors:increase1h"
        '{code=~"ERR_INFRA_UNAUTH.*"} > 3',
        lasting="15m",
        severity=Severity.WARNING,
        summary="The infrastructure denies access to deletions.",
        description=f"Deletions of {_CONTROLLER} failed {{{{ $value | humanize }}}} times within "
        "an hour with {{ $labels.code }}.",
    ),
)

_OF_MACHINERY = (
    Alert(
        name="ActuatorDown",
        expr="group by (job) (last_over_time(actuator_build_info[1d])) "
        "unless on (job) actuator_build_info",
        lasting="10m",
        severity=Severity.CRITICAL,
        summary="An extension is gone.",
        description="Nothing of {{ $labels.job }} can be scraped any more.",
    ),
    Alert(
        name="ActuatorLeaderMissing",
        expr=f"sum by (job, name) (leader_election_master_status) == 0 {OURS}",
        lasting="5m",
        severity=Severity.CRITICAL,
        summary="No replica leads.",
        description="No replica of {{ $labels.job }} holds the Lease {{ $labels.name }}: nothing "
        "is reconciled.",
    ),
    Alert(
        name="ActuatorLeaderDuplicate",
        expr=f"sum by (job, name) (leader_election_master_status) > 1 {OURS}",
        lasting="2m",
        severity=Severity.CRITICAL,
        summary="Several replicas lead.",
        description="{{ $value }} replicas of {{ $labels.job }} say that they hold the Lease "
        "{{ $labels.name }}.",
    ),
    Alert(
        name="ActuatorHeartbeatStale",
        expr="time() - max by (job) (actuator_heartbeat_last_renewal_timestamp_seconds > 0) > 120",
        lasting="2m",
        severity=Severity.CRITICAL,
        summary="The heartbeat is not renewed.",
        description="{{ $labels.job }} renewed its heartbeat {{ $value | humanizeDuration }} ago; "
        "after five minutes gardenlet takes its conditions for Unknown.",
    ),
    Alert(
        name="ActuatorStreamStale",
        expr="max by (job, kind) (actuator_informer_stream_age_seconds) > 300",
        lasting="5m",
        severity=Severity.WARNING,
        summary="A watch gives no sign of life.",
        description="{{ $labels.job }} has heard nothing of {{ $labels.kind }} for "
        "{{ $value | humanizeDuration }}.",
    ),
    Alert(
        name="ActuatorReconcileErrorsHigh",
        expr="job_controller:controller_runtime_reconcile_errors:ratio_rate5m > 0.25",
        lasting="30m",
        severity=Severity.WARNING,
        summary="Many reconciles fail.",
        description=f"{{{{ $value | humanizePercentage }}}} of the reconciles of {_CONTROLLER} "
        "fail.",
    ),
    Alert(
        name="ActuatorReconcilePanics",
        expr="sum by (job, controller) (increase(controller_runtime_reconcile_panics_total[15m]))"
        f" > 0 {OURS}",
        severity=Severity.WARNING,
        summary="An extension has a bug.",
        description=f"{_CONTROLLER} ran into {{{{ $value | humanize }}}} exceptions that nobody "
        "raised on purpose; its log has their tracebacks.",
    ),
    Alert(
        name="ActuatorWorkerStuck",
        expr=f"max by (job, name) (workqueue_longest_running_processor_seconds) > 3600 {OURS}",
        lasting="5m",
        severity=Severity.WARNING,
        summary="A worker has been busy with one object for more than an hour.",
        description="A worker of {{ $labels.name }} ({{ $labels.job }}) has had the same object "
        "for {{ $value | humanizeDuration }}.",
    ),
    Alert(
        name="ActuatorQueueSlow",
        expr="job_controller:workqueue_queue_duration_seconds:p99_rate5m > 300",
        lasting="15m",
        severity=Severity.WARNING,
        summary="Objects wait long for a worker.",
        description=f"One of a hundred objects of {_CONTROLLER} waits longer than five minutes "
        "for a worker.",
    ),
    Alert(
        name="ActuatorApiErrorsHigh",
        expr="job:rest_client_requests_failed:ratio_rate5m > 0.05",
        lasting="15m",
        severity=Severity.WARNING,
        summary="The API server fails, or cannot be reached.",
        description="{{ $value | humanizePercentage }} of the requests of {{ $labels.job }} to "
        "the API server fail.",
    ),
    Alert(
        name="ActuatorCollectorBroken",
        expr="sum by (job, collector) (increase(actuator_collector_errors_total[15m])) > 0",
        lasting="5m",
        severity=Severity.WARNING,
        summary="Some metrics cannot be read.",
        description="{{ $labels.job }} leaves out the metrics of {{ $labels.collector }}.",
    ),
)

ALERTS = (*_OF_DELETIONS, *_OF_MACHINERY)
