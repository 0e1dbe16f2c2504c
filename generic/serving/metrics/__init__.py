"""The metrics of a manager, and their exposition to Prometheus.

Controller and queue metrics have the exact names and labels of controller-runtime and client-go, so
that dashboards and alerts for those work unchanged. Deletion metrics are our own: each pass over an
object under deletion is counted by its outcome, so no state is kept between passes; the objects
currently under deletion are read from the cache at the scrape.

Every known child exists from the registration of a controller on, at 0: `increase()` does not see
a counter that starts at 1. (Those of relists exist from an informer's first list on.)

Deliberately left out: `go_*` (this is not a Go program), `rest_client_request_duration_seconds`
(disabled in controller-runtime as well), and `leader_election_slowpath_total` (which it
declares but never registers).

There is no global registry: each Metrics has its own, so two in one process are independent.
"""

from generic.serving.metrics.controllers import ControllerMetrics
from generic.serving.metrics.queues import QueueMetrics
from generic.serving.metrics.registry import Metrics, version
from generic.serving.metrics.terminating import Terminating
from generic.serving.metrics.values import (
    OPERATIONS,
    Outcome,
    ReconcileResult,
    RelistReason,
    TerminatingState,
    TryResult,
)

__all__ = [
    "OPERATIONS",
    "ControllerMetrics",
    "Metrics",
    "Outcome",
    "QueueMetrics",
    "ReconcileResult",
    "RelistReason",
    "Terminating",
    "TerminatingState",
    "TryResult",
    "version",
]
