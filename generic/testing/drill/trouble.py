"""Trouble: additional faults in a drill, while its scenario breaks the outside world.

On the way to the API server, in the API server itself, or in calls of actuators; embedded
clusters only. The objects must still be deleted, and the same invariants hold.
"""

import tempfile
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import attrs

from generic.manager.options import Options
from generic.testing.envtest import Environment
from generic.testing.faults import (
    ActuatorFault,
    Effect,
    Fault,
    FaultProxy,
    FaultyActuator,
    Mischief,
    Server,
    Stage,
    Step,
    play,
)

_DOWN_SECONDS = 1.5
_GROUPED = "*.*"
"""All except core kinds: a refused event is lost, and the judge reads events."""
_lasting = partial(Step, lasts=300.0)  # longer than any drill needs


@attrs.frozen(kw_only=True)
class Trouble:
    """Faults, and the time limit of a force deletion (`budget`, seconds; None: unlimited).

    The script of its `steps` is played from the deletion of the shoots, and again from their force
    deletion until the final checks.
    """

    name: str
    steps: Sequence[Step] = ()
    budget: float | None = Options().force_delete_budget


CALM = Trouble(name="calm")
TROUBLES = (
    CALM,
    Trouble(
        name="api-server-restarts",
        steps=[Step(kill=Server.APISERVER, at=0.2, lasts=_DOWN_SECONDS)],
    ),
    Trouble(
        name="watches-cut",
        steps=[
            _lasting(fault=Fault(effect=Effect.CUT_STREAM, probability=0.2)),
            _lasting(fault=Fault(effect=Effect.STREAM_ERROR, status=410, probability=0.1)),
        ],
    ),
    Trouble(
        name="answers-refused",
        steps=[
            _lasting(fault=Fault(effect=effect, status=status, resource=_GROUPED, probability=0.1))
            for effect, status in (
                *((Effect.ANSWER, status) for status in (409, 429, 500, 503)),
                (Effect.DROP_ANSWER, 0),
            )
        ],
    ),
    Trouble(
        name="calls-hang",
        steps=[
            _lasting(actuator=ActuatorFault(mischief=Mischief.HANG, operations=["force_delete"]))
        ],
        budget=5.0,
    ),
)
"""`actuator drill --all` combines each trouble with each scenario."""


class Troublemaker:
    """Causes one trouble in one drill."""

    def __init__(self, trouble: Trouble = CALM, stage: Stage | None = None) -> None:
        self._script = trouble.steps
        self._stage = stage or Stage()
        self._stop = threading.Event()
        self._pool = ThreadPoolExecutor(1, "trouble")
        self._playing: Future[None] | None = None

    def begin(self) -> None:
        """Start the faults, once those of an earlier call have ended."""
        self.end()
        self._stop = threading.Event()
        self._playing = self._pool.submit(play, self._script, self._stage, self._stop)

    def end(self) -> None:
        """Undo all faults. Raises the error of a failed script. Safe to call twice."""
        self._stop.set()
        if self._playing is not None:
            self._playing.result()


@contextmanager
def between(
    trouble: Trouble,
    environment: Environment,
    kubeconfig: Path,
    actuators: Sequence[FaultyActuator],
) -> Iterator[tuple[Troublemaker, Path]]:
    """Yield a Troublemaker, and the kubeconfig that leads a manager through its faults.

    Without faults, the kubeconfig is unchanged.
    """
    if not trouble.steps:
        yield Troublemaker(), kubeconfig
        return
    with (
        tempfile.TemporaryDirectory(prefix="trouble-") as directory,
        FaultProxy(kubeconfig, Path(directory)) as proxy,
    ):
        stage = Stage(proxy=proxy, environment=environment, actuators=actuators)
        maker = Troublemaker(trouble, stage)
        try:
            yield maker, proxy.kubeconfig
        finally:
            with suppress(Exception):  # do not hide the error of a failed drill
                maker.end()
