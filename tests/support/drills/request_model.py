"""A model of an object and of the requests for it: the writes of attempts, in their order.

`World` asks the real decisions: which operation, when the annotation is removed, whether more is
requested, which events trigger. tests/unit/generic/test_requests_are_run.py has laws for generated
stories; tests/api/generic/test_requests.py compares the states with those at the API server.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

from actuator.cluster import ClusterState, Verdict
from actuator.meta import Kind, LastOperationType, Raw
from generic.controller.predicates import (
    OPERATION,
    TIMESTAMP,
    default_predicate,
    news_in_answer,
    requested,
)
from generic.kube.headers import Event, EventType, Header, Request, header
from generic.reconciler import annotation
from generic.reconciler.annotation import Removal
from generic.reconciler.operation import Operation, choose_operation
from generic.testing.garden.readiness import not_ready_because

KEY = Request("shoot--a--b", "object")
FINAL = ("Succeeded", "Error", "Failed")
Act = Callable[[], object]


def admits(old: Raw, new: Raw) -> bool:
    """Whether gardenlet's watch admits an update (Gardener, `pkg/controllerutils/predicate`)."""
    before = last_operation(old)
    after = last_operation(new)
    if not after or after == before or after["state"] not in FINAL:
        return False
    return OPERATION not in (new["metadata"].get("annotations") or {})


def last_operation(obj: Raw) -> Raw:
    """Its last operation; empty if there is none."""
    return (obj.get("status") or {}).get("lastOperation") or {}


def shown(obj: Raw) -> tuple[str, str, str]:
    """The deciding facts: type and state of the last operation, and the requested operation."""
    last = last_operation(obj)
    annotations = obj["metadata"].get("annotations") or {}
    return last.get("type", ""), last.get("state", ""), annotations.get(OPERATION, "")


class Crash(Exception):
    """Ends the process of the world."""


class Refused(Exception):
    """A test of a patch fails."""


