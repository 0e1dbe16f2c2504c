"""Bypass: somebody took our finalizer off, and the object is gone though cleanup was unfinished.

That is noticed (the last we knew of the object had our finalizer, and we did not take it off),
counted, said, and recorded as Orphans, however many tries that takes: nobody else knows of it any
more. Then cleanup is made up for, from the object as it was last known, for as long as that may
help. An object that has taken the name since waits some minutes for the record, and is never
touched by the cleanup: what is outside might be its own by now.

Assumption: this process knew the object. What vanished while nobody ran is not seen.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

import attrs

from actuator.cluster import Cluster
from actuator.errors import ApiError, DecodeError, LeaseLost
from actuator.interface import ExternalResource
from actuator.meta import Object
from actuator.tolerance import decode_tolerantly
from generic.controller.controller import Again, Done, Failed, Outcome
from generic.kube.clusters import REMEMBERED
from generic.kube.errorinfo import describe
from generic.kube.store import Entry, Event, Header, Request
from generic.reconciler.forcing import left_outside
from generic.reconciler.invoker import CallFailed, Invoker
from generic.reconciler.operation import Operation
from generic.reconciler.orphans import UNKNOWN, Orphan, OrphanReason, mark_gone, record
from generic.reconciler.reporter import Reporter

__all__ = ["Bypasses"]

_TRIES = 20
"""With the queue's backoff, about six minutes."""
_CAP = 60.0
"""Seconds at most between two tries."""
_MESSAGE = "our finalizer was taken off before cleanup was finished"


@attrs.define
class _Vanished:
    """An object as it was last known."""

    uid: str
    raw: bytes
    operation: Operation
    orphans: list[Orphan] | None = None
    """What is on record; None before it is."""
    tries: int = 0


@attrs.define
class Bypasses:
    """The objects of one controller that went away before we let go of them."""

    invoker: Invoker
    cls: type[Object]
    clusters: Callable[[str], Cluster]
    is_forced: Callable[[Request, Header], bool]
    _vanished: dict[Request, _Vanished] = attrs.field(factory=dict)
    _letting_go: OrderedDict[str, None] = attrs.field(factory=OrderedDict)  # uids

    def letting_go(self, uid: str) -> None:
        """From now on we may remove the finalizer; the event may come after `let_go`."""
        self._letting_go.pop(uid, None)
        self._letting_go[uid] = None
        if len(self._letting_go) > REMEMBERED:
            self._letting_go.popitem(last=False)

    def holding(self, uid: str) -> None:
        """Our finalizer is on the object, also if a migration removed it before."""
        self._letting_go.pop(uid, None)

    def let_go(self, request: Request) -> None:
        """We are done with the object: what went before that was in time."""
        self._vanished.pop(request, None)

    def notice(self, event: Event[Header], last: bytes) -> bool:
        """Whether this event is somebody taking our finalizer off, `last` the object before."""
        old, new = event.old, event.new
        finalizer = self.invoker.kind.finalizer
        if event.own or event.late or old is None or finalizer not in old.finalizers:
            return False
        if new is not None and (finalizer in new.finalizers or new.deletion_timestamp is None):
            return False
        return self.keep(event.request, old, last)

    def keep(self, request: Request, header: Header, raw: bytes) -> bool:
        """Keeps an object that went away, unless it was us."""
        if header.uid in self._letting_go or not raw:
            return False
        known = self._vanished.get(request)
        if known is None or known.uid != header.uid:
            forced = self.is_forced(request, header)
            operation = Operation.FORCE_DELETE if forced else Operation.DELETE
            self._vanished[request] = _Vanished(header.uid, raw, operation)
        return True

    def uid_of(self, request: Request) -> str | None:
        """Of the object of that name that vanished, if one did and is not done with."""
        vanished = self._vanished.get(request)
        return None if vanished is None else vanished.uid

    def handle(self, request: Request, entry: Entry[Header] | None, report: Reporter) -> Outcome:
        """Records, then cleans up. Raises WorkerReplaced."""
        vanished = self._vanished[request]
        try:
            obj = decode_tolerantly(self.cls, vanished.raw)
        except DecodeError:
            obj = None
        try:
            if vanished.orphans is None:
                vanished.orphans = self._record(obj, report)
                vanished.tries = 0
            if obj is None:
                report.log.warning("no late cleanup: the object cannot be read")
            elif entry is not None and entry.header.uid != vanished.uid:
                report.log.warning("no late cleanup: another object has the name now")
            else:
                self._clean_up(request, vanished, obj, report)
        except LeaseLost:
            return Done()
        except (CallFailed, ApiError) as error:
            is_recorded = vanished.orphans is not None
            what = "late cleanup failed" if is_recorded else "a bypass could not be recorded"
            report.log.warning(what, extra={"fields": {"error": _said(error)}})
            vanished.tries += 1
            nobody_waits = not is_recorded and entry is None
            if nobody_waits or vanished.tries < _TRIES:
                return Failed(cap=_CAP)
        self._vanished.pop(request, None)
        return Done() if entry is None else Again(0)

    def _record(self, obj: object, report: Reporter) -> list[Orphan]:
        """Afterwards it is counted, said and recorded what may be left. Raises ApiError."""
        left: list[ExternalResource] = [UNKNOWN]
        if obj is not None and not self.invoker.calls.hangs(report.request, report.uid):
            left = left_outside(self.invoker, report, obj) or left
        now = self.invoker.clock.now()
        orphans = [
            record(self.invoker.client, report.let_go, one, OrphanReason.BYPASSED, _MESSAGE, now)
            for one in left
        ]
        report.bypassed()
        report.left_outside(left)
        return orphans

    def _clean_up(
        self, request: Request, vanished: _Vanished, obj: object, report: Reporter
    ) -> None:
        """Afterwards nothing is left. Raises CallFailed or ApiError."""
        self.invoker.refuse_while_one_hangs(request, vanished.uid)
        call = self.invoker.new_call(vanished.operation, report, lambda: None)
        self.invoker.calls.start(request, call)
        self.invoker.operate(call, request, obj, self.clusters(request.namespace))
        if vanished.operation is Operation.DELETE:  # a forced one leaves things by its nature
            for orphan in vanished.orphans or ():
                mark_gone(self.invoker.client, orphan, self.invoker.clock.now())
        report.once("CleanedUpLate", "What the bypassed finalizer guarded was cleaned up late")


def _said(error: Exception) -> str:
    return error.error.text if isinstance(error, CallFailed) else describe(error)
