"""Plays a script: begins each step when it is due, and undoes it at its end."""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Literal, TypeVar

import attrs

from actuator.errors import ActuatorError, ConfigurationError, TooManyRequests, Unavailable
from generic.kube.client import HttpClient
from generic.testing.envtest.environment import Environment
from generic.testing.faults.actuators import FaultyActuator
from generic.testing.faults.permission import Revocation
from generic.testing.faults.proxy import FaultProxy
from generic.testing.faults.script import Script, Step

logger = logging.getLogger(__name__)

_TICK_SECONDS = 0.05
_ADMIN_SECONDS = 5.0
T = TypeVar("T")
_NO_ANSWER = (Unavailable, TooManyRequests)


@attrs.frozen(kw_only=True)
class Stage:
    """The targets of a script; only those that its steps need are required.

    `admin` may change ClusterRoles, `role` is the manager's ClusterRole. `conditions` are those
    that steps wait for, by name.
    """

    proxy: FaultProxy | None = None
    actuator: FaultyActuator | None = None
    environment: Environment | None = None
    admin: HttpClient | None = None
    role: str = ""
    conditions: Mapping[str, Callable[[], bool]] = attrs.field(factory=dict)


def play(script: Script, stage: Stage, stop: threading.Event) -> None:
    """Play the script to its end, or until `stop` is set; then undo all its faults.

    Raises ConfigurationError before the first step if the stage lacks a target, ActuatorError if
    a condition did not hold in time, and the errors of steps that cannot be done or undone
    (ApiError, EnvtestError).
    """
    _Play(script, stage, stop).run()


_Undo = Callable[[], None]


@attrs.define(eq=False)
class _Begun:
    step: Step
    undo: _Undo
    until: float


class _Play:
    """The pending and the active steps.

    A step that fails because the API server does not answer is retried: another step may have to
    restart the API server first.
    """

    def __init__(self, script: Script, stage: Stage, stop: threading.Event) -> None:
        self._patience = script.patience
        self._stage = stage
        self._stop = stop
        self._start = time.monotonic()
        steps = sorted(script.steps, key=lambda step: step.at)
        self._pending = [(step, _way_of(step, stage)) for step in steps]
        for step in script.steps:
            if step.when and step.when not in stage.conditions:
                raise _lacks(step, f"the condition {step.when!r}")
        self._begun: list[_Begun] = []

    def run(self) -> None:
        try:
            while self._pending or any(one.step.lasts for one in self._begun):
                now = self._now()
                for one in [one for one in self._begun if one.until <= now]:
                    self._end(one, self._patience + one.until)
                self._pending = [(s, do) for s, do in self._pending if not self._begins(s, do, now)]
                if self._stop.wait(_TICK_SECONDS):
                    return
        finally:
            self._end_all()

    def _now(self) -> float:
        return time.monotonic() - self._start

    def _begins(self, step: Step, do: Callable[[], _Undo], now: float) -> bool:
        """Begin the step if it is due; return whether it began. Raises ActuatorError if late."""
        if now < step.at:
            return False
        missing = repr(step.when)
        if not step.when or self._stage.conditions[step.when]():
            try:
                self._begun.append(_Begun(step, do(), now + (step.lasts or float("inf"))))
            except _NO_ANSWER:
                missing = "the API server"
            else:
                _log("a step of the script", step)
                return True
        if now > step.at + self._patience:
            raise ActuatorError(
                f"the script's step {_name(step)} waited {self._patience:g} s for {missing} in vain"
            )
        return False

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
        deadline = self._now() + self._patience
        failure: Exception | None = None
        self._begun.sort(key=lambda one: one.step.kill is None)
        while self._begun:
            for one in list(self._begun):
                try:
                    self._end(one, deadline)
                except Exception as error:  # the other steps must still be undone
                    failure = error
                    self._begun.remove(one)
            if self._begun:
                time.sleep(_TICK_SECONDS)
        if failure is not None:
            raise failure


def _way_of(step: Step, stage: Stage) -> Callable[[], _Undo]:
    """Return a function that starts the fault and returns its undo. Raises ConfigurationError."""
    if (fault := step.fault) is not None:
        proxy = _needed(stage.proxy, step, "a proxy")
        return lambda: proxy.inject(fault).remove
    if (mischief := step.actuator) is not None:
        actuator = _needed(stage.actuator, step, "a FaultyActuator")
        return lambda: actuator.inject(mischief).remove
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


def _needed(there: T | Literal[""] | None, step: Step, what: str) -> T:
    if not there:
        raise _lacks(step, what)
    return there


def _lacks(step: Step, what: str) -> ConfigurationError:
    return ConfigurationError(f"the script's step {_name(step)} needs {what}, which is not there")


def _log(text: str, step: Step) -> None:
    logger.info(text, extra={"fields": {"step": _name(step)}})


def _name(step: Step) -> str:
    return step.name or f"at {step.at:g} s"
