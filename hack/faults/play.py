"""Scripts, which are lists of faults with times: `play` begins each step when it is due.

It undoes each step at its end.
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Literal, TypeVar

import attrs

from actuator.errors import ConfigurationError, TooManyRequests, Unavailable
from generic.kube.client import HttpClient
from generic.testing.envtest.environment import Environment
from generic.testing.envtest.servers import KillableServer
from hack.faults.actuators import ActuatorFault, FaultyActuator
from hack.faults.permission import Revocation, Revoked
from hack.faults.proxy import FaultProxy
from hack.faults.requests import Fault

logger = logging.getLogger(__name__)

_TICK_SECONDS = 0.05
_ADMIN_SECONDS = 5.0
_PATIENCE = 60.0
"""Seconds that a step may wait for the API server."""
T = TypeVar("T")
_NO_ANSWER = (Unavailable, TooManyRequests)


@attrs.frozen(kw_only=True)
class FaultStep:
    """One fault, due `at` seconds after the script's start.

    It lasts `lasts` seconds, or (0) until the end of the script; `name` is for messages. A fault
    that cannot occur twice at once (`kill` of one server, `refuse`) ends with the first of two
    overlapping steps. Raises ValueError for a step without a fault or with several.
    """

    at: float = 0.0
    name: str = ""
    lasts: float = 0.0
    fault: Fault | None = None
    """Fault on the way to the API server."""
    actuator: ActuatorFault | None = None
    """Fault in the actuator."""
    revoke: Revoked | None = None
    """Permissions removed from the manager's role."""
    kill: KillableServer | None = attrs.field(
        default=None, converter=attrs.converters.optional(KillableServer)
    )
    """Server that is killed, and started again at the end."""
    refuse: bool = False
    """Refuse connections to the API server."""

    def __attrs_post_init__(self) -> None:
        """Check that the step has exactly one fault. Raises ValueError."""
        things = [self.fault, self.actuator, self.revoke, self.kill, self.refuse]
        if sum(1 for thing in things if thing) != 1:
            raise ValueError(
                f"the step at {self.at:g} s has to have exactly one of fault, actuator, revoke, "
                "kill, refuse"
            )


@attrs.frozen(kw_only=True)
class FaultStage:
    """The targets of a script; only those that its steps need are required.

    `admin` may change ClusterRoles, `role` is the manager's ClusterRole.
    """

    proxy: FaultProxy | None = None
    actuators: Sequence[FaultyActuator] = ()
    environment: Environment | None = None
    admin: HttpClient | None = None
    role: str = ""


def play(script: Sequence[FaultStep], stage: FaultStage, stop: threading.Event) -> None:
    """Play the script to its end, or until `stop` is set; then undo all its faults.

    Raises ConfigurationError before the first step if the stage lacks a target, and the errors of
    steps that cannot be done or undone (ApiError, EnvtestError).
    """
    _PlayedSteps(script, stage, stop).run()


_Undo = Callable[[], None]


@attrs.define(eq=False)
class _Begun:
    step: FaultStep
    undo: _Undo
    until: float


class _PlayedSteps:
    """The pending and the active steps.

    A step that fails because the API server does not answer is retried: another step may have to
    restart the API server first.
    """

    def __init__(
        self, script: Sequence[FaultStep], stage: FaultStage, stop: threading.Event
    ) -> None:
        self._stop = stop
        self._start = time.monotonic()
        steps = sorted(script, key=lambda step: step.at)
        self._pending = [(step, _way_of(step, stage)) for step in steps]
        self._begun: list[_Begun] = []

    def run(self) -> None:
        try:
            while self._pending or any(item.step.lasts for item in self._begun):
                now = self._now()
                for element in [item for item in self._begun if item.until <= now]:
                    self._end(element, element.until + _PATIENCE)
                self._pending = [(s, do) for s, do in self._pending if not self._begins(s, do, now)]
                if self._stop.wait(_TICK_SECONDS):
                    return
        finally:
            self._end_all()

    def _now(self) -> float:
        return time.monotonic() - self._start

    def _begins(self, step: FaultStep, do: Callable[[], _Undo], now: float) -> bool:
        """Begin the step if it is due; return whether it began."""
        if now < step.at:
            return False
        try:
            self._begun.append(_Begun(step, do(), now + (step.lasts or float("inf"))))
        except _NO_ANSWER:
            if now > step.at + _PATIENCE:
                raise
            return False
        _log("a step of the script", step)
        return True

    def _end(self, one: _Begun, deadline: float) -> None:
        try:
            one.undo()
        except _NO_ANSWER:
            if self._now() > deadline:
                raise
            return
        self._begun.remove(one)
        _log("a step of the script is over", one.step)

    def _end_all(self) -> None:
        """Undo all steps, servers first: without them permissions cannot be restored."""
        deadline = self._now() + _PATIENCE
        failure: Exception | None = None
        self._begun.sort(key=lambda item: item.step.kill is None)
        while self._begun:
            for item in list(self._begun):
                try:
                    self._end(item, deadline)
                except Exception as error:  # the other steps must still be undone
                    failure = error
                    self._begun.remove(item)
            if self._begun:
                time.sleep(_TICK_SECONDS)
        if failure is not None:
            raise failure


def _way_of(step: FaultStep, stage: FaultStage) -> Callable[[], _Undo]:
    """Return a function that starts the fault and returns its undo. Raises ConfigurationError."""
    if (fault := step.fault) is not None:
        proxy = _needed(stage.proxy, step, "a proxy")
        return lambda: proxy.inject(fault).remove
    if (actuator_fault := step.actuator) is not None:
        actuators = _needed(stage.actuators, step, "a FaultyActuator")
        return lambda: _together([actuator.inject(actuator_fault).remove for actuator in actuators])
    if step.revoke is not None:
        admin = _needed(stage.role and stage.admin, step, "an administrator's client and a role")
        revocation = Revocation(admin.within(_ADMIN_SECONDS), stage.role, step.revoke)
        return _both(revocation.take, revocation.give_back)
    if step.kill is not None:
        environment = _needed(stage.environment, step, "an embedded cluster")
        return _both(partial(environment.kill, step.kill), partial(environment.restart, step.kill))
    proxy = _needed(stage.proxy, step, "a proxy")
    return _both(proxy.go_down, proxy.come_back)


def _both(do: Callable[[], None], undo: _Undo) -> Callable[[], _Undo]:
    def begin() -> _Undo:
        do()
        return undo

    return begin


def _together(undo: Sequence[_Undo]) -> _Undo:
    stack = ExitStack()
    for item in undo:
        stack.callback(item)
    return stack.close


def _needed(there: T | Literal[""] | None, step: FaultStep, what: str) -> T:
    if not there:
        needs = f"the script's step {_name(step)} needs {what}"
        raise ConfigurationError(f"{needs}, which is not there")
    return there


def _log(text: str, step: FaultStep) -> None:
    logger.info(text, extra={"fields": {"step": _name(step)}})


def _name(step: FaultStep) -> str:
    return step.name or f"at {step.at:g} s"
