"""Health checks: what the objects of a kind look like from outside, as conditions in their status.

An author says what to check, `HealthChecks`; the manager runs a `HealthReconciler` for it, beside
the reconciler that runs the actuator. Probes of the process itself are `generic.health`.
"""

from generic.healthchecks.builtin import (
    daemon_set,
    deployment,
    machines,
    managed_resource,
    stateful_set,
)
from generic.healthchecks.model import (
    SHOOT_ACCESS,
    Check,
    HealthChecks,
    HealthContext,
    HealthResult,
    HealthStatus,
)
from generic.healthchecks.reconciler import HealthReconciler, wants_check
from generic.healthchecks.shoots import ShootClients, ShootUnreachable

__all__ = [
    "SHOOT_ACCESS",
    "Check",
    "HealthChecks",
    "HealthContext",
    "HealthReconciler",
    "HealthResult",
    "HealthStatus",
    "ShootClients",
    "ShootUnreachable",
    "daemon_set",
    "deployment",
    "machines",
    "managed_resource",
    "stateful_set",
    "wants_check",
]