class World:
    """An object, the requests for it, and a process that can crash before any of its writes."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.trigger = default_predicate(kind, ignore_operation_annotation=False)
        meta = {"uid": "u", "generation": 1, "annotations": {}, "resourceVersion": "1"}
        self.obj: Raw = {"metadata": meta, "spec": {}, "status": {}}
        self.states = [shown(self.obj)]
        self.pending = True
        """Whether the object is processed without a further trigger."""
        self.asked = ""
        """The last requested operation."""
        self.answered = True
        """Whether an operation that began after the last request succeeded as its answer."""
        self.unseen: list[Raw] = []
        """Outcomes that gardenlet's watch did not see."""
        self.wrongly_ready: list[Raw] = []
        """States that gardenlet's poll took for the success of a request that did not run."""
        self._time = self._number = self._seen = 0

    def ask(self, operation: str, *, timestamped: bool) -> None:
        """Request an operation."""
        annotations = {OPERATION: operation}
        if timestamped:
            annotations[TIMESTAMP] = self._stamp()
        if annotations == self.obj["metadata"]["annotations"]:
            return  # the API server sees no change
        self._number += 1
        self.asked = operation
        self.answered = False
        self._write(lambda obj: obj["metadata"].update(annotations=annotations))

    def change(self, what: str) -> None:
        """Let another controller change the generation, a label or the state."""

        def apply(obj: Raw) -> None:
            if what == "generation":
                obj["metadata"]["generation"] += 1
            elif what == "label":
                obj["metadata"]["labels"] = {"number": self._stamp()}
            else:
                obj["status"]["state"] = {"number": self._stamp()}

        self._write(apply)

    def attempt(self, outcome: str, acts: Iterable[Act] = ()) -> None:
        """Process the object once; `acts` happen before the writes and in the call, in turn.

        The outcome is "success", "error", "wait", or "blocked": an error before the call.
        """
        self.pending = False
        start = header(self.obj)
        self._seen = self._number
        operation = choose_operation(self.kind, start, Verdict(ClusterState.OK))
        if not isinstance(operation, Operation):
            return
        try:
            self._run(operation, start, outcome, iter(acts))
        except Refused:
            self.pending = True
        except Crash:
            self.pending = self.trigger(Event(EventType.ADDED, KEY, None, header(self.obj)))

    def settle(self) -> None:
        """Let everything succeed until nothing triggers any more."""
        for _ in range(20):
            if not self.pending:
                return
            self.attempt("success")
        raise AssertionError("the object is processed without end")

    def lost_request(self) -> str:
        """The last request, if it did not run; a migrated object belongs to another seed."""
        if self.is_migrated:
            return ""
        left = self.obj["metadata"]["annotations"].get(OPERATION, "")
        return left or ("" if self.answered else self.asked)

    @property
    def is_migrated(self) -> bool:
        """Whether the last operation is a migration that succeeded."""
        return shown(self.obj)[:2] == (LastOperationType.MIGRATE, "Succeeded")

    def _run(self, operation: Operation, start: Header, outcome: str, acts: Iterator[Act]) -> None:
        when = annotation.removal(self.kind, operation, start)
        if outcome != "blocked" or self.kind.outcomes_are_watched:
            if when is Removal.PUBLISHED:
                self._report(operation, start, "Processing", acts)
            if when in (Removal.BEFORE, Removal.PUBLISHED):
                self._remove(start, acts)
                self._seen = self._number  # also one that looks the same
        _next(acts)  # during the call
        if outcome != "success":
            state = "Processing" if outcome == "wait" else "Error"
            self._report(operation, start, state, acts)
            self.pending = True
            return
        self._report(operation, start, "Succeeded", acts)
        if when is Removal.AFTER:
            with suppress(Refused):
                self._remove(start, acts)
        if annotation.asks_for_more(self.kind, operation, start):
            self.pending = True

    def _report(self, operation: Operation, start: Header, state: str, acts: Iterator[Act]) -> None:
        _next(acts)
        self.answered = self.answered or (state == "Succeeded" and self._is_answer(operation))
        last = {
            "type": str(operation.last_operation_type(start)),
            "state": state,
            "lastUpdateTime": self._stamp(),
        }

        def apply(obj: Raw) -> None:
            obj["status"]["lastOperation"] = last
            if state in FINAL:
                obj["status"]["observedGeneration"] = start.generation
                obj["status"]["lastError"] = {"description": "e"} if state == "Error" else None

        self._write(apply, own=True)

    def _is_answer(self, operation: Operation) -> bool:
        """Whether it answers the last request.

        A restore of a kind whose outcomes are watched removes a request for a reconcile before it
        is called; if the process crashes then, the restore is repeated and nothing else.
        """
        if self._number > self._seen:
            return False
        if operation.value == self.asked or not self.kind.migratable:
            return True
        return self.kind.outcomes_are_watched and operation is Operation.RESTORE

    def _remove(self, start: Header, acts: Iterator[Act]) -> None:
        """Remove the annotation, if it and the generation are as at the start."""
        _next(acts)
        now = header(self.obj)
        if (requested(now), now.generation) != (requested(start), start.generation):
            raise Refused
        self._write(lambda obj: obj["metadata"]["annotations"].pop(OPERATION), own=True)

    def _write(self, apply: Callable[[Raw], object], *, own: bool = False) -> None:
        old = copy.deepcopy(self.obj)
        apply(self.obj)
        meta = self.obj["metadata"]
        meta["resourceVersion"] = str(int(meta["resourceVersion"]) + 1)
        self.states.append(shown(self.obj))
        event = Event(EventType.MODIFIED, KEY, header(old), header(self.obj), own)
        if news_in_answer(event) if own else self.trigger(event):
            self.pending = True
        self._look(old)

    def _look(self, old: Raw) -> None:
        """Read the outcome as gardenlet does: by its watch, and by its poll."""
        now = last_operation(self.obj)
        is_outcome = now != last_operation(old) and now.get("state") in FINAL
        is_superseded = shown(self.obj)[2] and self._number > self._seen
        if is_outcome and not is_superseded and not admits(old, self.obj):
            self.unseen.append(now)
        waits = self.asked == "reconcile" and not self.answered and not self.is_migrated
        if waits and not_ready_because(self.obj) is None:
            self.wrongly_ready.append(now)

    def _stamp(self) -> str:
        self._time += 1
        return f"2026-01-01T00:{self._time // 60:02}:{self._time % 60:02}Z"


def _next(acts: Iterator[Act]) -> None:
    for act in acts:
        act()
        return
