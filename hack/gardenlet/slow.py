"""The samples with delays: each requested operation begins after a random number of seconds.

Kinds that gardenlet handles at the same time would otherwise end in the same order in each run,
and a recording would take this order for a wait.
"""

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs

from actuator.interface import Actuator
from extensions.aws import extension as aws_sample
from extensions.aws.full_rehearsal import AwsFullRehearsal
from extensions.local import extension as local_sample
from extensions.local.rehearsal import LocalRehearsal
from generic.controller.predicates import TIMESTAMP
from generic.manager.manager import Manager
from generic.testing.shootpart import ShootPart

_MOST_SECONDS = 8.0
_OPERATIONS = ("reconcile", "restore", "migrate", "delete", "force_delete")


class _Slow:
    """A manager that delays the actuators it gets; all else is the manager's."""

    def __init__(self, manager: Manager) -> None:
        self._manager = manager

    def add(self, actuator: Actuator[Any], **options: Any) -> None:
        """See Manager."""
        cls = type(actuator)
        changes = {
            name: _delayed(getattr(actuator, name))
            for name in _OPERATIONS
            if name != "force_delete" or cls.force_delete is not Actuator.force_delete
        }
        actuator.__class__ = type(cls.__name__, (cls,), {"__slots__": (), **changes})
        self._manager.add(actuator, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._manager, name)


def _delayed(act: Callable[..., Any]) -> Any:
    known = set[tuple[str, str]]()

    def delayed(_: object, ctx: Any, obj: Any, cluster: Any) -> Any:
        request = obj.metadata.uid, obj.metadata.annotations.get(TIMESTAMP, "")
        if request not in known:
            known.add(request)
            time.sleep(random.uniform(0, _MOST_SECONDS))
        return act(ctx, obj, cluster)

    return delayed


def both(manager: Manager) -> None:
    """Add both samples."""
    slow: Any = _Slow(manager)
    aws_sample(slow)
    local_sample(slow)


class SlowAws(AwsFullRehearsal):
    """The AWS sample and the local one, as one extension."""

    def start(self, directory: Path) -> None:
        """Start the simulator, and an empty folder for the local sample."""
        super().start(directory)
        self._local = LocalRehearsal()
        self._local.start(directory)

    def shoot_part(self, image: str) -> ShootPart:
        """See Rehearsal."""
        part = super().shoot_part(image)
        environ = {**part.environ, **self._local.shoot_part(image).environ}
        return attrs.evolve(part, extension=f"{__name__}:both", environ=environ)
