# The names of the package, for type checkers and for `__init__.py`.

from generic.serving.metrics.controllers import ControllerMetrics as ControllerMetrics
from generic.serving.metrics.queues import QueueMetrics as QueueMetrics
from generic.serving.metrics.registry import Metrics as Metrics, version as version
from generic.serving.metrics.terminating import Terminating as Terminating
from generic.serving.metrics.values import (
    OPERATIONS as OPERATIONS,
    Outcome as Outcome,
    ReconcileResult as ReconcileResult,
    RelistReason as RelistReason,
    TerminatingState as TerminatingState,
    TryResult as TryResult,
)
