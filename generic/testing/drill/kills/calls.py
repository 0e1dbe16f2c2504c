"""Records the calls of a manager before they are made, and kills it at one of them.

Each call is one appending write to a file, so that lines of several processes do not mix, and no
line is lost when its process is killed.
"""

import hashlib
import json
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

import attrs
import cattrs

from actuator.interface import (
    Actuator,
    Client,
    ExternalResource,
    FieldProblem,
    Resource,
    WrappedActuator,
)
from generic.testing.garden import SHOOT

T = TypeVar("T")


class CallMoment(StrEnum):
    """A moment of a call: `before` it is made, `after` it took effect but before it returned."""

    BEFORE = "before"
    AFTER = "after"


@attrs.frozen
class Point:
    """The `number`-th call `text` of an operation, counted from 1."""

    text: str
    number: int

    def __str__(self) -> str:
        return self.text if self.number == 1 else f"{self.text} (no. {self.number})"


@attrs.frozen
class Kill:
    """The moment of a kill."""

    point: Point
    side: CallMoment

    def __str__(self) -> str:
        return f"{self.side.value} {self.point}"


def points_of(calls: Iterable[str]) -> list[Point]:
    """Return the points of these calls, in order."""
    seen: Counter[str] = Counter()
    points = []
    for text in calls:
        seen[text] += 1
        points.append(Point(text, seen[text]))
    return points


class Reaper:
    """Records each call in a file, and kills this process at `kill`, with SIGKILL."""

    def __init__(self, path: Path, kill: Kill | None) -> None:
        self._path = path
        self._kill = kill
        self._lock = threading.Lock()
        self._seen: dict[CallMoment, Counter[str]] = {side: Counter() for side in CallMoment}

    @contextmanager
    def around(self, text: str) -> Iterator[None]:
        """Record the call that is made in this context; it takes effect or fails there."""
        _append(self._path, text)
        self._come(CallMoment.BEFORE, text)
        try:
            yield
        finally:
            self._come(CallMoment.AFTER, text)

    def _come(self, side: CallMoment, text: str) -> None:
        with self._lock:
            self._seen[side][text] += 1
            here = Kill(Point(text, self._seen[side][text]), side)
        if here == self._kill:
            os.kill(os.getpid(), signal.SIGKILL)
            threading.Event().wait()  # this thread does not continue


class CountingClient:
    """A client that reports every request to the API server to a Reaper."""

    def __init__(self, inner: Client, reaper: Reaper) -> None:
        self._inner = inner
        self._reaper = reaper

    def __getattr__(self, name: str) -> Any:
        def request(resource: Resource, *args: Any, **kwargs: Any) -> Any:
            with self._reaper.around(describe(name, resource, args, kwargs)):
                return getattr(self._inner, name)(resource, *args, **kwargs)

        return request


class CountingActuator(WrappedActuator):
    """An actuator that reports every call to a Reaper."""

    def __init__(self, inner: Actuator[Any], reaper: Reaper) -> None:
        super().__init__(inner)
        self._reaper = reaper

    def _around(
        self, operation: str, work: Callable[..., T], ctx: Any, obj: Any, cluster: Any
    ) -> T:
        with self._reaper.around(f"actuator: {operation}"):
            return work(ctx, obj, cluster)

    def validate(self, ctx: Any, obj: Any, cluster: Any, /) -> Iterable[FieldProblem]:
        """See Actuator."""
        with self._reaper.around("actuator: validate"):
            return list(self.inner.validate(ctx, obj, cluster))

    def external_resources(self, obj: Any, /) -> Iterable[ExternalResource]:
        """See Actuator."""
        with self._reaper.around("actuator: external_resources"):
            return list(self.inner.external_resources(obj))


@attrs.frozen(kw_only=True)
class ObservedCall:
    """A call of an actuator; `at` in seconds of the monotonic clock, or since a start."""

    seed: str
    operation: str
    kind: str
    shoot: str
    name: str
    at: float
    state: str = ""
    """Digest of status.state as passed to the actuator; "" if there was none."""


class RecordingActuator(WrappedActuator):
    """Records each operation as an ActuatorCall, then delegates to the inner actuator."""

    def __init__(self, inner: Actuator[Any], seed: str, path: Path) -> None:
        super().__init__(inner)
        self._seed = seed
        self._path = path

    def _around(
        self, operation: str, work: Callable[..., T], ctx: Any, obj: Any, cluster: Any
    ) -> T:
        call = ObservedCall(
            seed=self._seed,
            operation=operation,
            kind=obj.KIND.name,
            shoot=obj.metadata.labels.get(SHOOT, ""),
            name=obj.metadata.name,
            at=time.monotonic(),
            state=digest(getattr(obj.status, "state", None)),
        )
        _append(self._path, json.dumps(attrs.asdict(call)))
        return work(ctx, obj, cluster)


def read_lines(path: Path) -> list[str]:
    """Return the recorded lines, in order."""
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def read_calls(path: Path, began: float) -> list[ObservedCall]:
    """Return the recorded operations, in order; `at` in seconds since `began`."""
    calls = [cattrs.structure(json.loads(line), ObservedCall) for line in read_lines(path)]
    return [attrs.evolve(call, at=call.at - began) for call in calls]


def digest(value: object) -> str:
    """Return a short digest that is equal for equal JSON; "" for None."""
    if value is None:
        return ""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:12]


def _append(path: Path, line: str) -> None:
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, f"{line}\n".encode())
    finally:
        os.close(file)


def describe(verb: str, resource: Resource, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """Describe a request without names: "API: patch infrastructures /metadata/finalizers".

    A status is described by the state that it reports. Processing is published after a second, so
    in a slow run only, and must not be counted with the others.
    """
    subresource = f"/{kwargs['subresource']}" if kwargs.get("subresource") else ""
    text = f"API: {verb} {resource.plural}{subresource}"
    patch = args[2] if verb == "patch" and len(args) > 2 else None
    if not isinstance(patch, list):
        return text
    changes = {step["path"]: step.get("value") for step in patch if step["op"] != "test"}
    if not subresource:
        return " ".join([text, *changes])
    whole = changes.get("/status")
    default = whole.get("lastOperation") if isinstance(whole, dict) else None
    operation = changes.get("/status/lastOperation", default)
    return f"{text} {operation.get('state')}" if isinstance(operation, dict) else text
