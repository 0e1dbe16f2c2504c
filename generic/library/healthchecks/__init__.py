"""Health checks: report the health of deployed objects as conditions of a kind's objects.

An author declares `HealthChecks`; the manager runs a `HealthReconciler` for it, beside the
reconciler of the actuator. Not here: probes of the process itself (`generic.controller.health`).
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
from generic.library.healthchecks.reconciler import HealthReconciler, wants_check

__all__ = [
    "Check",
    "HealthChecks",
    "HealthContext",
    "HealthReconciler",
    "HealthResult",
    "HealthStatus",
    "daemon_set",
    "deployment",
    "machines",
    "managed_resource",
    "stateful_set",
    "wants_check",
]
