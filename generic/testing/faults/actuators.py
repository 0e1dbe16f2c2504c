"""FaultyActuator: wraps any actuator, with calls that fail, hang or are slow.

Its faults are data; they can be activated and removed while the actuator is working.
"""

import threading
from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Any, TypeVar

import attrs

from actuator.cluster import Cluster
from actuator.errors import ActuatorError, ErrorCode
from actuator.interface import Actuator, Context, ExternalResource, FieldProblem, WrappedActuator
from generic.testing.faults.rules import ANY, Injection, Injections, Rule, fits

OPERATIONS = ("reconcile", "restore", "delete", "migrate", "force_delete")
_CHECK_SECONDS = 0.05
T = TypeVar("T")


class Mischief(StrEnum):
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
    NEVER_RETURN = "never-return"
    """Never returns, so its thread is lost; removing the fault has no effect."""


def _error_codes(values: Iterable[str]) -> list[ErrorCode]:
    return [ErrorCode(value) for value in values]


@attrs.frozen(kw_only=True)
class ActuatorFault(Rule):
    """A fault in calls of an actuator.

    `operations` are names of its methods (the five operations if empty; `validate`,
    `external_resources` and `still_exists` can be named too), `name` is a shell-style pattern for
    the object's name. A failing call raises an ActuatorError with `message` and `codes`.
    """

    mischief: Mischief = attrs.field(converter=Mischief)
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
        self._errors: dict[Injection[ActuatorFault], Exception] = {}

    def inject(
        self, fault: ActuatorFault, error: Exception | None = None
    ) -> Injection[ActuatorFault]:
        """Activate a fault; `error` is raised in place of an ActuatorError."""
        injection = self._faults.add(fault)
        if error is not None:
            self._errors[injection] = error
        return injection

    def validate(self, ctx: Context, obj: Any, cluster: Cluster, /) -> Iterable[FieldProblem]:
        """See Actuator."""
        return self._around("validate", self.inner.validate, ctx, obj, cluster)

    def external_resources(self, obj: Any, /) -> Iterable[ExternalResource]:
        """See Actuator."""
        injection = self._pick("external_resources", obj.metadata.name)
        return self._suffer(injection, None, lambda: self.inner.external_resources(obj))

    def still_exists(self, resource: ExternalResource, /) -> bool | None:
        """See Actuator; a fault's `name` is matched with the resource's id."""
        injection = self._pick("still_exists", resource.id)
        return self._suffer(injection, None, lambda: self.inner.still_exists(resource))

    def _around(
        self, operation: str, work: Callable[..., T], ctx: Context, obj: Any, cluster: Cluster
    ) -> T:
        injection = self._pick(operation, obj.metadata.name)
        return self._suffer(injection, ctx, lambda: work(ctx, obj, cluster))

    def _pick(self, operation: str, name: str) -> Injection[ActuatorFault] | None:
        return self._faults.pick(lambda fault: fault.hits(operation, name))

    def _suffer(
        self,
        injection: Injection[ActuatorFault] | None,
        ctx: Context | None,
        work: Callable[[], T],
    ) -> T:
        if injection is None:
            return work()
        match injection.rule.mischief:
            case Mischief.FAIL:
                raise self._error(injection)
            case Mischief.FAIL_AFTERWARDS:
                work()
                raise self._error(injection)
            case Mischief.SLOW:
                threading.Event().wait(injection.rule.seconds)
            case Mischief.HANG:
                injection.wait()
            case Mischief.WAIT:
                while not injection.wait(_CHECK_SECONDS):
                    if ctx is not None:
                        ctx.check()
            case Mischief.NEVER_RETURN:
                threading.Event().wait()
        return work()

    def _error(self, injection: Injection[ActuatorFault]) -> Exception:
        fault = injection.rule
        return self._errors.get(injection) or ActuatorError(fault.message, codes=fault.codes)
