"""Health checks: report the health of deployed objects as conditions of a kind's objects.

An author declares `HealthChecks`; the manager runs a `HealthReconciler` for it, beside the
reconciler of the actuator. Not here: probes of the process itself (`generic.serving.health`).
"""

from generic.library.healthchecks.builtin import (
    daemon_set,
    deployment,
    machines,
    managed_resource,
    stateful_set,
)
from generic.library.healthchecks.model import (
    Check,
    HealthChecks,
    HealthContext,
    HealthResult,
    HealthStatus,
)
from generic.library.healthchecks.nodes import nodes

__all__ = [
    "Check",
    "HealthChecks",
    "HealthContext",
    "HealthResult",
    "HealthStatus",
    "daemon_set",
    "deployment",
    "machines",
    "managed_resource",
    "nodes",
    "stateful_set",
]
