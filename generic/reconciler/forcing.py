"""Forcing: a force deletion, bounded by its budget, with what it leaves behind on record.

Inside the budget the actuator's force_delete is tried; at its end, and where too many calls hang,
one last pass goes without it: declared seed objects are stripped, what may be left is recorded,
and the object is let go of (by `reconciler`). Four things only may exceed the budget: an API server
that is down, a webhook that denies, an Orphan that cannot be written, and a CRD that refuses every
patch of the object.

Guarantee: when `run` returns, every Orphan is in the API server, acknowledged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs

from actuator.cluster import Cluster
from actuator.errors import ActuatorError, ApiError, DecodeError, LeaseLost, SetAside
from actuator.interface import ExternalResource, SeedObjects
from actuator.meta import Object
from actuator.tolerance import WrongField
from generic.controller.metrics import Outcome
from generic.kube.errorinfo import describe
from generic.kube.store import Request
from generic.reconciler.attempt import Attempt
from generic.reconciler.budget import Budgets, Forced
from generic.reconciler.force_delete import SeedObjectsHeld
from generic.reconciler.invoker import CallFailed, Invoker
from generic.reconciler.operation import Operation
from generic.reconciler.orphans import UNKNOWN, OrphanReason, record, recordable
from generic.reconciler.reporter import Reporter

__all__ = ["IN_SEED", "Forcing", "NotRecorded", "left_outside"]

IN_SEED = "seed/"
"""What the resource type of an Orphan begins with that is no thing outside, but in the seed."""

_ASKED_FOR = 2.0
"""Seconds that external_resources has: it asks nobody."""
_MOST_HELD = 100
"""Seed objects that are recorded one by one."""
_LAST_PASS = 10.0
"""Seconds for stripping at the end of the budget."""


class NotRecorded(ActuatorError):
    """An Orphan could not be written, so nothing is let go of."""


@attrs.define
class Forcing:
    """The force deletions of one controller."""

    invoker: Invoker
    budgets: Budgets
    cls: type[Object]
    clusters: Callable[[str], Cluster]
    prefer: Callable[[Request], None] = attrs.field(init=False, default=lambda _request: None)
    """Puts an object before all others that wait."""
    hurry: Callable[[Request], None] = attrs.field(init=False, default=lambda _request: None)
    """Puts an object before all others, also where no worker is free."""

    def notice(self, request: Request, uid: str) -> None:
        """The object is deleting and forced: from now on its budget runs, and nothing else does."""
        if not self.budgets.has(request, uid):
            self.budgets.of(request, uid)
            self.prefer(request)
        call = self.invoker.calls.running(request)
        if call is not None and call.operation is not Operation.FORCE_DELETE and not call.cancelled:
            call.cancel("deletion is forced now")

    def end_budgets(self) -> None:
        """Ends what still runs for those whose budget is over, and has them finished at once."""
        for request in self.budgets.end():
            call = self.invoker.calls.running(request)
            if call is not None:
                call.cancel("the budget of this force deletion is over", grace=0)
            self.hurry(request)

    def run(self, attempt: Attempt, report: Reporter) -> Outcome:
        """Force-deletes; says how that ends. Raises CallFailed, NotRecorded, WorkerReplaced."""
        forced = self.budgets.of(attempt.request, attempt.uid)
        try:
            reason = self._call(attempt, forced, report)
            left = self._left(attempt, forced, report)
        except DecodeError as error:  # nothing but its metadata is needed to strip and to record
            reason, left = self._unreadable(attempt, describe(error), report), [UNKNOWN]
        if reason is not OrphanReason.FORCED:
            left = [*(left or [UNKNOWN]), *self._strip(attempt, report)]
        self._record(left, reason, forced, report)
        return Outcome.ORPHANED if left else Outcome.FORCE_DELETED

    def failed(self, attempt: Attempt, error: str) -> None:
        """Keeps what stood in the way, for the record."""
        self.budgets.of(attempt.request, attempt.uid).last_error = error

    def _unreadable(self, attempt: Attempt, error: str, report: Reporter) -> OrphanReason:
        """Keep the error for the record: a repeated call would fail in the same way."""
        self.failed(attempt, error)
        text = "the object cannot be read: its force deletion ends without its actuator"
        report.log.error(text, extra={"fields": {"error": error}})
        return OrphanReason.UNREADABLE

    def _call(self, attempt: Attempt, forced: Forced, report: Reporter) -> OrphanReason:
        """The actuator's turn; says why what is left is left."""
        left = forced.remaining(self.invoker.clock.monotonic())
        if left <= 0:
            forced.over = True  # we may be here before `end_budgets` looks
            report.log.error("the budget is over: this force deletion ends without its actuator")
            return OrphanReason.BUDGET
        obj = attempt.open(self.cls)
        seconds = min(self.invoker.kind.timeout, left)
        call = self.invoker.new_call(Operation.FORCE_DELETE, report, attempt.save, seconds)
        if not self.invoker.calls.start_reserved(attempt.request, call):
            report.log.error("too many calls hang: this force deletion goes without its actuator")
            return OrphanReason.HANGING
        cluster = self.clusters(attempt.request.namespace)
        try:
            self.invoker.operate(call, attempt.request, obj, cluster, attempt.capture)
        except CallFailed as failure:
            if not failure.error.is_a(WrongField):
                raise
            return self._unreadable(attempt, failure.error.text, report)
        return OrphanReason.FORCED

    def _left(self, attempt: Attempt, forced: Forced, report: Reporter) -> list[ExternalResource]:
        """What may remain outside, as far as the actuator can say."""
        if forced.mute:
            return [UNKNOWN]
        obj = attempt.open(self.cls)
        forced.mute = True  # unless it comes back
        left = left_outside(self.invoker, report, obj)
        forced.mute = False
        return left

    def _strip(self, attempt: Attempt, report: Reporter) -> list[ExternalResource]:
        """Strips what the actuator declared; what even so stays in the seed is recorded too."""
        groups: Sequence[SeedObjects] = ()
        call = self.invoker.new_call(Operation.FORCE_DELETE, report, attempt.save, _LAST_PASS)
        try:
            groups = self.invoker.actuator.seed_objects
            call.delete_seed_objects(groups)
        except SeedObjectsHeld as error:
            held = [_in_seed(one.resource, one.name) for one in error.held[:_MOST_HELD]]
            return held if len(held) == len(error.held) else [*held, UNKNOWN]
        except (LeaseLost, SetAside):
            raise
        except Exception as error:  # also what the author declared and cannot be listed
            report.log.error("stripping ended early", extra={"fields": {"error": describe(error)}})
            return [_in_seed(str(group.resource)) for group in groups] or [UNKNOWN]
        return []

    def _record(
        self, left: list[ExternalResource], reason: OrphanReason, forced: Forced, report: Reporter
    ) -> None:
        clock = self.invoker.clock
        message = forced.last_error if reason is not OrphanReason.FORCED else ""
        for resource in left:
            try:
                record(self.invoker.client, report.let_go, resource, reason, message, clock.now())
            except ApiError as error:
                raise NotRecorded(
                    f"what the force deletion leaves behind cannot be recorded: {error}; "
                    "see `actuator crds` and `actuator rbac`"
                ) from error
        if left:
            report.left_outside(left)


def left_outside(invoker: Invoker, report: Reporter, obj: Any) -> list[ExternalResource]:
    """What the actuator says may remain of `obj`; unknown where it raises, or cannot be asked.

    Raises WorkerReplaced where it does not answer.
    """
    call = invoker.new_call(Operation.FORCE_DELETE, report, lambda: None, _ASKED_FOR)
    call.limit = call.deadline
    if not invoker.calls.start_reserved(report.request, call):
        return [UNKNOWN]
    try:
        return invoker.run(call, report.request, lambda: _listed(invoker, report, obj))
    except CallFailed as failed:
        fields = {"error": failed.error.text}
        report.log.error("external_resources failed", extra={"fields": fields})
        return [UNKNOWN]


def _in_seed(resource: str, name: str = "") -> ExternalResource:
    return ExternalResource(type=f"{IN_SEED}{resource}", id=name)


def _listed(invoker: Invoker, report: Reporter, obj: Any) -> list[ExternalResource]:
    found, problem = recordable(invoker.actuator, obj)
    if problem:
        report.log.error("external_resources failed", extra={"fields": {"error": problem}})
    return found
