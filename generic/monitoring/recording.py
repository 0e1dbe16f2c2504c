"""The recorded series: names tell the labels that are left, the metric, and what was done to it.

Alerts and dashboards read these where they read the same thing. Each keeps `job`, so that several
extensions in one Prometheus stay apart. Series of controller-runtime and client-go are narrowed
down to ours by `actuator_build_info`: nobody has to configure a job's name.
"""

from __future__ import annotations

from generic.monitoring.model import Recording

__all__ = ["OURS", "RECORDINGS"]

OURS = "and on (job) actuator_build_info"
_CK = "job, controller, kind"
_INCREASE = "job_controller_kind_outcome:actuator_deletions:increase1h"
_BUCKETS = "job_controller_kind_le:actuator_deletion_duration_seconds_bucket:rate1h"

RECORDINGS = (
    Recording(
        "job_controller_kind_outcome:actuator_deletions:rate5m",
        f"sum by ({_CK}, outcome) (rate(actuator_deletions_total[5m]))",
    ),
    Recording(_INCREASE, f"sum by ({_CK}, outcome) (increase(actuator_deletions_total[1h]))"),
    Recording(
        "job_controller_kind:actuator_deletions_failed:ratio_increase1h",
        f'sum by ({_CK}) ({_INCREASE}{{outcome=~"failed|gave_up"}})'
        f' / (sum by ({_CK}) ({_INCREASE}{{outcome!="skipped"}}) > 0)',
    ),
    Recording(
        _BUCKETS, f"sum by ({_CK}, le) (rate(actuator_deletion_duration_seconds_bucket[1h]))"
    ),
    Recording(
        "job_controller_kind:actuator_deletion_duration_seconds:p95_rate1h",
        f"histogram_quantile(0.95, {_BUCKETS})",
    ),
    Recording(
        "job_controller_kind_state:actuator_terminating_objects:max",
        f"max by ({_CK}, state) (actuator_terminating_objects)",
    ),
    Recording(
        "job_controller_kind:actuator_terminating_oldest_age_seconds:max",
        f"time() - min by ({_CK}) (actuator_terminating_oldest_deletion_timestamp_seconds)",
    ),
    Recording(
        "job_controller_code:actuator_deletion_errors:increase1h",
        "sum by (job, controller, code) "
        '(increase(actuator_errors_total{operation=~"delete|force_delete"}[1h]))',
    ),
    Recording(
        "job_controller:controller_runtime_reconcile_errors:ratio_rate5m",
        "sum by (job, controller) (rate(controller_runtime_reconcile_errors_total[5m]))"
        " / (sum by (job, controller) (rate(controller_runtime_reconcile_total[5m])) > 0)"
        f" {OURS}",
    ),
    Recording(
        "job:rest_client_requests_failed:ratio_rate5m",
        'sum by (job) (rate(rest_client_requests_total{code=~"5..|<error>"}[5m]))'
        f" / (sum by (job) (rate(rest_client_requests_total[5m])) > 0) {OURS}",
    ),
    Recording(
        "job_controller:workqueue_queue_duration_seconds:p99_rate5m",
        "histogram_quantile(0.99, sum by (job, controller, le) "
        f"(rate(workqueue_queue_duration_seconds_bucket[5m]))) {OURS}",
    ),
)
