"""Trouble: additional faults in a drill, while its scenario breaks the outside world.

On the way to the API server, in the API server itself, or in calls of actuators; embedded
clusters only. The objects must still be deleted, and the same invariants hold.
"""

import tempfile
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import attrs

from actuator.interface import Actuator
from generic.manager.options import Options
from generic.testing.envtest import Environment
from generic.testing.faults import (
    ActuatorFault,
    Effect,
    Fault,
    FaultProxy,
    FaultyActuator,
    Mischief,
    Script,
    Server,
    Stage,
    Step,
    play,
)

_FORCED = "forced"
_DOWN_SECONDS = 1.5
_GROUPED = "*.*"
"""All except core kinds: a refused event is lost, and the judge reads events."""
_PATIENCE = 300.0
"""Seconds that a script waits for the force deletion; longer than any drill needs to get there."""


@attrs.frozen(kw_only=True)
class Trouble:
    """Faults, and the time limit of a force deletion (`budget`, seconds; None: unlimited).

    `script` begins when the shoots are deleted and ends before the final checks; its steps can
    wait for the condition "forced". `calls` is a fault in each actuator from then on.
    """

    name: str
    text: str
    script: Script = attrs.field(factory=Script)
    calls: ActuatorFault | None = None
    budget: float | None = Options().force_delete_budget


CALM = Trouble(name="calm", text="No additional faults")


def _all_the_time(*faults: Fault) -> Script:
    return Script(
        steps=[Step(fault=fault, lasts=_PATIENCE) for fault in faults], patience=_PATIENCE
    )


def _down(**how: Any) -> Script:
    """Return a script with two outages: while all are stuck, and when deletion is forced."""
    steps = [
        Step(at=0.5, lasts=_DOWN_SECONDS, **how),
        Step(when=_FORCED, lasts=_DOWN_SECONDS, **how),
    ]
    return Script(steps=steps, patience=_PATIENCE)


TROUBLES = (
    CALM,
    Trouble(
        name="api-server-restarts",
        text="The API server is killed and started again, twice.",
        script=_down(kill=Server.APISERVER),
    ),
    Trouble(
        name="watches-cut",
        text="Watches are cut, or end with 410, every few lines.",
        script=_all_the_time(
            Fault(effect=Effect.CUT_STREAM, probability=0.2),
            Fault(effect=Effect.STREAM_ERROR, status=410, probability=0.1),
        ),
    ),
    Trouble(
        name="answers-refused",
        text="Requests get 409, 429, 500 or 503, or are carried out and not answered.",
        script=_all_the_time(
            *(
                Fault(effect=Effect.ANSWER, status=status, resource=_GROUPED, probability=0.1)
                for status in (409, 429, 500, 503)
            ),
            Fault(effect=Effect.DROP_ANSWER, resource=_GROUPED, probability=0.1),
        ),
    ),
    Trouble(
        name="calls-hang",
        text="No call of force_delete returns, and the budget is 5 s.",
        calls=ActuatorFault(mischief=Mischief.HANG, operations=["force_delete"]),
        budget=5.0,
    ),
)
"""`actuator drill --all` combines each trouble with each scenario."""


class Troublemaker:
    """Causes one trouble in one drill."""

    def __init__(
        self,
        trouble: Trouble = CALM,
        stage: Stage | None = None,
        actuators: Sequence[FaultyActuator] = (),
    ) -> None:
        self._trouble = trouble
        self._stage = stage or Stage()
        self._actuators = actuators
        self._forced = threading.Event()
        self._stop = threading.Event()
        self._pool = ThreadPoolExecutor(1, "trouble")
        self._playing: Future[None] | None = None
        self._injected: list[Any] = []

    def begin(self) -> None:
        """Start the faults."""
        if self._trouble.calls is not None:
            self._injected = [one.inject(self._trouble.calls) for one in self._actuators]
        stage = attrs.evolve(self._stage, conditions={_FORCED: self._forced.is_set})
        self._playing = self._pool.submit(play, self._trouble.script, stage, self._stop)

    def forced(self) -> None:
        """Note that deletion is forced from now on."""
        self._forced.set()

    def end(self) -> None:
        """Undo all faults. Raises the error of a failed script. Safe to call twice."""
        self._stop.set()
        for injection in self._injected:
            injection.remove()
        playing, self._playing = self._playing, None
        if playing is not None:
            playing.result()


def faulty(trouble: Trouble, actuators: Sequence[Actuator[Any]]) -> list[Actuator[Any]]:
    """Return the actuators, wrapped for faults if the trouble has faults in calls."""
    if trouble.calls is None:
        return list(actuators)
    return [FaultyActuator(one) for one in actuators]


@contextmanager
def between(
    trouble: Trouble,
    environment: Environment,
    kubeconfig: Path,
    actuators: Sequence[Actuator[Any]],
) -> Iterator[tuple[Troublemaker, Path]]:
    """Yield a Troublemaker, and the kubeconfig that leads a manager through its faults.

    Without a script, the kubeconfig is unchanged.
    """
    wrapped = [one for one in actuators if isinstance(one, FaultyActuator)]
    if not trouble.script.steps:
        yield Troublemaker(trouble, actuators=wrapped), kubeconfig
        return
    with (
        tempfile.TemporaryDirectory(prefix="trouble-") as directory,
        FaultProxy(kubeconfig, Path(directory)) as proxy,
    ):
        maker = Troublemaker(trouble, Stage(proxy=proxy, environment=environment), wrapped)
        try:
            yield maker, proxy.kubeconfig
        finally:
            with suppress(Exception):  # do not hide the error of a failed drill
                maker.end()
