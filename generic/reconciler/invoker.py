"""Invoker: calls one actuator, each time in a Context of its own, and never waits for ever.

A call ends by returning, or it is cancelled (its time is over, a force deletion overtakes it) and,
where it does not come back, set aside: its worker goes on with something else. What is called,
and what becomes of the result, is not decided here.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from itertools import islice
from typing import Any, TypeVar

import attrs

from actuator.cluster import Cluster
from actuator.errors import (
    ActuatorError,
    Cancelled,
    DeadlineExceeded,
    ErrorCode,
    LeaseLost,
    NotFound,
    SetAside,
)
from actuator.interface import (
    Actuator,
    Client,
    Clock,
    FieldProblem,
    Resource,
    Result,
    innermost,
    invalid,
)
from actuator.meta import Kind, Raw
from generic.controller import logs
from generic.controller.controller import WorkerReplaced
from generic.kube.errorinfo import ErrorInfo, read_error
from generic.kube.store import Request
from generic.reconciler.calls import Aside, Call, Calls, Services
from generic.reconciler.force_delete import delete_seed_objects
from generic.reconciler.known_secrets import KnownSecrets
from generic.reconciler.operation import Operation
from generic.reconciler.reporter import Reporter

__all__ = ["CallFailed", "CallHangs", "Invoker", "WrongResult"]

logger = logging.getLogger(__name__)

T = TypeVar("T")
_SECRETS = Resource("v1", "secrets")


_MAX_PROBLEMS = 100


class CallFailed(Exception):
    """What an actuator raised, whatever it was, kept apart from errors of our own."""

    def __init__(self, error: ErrorInfo) -> None:
        super().__init__(error.text)
        self.error = error


class WrongResult(ActuatorError):
    """An actuator returned what the contract does not allow."""

    def __init__(self, what: str, got: object, wanted: str) -> None:
        codes = [ErrorCode.ERR_CONFIGURATION_PROBLEM]  # so that the shoot may be force-deleted
        super().__init__(f"{what} returned {type(got).__name__}; it has to {wanted}", codes=codes)


class CallHangs(ActuatorError):
    """An earlier call for the same object was set aside and is still out."""


@attrs.define
class Invoker:
    """Calls one actuator; `replace_worker` frees an object, and a worker, of a call that hangs."""

    actuator: Actuator[Any]
    kind: Kind
    client: Client
    clock: Clock
    gate: Callable[[], None]
    """Raises LeaseLost where this process no longer leads."""
    aside: Aside
    calls: Calls = attrs.field(init=False)
    known: KnownSecrets = attrs.field(init=False, factory=KnownSecrets)
    """What was read for objects; whoever lets go of one has it forgotten."""
    replace_worker: Callable[[Request], None] = attrs.field(
        init=False, default=lambda _request: None
    )
    timed: Callable[[str, float], None] = attrs.field(
        init=False, default=lambda _operation, _seconds: None
    )
    """Told how many seconds each operation took, once its call is back."""

    def __attrs_post_init__(self) -> None:
        """Calls of this actuator, with places among those of all."""
        self.calls = Calls(self.aside)

    def new_call(
        self,
        operation: Operation,
        report: Reporter,
        save: Callable[[], None],
        seconds: float | None = None,
    ) -> Call:
        """The Context for one call of at most `seconds`, by default those of the kind."""
        call = Call(
            operation,
            report.uid,
            self.client,
            logs.bind(logging.getLogger(type(self.actuator).__module__), **report.log.fields),
            self.clock,
            self.kind.timeout if seconds is None else seconds,
            self.gate,
        )
        namespace = report.request.namespace
        call.serve(
            Services(
                event=lambda reason, text, warning: report.event(reason, text, warning=warning),
                save=lambda _obj: save(),
                secret=lambda name, namespace: self._secret(call, report, Request(namespace, name)),
                delete_seed_objects=lambda groups: delete_seed_objects(
                    call.client, namespace, groups, report.stripped, kind=self.kind.name
                ),
            )
        )
        return call

    def operate(
        self,
        call: Call,
        request: Request,
        obj: Any,
        cluster: Cluster,
        capture: Callable[[], None] = lambda: None,
    ) -> Result:
        """Does the operation. Raises CallFailed, and WorkerReplaced where the call was set aside.

        The call has been started (`calls`), so that it could be cancelled before. `capture` reads
        what the actuator left in `obj`, under the same time limit, where that will be written.
        """

        def work() -> Result:
            try:
                result = self._operate(call, obj, cluster)
            except BaseException:
                capture()
                raise
            if call.operation.reports:
                capture()
            return result

        return self.run(call, request, work)

    def run(self, call: Call, request: Request, work: Callable[[], T]) -> T:
        """What `work` returns, a call that has been started. Raises as `operate` does."""
        failure: ErrorInfo | None = None
        try:
            result = work()
        except BaseException as error:  # SystemExit included: an actuator ends no process
            failure = self._read(call, error)  # in the call: it runs the error's own code
        try:
            if not self.calls.finish(request, call):
                raise WorkerReplaced
            if failure is not None:
                raise CallFailed(failure)
        finally:
            del failure  # else this frame and the traceback in it keep each other in memory
        return result

    def _read(self, call: Call, error: BaseException) -> ErrorInfo:
        """What was raised; that the call has to stop is believed where it is so."""
        info = read_error(error)
        if not info.is_a(SetAside, LeaseLost, DeadlineExceeded):
            return info
        try:
            call.check()
        except Cancelled as reason:
            return read_error(reason)
        return attrs.evolve(info, cls=ActuatorError)

    def refuse_while_one_hangs(self, request: Request, uid: str) -> None:
        """Raises CallFailed where a call for that very object is still out: never two at a time."""
        if self.calls.hangs(request, uid):
            hangs = CallHangs(
                "an earlier call of the actuator does not return; nothing is called for this "
                "object before it does, or the extension is restarted, or deletion is forced"
            )
            raise CallFailed(read_error(hangs))

    def set_overdue_aside(self) -> None:
        """Gives up on every call that had to be back by now."""
        for request, call in self.calls.overdue(self.clock.monotonic()):
            if not call.cancelled:
                call.cancel("the time for this operation is over", grace=0)
            if self.calls.set_aside(request, call):
                fields = {"kind": self.kind.name, "object": str(request)}
                logger.warning("a call that hangs was set aside", extra={"fields": fields})
                self.replace_worker(request)

    def _secret(self, call: Call, report: Reporter, secret: Request) -> Raw:
        """As the API server has it; of one that is gone, what a deletion may still need."""
        try:
            found = call.client.get(_SECRETS, secret.name, secret.namespace)
        except NotFound:
            deletes = call.operation.deletes
            known = self.known.last(report.request, report.uid, secret) if deletes else None
            if known is None:
                raise
            text = f"Secret {secret} is gone; the deletion goes on with what was last read of it"
            report.once("SecretGone", text)
            return known
        call.check()  # nobody forgets any more what a call learns that is over
        self.known.remember(report.request, report.uid, found)
        return found

    def _operate(self, call: Call, obj: Any, cluster: Cluster) -> Result:
        call.check()  # an actuator that asks nobody must not begin without the lease either
        began = self.clock.monotonic()
        try:
            if call.operation.guards:
                self._validate(call, obj, cluster)
            result = getattr(self.actuator, call.operation.value)(call, obj, cluster)
            return self._checked(call.operation, result)
        finally:
            self.timed(call.operation.value, self.clock.monotonic() - began)

    def _validate(self, call: Call, obj: Any, cluster: Cluster) -> None:
        problems = list(islice(self.actuator.validate(call, obj, cluster), _MAX_PROBLEMS))
        for one in problems:
            if not isinstance(one, FieldProblem):
                raise WrongResult(f"{self.name}.validate", one, "yield FieldProblems")
        if problems:
            raise invalid(obj, problems)

    def _checked(self, operation: Operation, result: object) -> Result:
        """The result. Raises WrongResult where it is none: a promise is no cleanup that is done."""
        if result is None:
            return Result()
        if operation.guards and isinstance(result, Result):
            return Result(requeue_after=result.requeue_after)
        if isinstance(result, Coroutine):
            result.close()  # else Python warns that nobody awaited it
        wanted = "return None or a Result" if operation.guards else "return None"
        again = f"{wanted} when it is done, and raise RequeueAfter to be called again"
        raise WrongResult(f"{self.name}.{operation.value}", result, again)

    @property
    def name(self) -> str:
        """The class of the author's actuator."""
        return type(innermost(self.actuator)).__name__
