"""Invoker: calls one actuator, each time in a Context of its own, and never waits for ever.

A call ends by returning, or it is cancelled (its time is over, a force deletion overtakes it) and,
where it does not come back, set aside: its worker goes on with something else. What is called,
and what becomes of the result, is not decided here.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, TypeVar

import attrs

from actuator.cluster import Cluster
from actuator.errors import ActuatorError, NotFound
from actuator.interface import Actuator, Client, Clock, Resource, Result, invalid
from actuator.meta import Kind, Raw
from generic import logs
from generic.calls import Aside, Call, Calls, Services
from generic.controller import WorkerReplaced
from generic.force_delete import delete_seed_objects
from generic.known_secrets import KnownSecrets
from generic.operation import Operation
from generic.reporter import Reporter
from generic.store import Request

__all__ = ["CallFailed", "CallHangs", "Invoker"]

logger = logging.getLogger(__name__)

T = TypeVar("T")
_SECRETS = Resource("v1", "secrets")


class CallFailed(Exception):
    """What an actuator raised, whatever it was, kept apart from errors of our own."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(str(error))
        self.error = error


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
                    call.client, namespace, groups, report.stripped
                ),
            )
        )
        return call

    def operate(self, call: Call, request: Request, obj: Any, cluster: Cluster) -> Result:
        """Does the operation. Raises CallFailed, and WorkerReplaced where the call was set aside.

        The call has been started (`calls`), so that it could be cancelled before.
        """
        result = self.run(call, request, lambda: self._operate(call, obj, cluster))
        return result if isinstance(result, Result) else Result()

    def run(self, call: Call, request: Request, work: Callable[[], T]) -> T:
        """What `work` returns, a call that has been started. Raises as `operate` does."""
        failure: BaseException | None = None
        try:
            result = work()
        except BaseException as error:  # SystemExit included: an actuator ends no process
            failure = error
        if not self.calls.finish(request, call):
            raise WorkerReplaced
        if failure is not None:
            raise CallFailed(failure) from failure
        return result

    def refuse_while_one_hangs(self, request: Request, uid: str) -> None:
        """Raises CallFailed where a call for that very object is still out: never two at a time."""
        if self.calls.hangs(request, uid):
            raise CallFailed(
                CallHangs(
                    "an earlier call of the actuator does not return; nothing is called for this "
                    "object before it does, or the extension is restarted, or deletion is forced"
                )
            )

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

    def _operate(self, call: Call, obj: Any, cluster: Cluster) -> object:
        call.check()  # an actuator that asks nobody must not begin without the lease either
        began = self.clock.monotonic()
        try:
            if call.operation.guards:
                problems = list(self.actuator.validate(call, obj, cluster))
                if problems:
                    raise invalid(obj, problems)
            return getattr(self.actuator, call.operation.value)(call, obj, cluster)
        finally:
            self.timed(call.operation.value, self.clock.monotonic() - began)
