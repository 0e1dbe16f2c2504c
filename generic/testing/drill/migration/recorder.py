"""Recorder: notes each call of an actuator in a file, before it happens.

Every line is one write to the end of the file, so that lines of several processes do not mix, and
none is lost when its process is killed.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import attrs
import cattrs

from actuator.interface import Actuator, WrappedActuator
from generic.testing.drill.migration.evidence import Call
from generic.testing.garden import SHOOT

__all__ = ["Recorder", "digest", "read_calls"]

T = TypeVar("T")


class Recorder(WrappedActuator):
    """Does what the inner one does, and leaves a trace."""

    def __init__(self, inner: Actuator[Any], seed: str, path: Path) -> None:
        super().__init__(inner)
        self._seed = seed
        self._path = path

    def _around(
        self, operation: str, work: Callable[..., T], ctx: Any, obj: Any, cluster: Any
    ) -> T:
        self._note(operation, obj)
        return work(ctx, obj, cluster)

    def _note(self, operation: str, obj: Any) -> None:
        call = Call(
            seed=self._seed,
            operation=operation,
            kind=obj.KIND.name,
            shoot=obj.metadata.labels.get(SHOOT, ""),
            name=obj.metadata.name,
            at=time.monotonic(),
            state=digest(obj.status.state),
        )
        line = json.dumps(attrs.asdict(call)) + "\n"
        file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(file, line.encode())
        finally:
            os.close(file)


def read_calls(path: Path, began: float) -> list[Call]:
    """What was noted, in order; `at` as seconds since `began` (of the monotonic clock)."""
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").splitlines()
    calls = [cattrs.structure(json.loads(line), Call) for line in lines]
    return [attrs.evolve(call, at=call.at - began) for call in calls]


def digest(value: object) -> str:
    """A few letters that are the same for the same JSON; "" for nothing."""
    if value is None:
        return ""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:12]
