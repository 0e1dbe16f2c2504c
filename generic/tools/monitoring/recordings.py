"""Recorded series: all that alerts read, and all that another Prometheus federates.

Each name begins with `seed:actuator_`, for Gardener's federation, and ends with the operation; each
series keeps `seed`, where it exists, and `extension`. Not here: those of objectives.
"""

from collections.abc import Sequence

from actuator.meta import Raw
from generic.tools.monitoring.counting import by, gauge, increase, rate, selector

_KIND = ("controller", "kind")
_BUILD = selector("actuator_build_info")
_API = "rest_client_requests_total"
_CODE = ("code", "method", "host")
_FAILED = 'code=~"5..|<error>"'
_QUEUE = "workqueue_queue_duration_seconds_bucket"
_LONGEST = "workqueue_longest_running_processor_seconds"
_HEARTBEAT = "actuator_heartbeat_last_renewal_timestamp_seconds"
_EXPIRY = "actuator_webhook_certificate_expiry_timestamp_seconds"


def _last(metric: str, *labels: str) -> str:
    """Return the greatest value over the replicas."""
    return f"max by ({by(*labels)}) ({selector(metric)})"


def _gained(metric: str, own: Sequence[str], window: str, where: str = "") -> str:
    return increase(metric, own, window, where, kept=own)


def _targets() -> str:
    """Return the number of replicas that are scraped; 0 if all known targets are down.

    A target that was uninstalled, or never existed, has no `up`, and no series.
    """
    known = f"last_over_time({_BUILD}[7d]) and on (seed, job, instance) up == 0"
    replica = by("instance")
    return (
        f"count by ({by()}) (group by ({replica}) ({_BUILD}))"
        f" or 0 * group by ({by()}) (group by ({replica}) ({known}))"
    )


_SERIES = {
    "targets:count": _targets(),
    # Deletions
    "stuck_shoots:sum": gauge("actuator_stuck_shoots", ("cause",)),
    "terminating_objects:sum": gauge("actuator_terminating_objects", (*_KIND, "state")),
    "orphans:sum": gauge("actuator_orphans", ("kind", "resource_type", "state")),
    "open_orphans:sum": gauge("actuator_open_orphans", ("age",)),
    "deletions:sum": _gained("actuator_deletions_total", (*_KIND, "outcome"), "1h"),
    "finalizers_removed_externally:sum": _gained(
        "actuator_finalizers_removed_externally_total", _KIND, "1h"
    ),
    "force_deletions_not_recorded:sum": _gained(
        "actuator_force_deletions_not_recorded_total", ("controller",), "1h"
    ),
    "seed_finalizers_stripped:sum": _gained(
        "actuator_seed_finalizers_stripped_total", ("controller", "resource"), "1h"
    ),
    # Controllers
    "leaders:sum": gauge("leader_election_master_status", ("name",)),
    "heartbeat_age_seconds:max": f"time() - ({_last(_HEARTBEAT)} > 0)",
    "stream_age_seconds:max": _last("actuator_informer_stream_age_seconds", "kind"),
    "unserved_objects:max": _last("actuator_unserved_objects", "kind", "type"),
    "panics:sum": _gained("controller_runtime_reconcile_panics_total", ("controller",), "15m"),
    "longest_call_seconds:max": _last(_LONGEST, "name"),
    "queue_wait_seconds:p99": f"histogram_quantile(0.99, {rate(_QUEUE, ('controller', 'le'))})",
    "api_errors:ratio": (
        f"sum by ({by()}) ({rate(_API, _CODE, _FAILED)})"
        f" / (sum by ({by()}) ({rate(_API, _CODE)}) > 0)"
    ),
    "collector_errors:sum": _gained("actuator_collector_errors_total", ("collector",), "15m"),
    # Webhooks
    "webhook_failures:sum": increase(
        "actuator_webhook_outcomes_total",
        ("webhook", "outcome"),
        "15m",
        'outcome="failed"',
        kept=("webhook",),
    ),
    "webhook_certificate_seconds:min": f"min by ({by()}) ({selector(_EXPIRY)} > 0) - time()",
}
RECORDINGS: Sequence[Raw] = [
    {"record": f"seed:actuator_{name}", "expr": expr} for name, expr in _SERIES.items()
]
