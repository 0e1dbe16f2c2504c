"""FaultyActuator: wraps any actuator, with calls that fail, hang or are slow.

Its faults are data; they can be activated and removed while the actuator is working.
"""

import time
from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Any, TypeVar

import attrs

from actuator.cluster import Cluster
from actuator.errors import ActuatorError, ErrorCode
from actuator.interface import Actuator, Context, WrappedActuator
from hack.faults.rules import ANY, Injection, Injections, Rule, fits

OPERATIONS = ("reconcile", "restore", "delete", "migrate", "force_delete")
_CHECK_SECONDS = 0.05
T = TypeVar("T")


class ActuatorEffect(StrEnum):
    """The misbehaviour of a call, in place of its work or in addition to it."""

    FAIL = "fail"
    """Raises at once."""
    FAIL_AFTERWARDS = "fail-afterwards"
    """Does its work, then raises, as if it had crashed before it could return."""
    SLOW = "slow"
    """Takes `seconds` longer, and ignores cancellation meanwhile."""
    HANG = "hang"
    """Ignores cancellation until the fault is removed, then does its work."""
    WAIT = "wait"
    """Waits until the fault is removed, but calls `ctx.check()`, as a good actuator does."""


def _error_codes(values: Iterable[str]) -> list[ErrorCode]:
    return [ErrorCode(value) for value in values]


@attrs.frozen(kw_only=True)
class ActuatorFault(Rule):
    """A fault in calls of an actuator.

    `operations` are names of its operations (all five if empty), `name` is a shell-style pattern
    for the object's name. A failing call raises an ActuatorError with `message` and `codes`.
    """

    effect: ActuatorEffect = attrs.field(converter=ActuatorEffect)
    operations: list[str] = attrs.field(factory=list)
    name: str = ANY
    seconds: float = 0.0
    message: str = "injected fault"
    codes: list[ErrorCode] = attrs.field(factory=list, converter=_error_codes)

    def hits(self, operation: str, name: str) -> bool:
        """Return whether the fault matches this call."""
        return operation in (self.operations or OPERATIONS) and fits(name, self.name)


class FaultyActuator(WrappedActuator):
    """Delegates to the inner actuator, except where a fault hits the call."""

    def __init__(self, inner: Actuator[Any]) -> None:
        super().__init__(inner)
        self._faults: Injections[ActuatorFault] = Injections()

    def inject(self, fault: ActuatorFault) -> Injection[ActuatorFault]:
        """Activate a fault."""
        return self._faults.add(fault)

    def _around(
        self, operation: str, work: Callable[..., T], ctx: Context, obj: Any, cluster: Cluster
    ) -> T:
        injection = self._faults.pick(lambda fault: fault.hits(operation, obj.metadata.name))
        if injection is None:
            return work(ctx, obj, cluster)
        fault = injection.rule
        match fault.effect:
            case ActuatorEffect.FAIL:
                raise ActuatorError(fault.message, codes=fault.codes)
            case ActuatorEffect.FAIL_AFTERWARDS:
                work(ctx, obj, cluster)
                raise ActuatorError(fault.message, codes=fault.codes)
            case ActuatorEffect.SLOW:
                time.sleep(fault.seconds)
            case ActuatorEffect.HANG:
                injection.wait()
            case ActuatorEffect.WAIT:
                while not injection.wait(_CHECK_SECONDS):
                    ctx.check()
        return work(ctx, obj, cluster)
