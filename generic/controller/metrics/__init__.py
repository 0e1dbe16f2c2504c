"""What a manager counts, and how it is exposed to Prometheus.

Machinery metrics have the exact names and labels of controller-runtime and client-go, so that
dashboards and alerts made for those work unchanged. Deletions are ours: each pass over an object
under deletion is counted by how it ended, so nothing has to be remembered between passes; what is
being deleted right now is read from the cache at the scrape.

Every child that is known when a controller registers exists from then on, at 0: a counter born
at 1 is invisible to `increase()`. (Relists have theirs from an informer's first list on.)

Left out for good: `go_*` (this is no Go program), `rest_client_request_duration_seconds`
(controller-runtime switched it off as well), and `leader_election_slowpath_total` (which it
declares but never registers).

No global registry: each Metrics has its own, and two in one process do not meet.
"""

from generic.controller.metrics.controllers import ControllerMetrics
from generic.controller.metrics.queues import QueueMetrics
from generic.controller.metrics.registry import Metrics, Stream
from generic.controller.metrics.terminating import Terminating
from generic.controller.metrics.values import (
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
    "Stream",
    "Terminating",
    "TerminatingState",
    "TryResult",
]
