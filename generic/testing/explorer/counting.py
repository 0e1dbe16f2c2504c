"""Counting: a client and an actuator that tell of each call, and somebody who dies at one.

Put between a manager and what it uses, in a process that is there to be killed.
"""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from actuator.interface import (
    Actuator,
    Client,
    ExternalResource,
    FieldProblem,
    Resource,
    WrappedActuator,
)
from generic.testing.explorer.points import Kill, Point, Side

__all__ = ["CountingActuator", "CountingClient", "Reaper", "read_calls"]

T = TypeVar("T")

_CALLS = frozenset({"get", "list", "create", "apply", "patch", "delete"})


class Reaper:
    """Notes each call in a file, and ends this process where it is told to, by SIGKILL."""

    def __init__(self, path: Path, kill: Kill | None) -> None:
        self._path = path
        self._kill = kill
        self._lock = threading.Lock()
        self._seen: dict[Side, Counter[str]] = {side: Counter() for side in Side}

    def before(self, text: str) -> None:
        """A call is about to be made."""
        self._note(text)
        self._come(Side.BEFORE, text)

    def after(self, text: str) -> None:
        """A call took effect, or failed; its caller has not heard yet."""
        self._come(Side.AFTER, text)

    @contextmanager
    def around(self, text: str) -> Iterator[None]:
        """A call is made in here."""
        self.before(text)
        try:
            yield
        finally:
            self.after(text)

    def _come(self, side: Side, text: str) -> None:
        with self._lock:
            self._seen[side][text] += 1
            here = Kill(Point(text, self._seen[side][text]), side)
        if here == self._kill:
            os.kill(os.getpid(), signal.SIGKILL)
            threading.Event().wait()  # no thread does a step more

    def _note(self, text: str) -> None:
        """One write to the end of the file: nothing is lost when the process dies."""
        file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(file, f"{text}\n".encode())
        finally:
            os.close(file)


def read_calls(path: Path) -> list[str]:
    """The calls that were noted, in order."""
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


class CountingClient:
    """A client whose every request to the API server is told of."""

    def __init__(self, inner: Client, reaper: Reaper) -> None:
        self._inner = inner
        self._reaper = reaper

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)
        return self._counted(name, method) if name in _CALLS else method

    def _counted(self, verb: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(resource: Resource, *args: Any, **kwargs: Any) -> Any:
            with self._reaper.around(_text(verb, resource, args, kwargs)):
                return method(resource, *args, **kwargs)

        return call


class CountingActuator(WrappedActuator):
    """An actuator whose every call is told of."""

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


def _text(verb: str, resource: Resource, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """What is asked for, without names: "API: patch infrastructures /metadata/finalizers"."""
    subresource = f"/{kwargs['subresource']}" if kwargs.get("subresource") else ""
    text = f"API: {verb} {resource.plural}{subresource}"
    patch = args[2] if verb == "patch" and len(args) > 2 else None
    if subresource or not isinstance(patch, list):
        return text
    paths = dict.fromkeys(step["path"] for step in patch if step["op"] != "test")
    return " ".join([text, *paths])
