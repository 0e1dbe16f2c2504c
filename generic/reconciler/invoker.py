"""Invoker: calls one actuator, each time in a Context of its own, with a time limit.

A call ends when it returns. A call that is cancelled (its time is over, or a force deletion needs
its place) and does not return is abandoned: its worker is replaced. Not here: the choice of the
operation, and the use of the result.
"""

import logging
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property, partial
from itertools import islice
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from actuator.cluster import Cluster
from actuator.errors import (
    ActuatorError,
    CallAbandoned,
    Cancelled,
    ConfigurationError,
    DeadlineExceeded,
    ErrorCode,
    LeaseLost,
    NotFound,
)
from actuator.interface import (
    Actuator,
    Client,
    Clock,
    ExternalResource,
    FieldProblem,
    Result,
    SeedObjects,
    config_class,
    innermost,
    invalid,
)
from actuator.meta import Kind, Object, Raw
from actuator.places import place_of
from actuator.provider_config import Configurations
from generic.controller.controller import WorkerReplaced
from generic.kube.errorinfo import ErrorInfo, describe, read_error, with_text
from generic.kube.headers import Request
from generic.kube.remote import Remote
from generic.kube.timers import Timer, Timers
from generic.reconciler.calls import Call, FencedClient, ShootClient, blocks
from generic.reconciler.known_secrets import hide
from generic.reconciler.operation import Operation
from generic.reconciler.origin import MAX_LENGTH
from generic.reconciler.orphans import UNKNOWN, recordable
from generic.reconciler.reporter import Reporter
from generic.reconciler.stripping import Stripped, delete_seed_objects
from generic.reconciler.track import Track, Tracks
from generic.serving import logs

_MAX_PROBLEMS = 100
BLOCKS_AFTER_SECONDS = 30.0
"""Seconds after which a call that has not returned is reported."""
RESOURCES_SECONDS = 2.0
"""Time limit of external_resources in seconds: it sends no requests."""


class CallFailed(Exception):
    """Any exception of an actuator, distinguished from our own errors."""

    def __init__(self, error: ErrorInfo) -> None:
        super().__init__(error.text)
        self.error = error


class WrongResult(ActuatorError):
    """An actuator returned a value that the contract does not allow."""

    def __init__(self, actuator: Actuator[Any], method: str, got: object, wanted: str) -> None:
        cls = type(innermost(actuator))
        what = f"{cls.__name__}.{method}"
        at = place_of(getattr(cls, method))
        codes = [ErrorCode.ERR_CONFIGURATION_PROBLEM]  # so that the shoot may be force-deleted
        super().__init__(f"{what} returned {type(got).__name__}; it must {wanted}{at}", codes=codes)


def checked_account(actuator: Actuator[Any], method: str, account: object) -> str:
    """Return the cloud account that an author's method returned. Raises WrongResult."""
    if isinstance(account, Coroutine):
        account.close()  # else Python warns that it was never awaited
    if isinstance(account, str):
        text = str.__str__(account)
        if len(text) <= MAX_LENGTH and text.isprintable():
            return text
    wanted = f'return a text of at most {MAX_LENGTH} printable characters, or "" if it is unknown'
    raise WrongResult(actuator, method, account, wanted)


class CallHangs(ActuatorError):
    """An earlier call for the same object was abandoned and has not returned."""


class Invoker(Struct, frozen=True):
    """Calls one actuator. Every call belongs to the track of an object."""

    actuator: Actuator[Any]
    kind: Kind
    client: Client
    clock: Clock
    gate: Callable[[], None]
    """Raise LeaseLost if this process no longer leads."""
    tracks: Tracks
    timed: Callable[[str, float], None]
    """Receives the name of each operation and the seconds of its call, when it returns."""
    remote: Remote
    timers: Timers
    processing_after: float | None = None
    """Seconds after which a call that reports is published; None: never."""

    def invoke(
        self,
        call: "ActuatorCall",
        track: Track,
        obj: Any,
        cluster: Cluster,
        capture: Callable[[], None] = lambda: None,
        publish: Callable[[str], None] = lambda _text: None,
    ) -> Result:
        """Call the actuator; `call` is registered in `tracks`, so that it can be cancelled before.

        `capture` reads the actuator's changes of `obj` under the same time limit, if they will be
        written. `publish` writes that the call runs, with a text if it blocks. Raises CallFailed,
        and WorkerReplaced if the call was abandoned.
        """
        name = call.operation.value
        call.configurations = Configurations(config_class(self.actuator), obj)
        with self._guarded(call, track, capture), self._announced(call, publish):
            call.check()  # an actuator that sends no request must not start without the lease
            began = self.clock.monotonic()
            try:
                if call.operation.guards:
                    self._validate(call, obj, cluster)
                    call.accepted = True
                    call.account = self._account(call, track, obj, cluster)
                result = getattr(self.actuator, name)(call, obj, cluster)
                checked = self._checked(call.operation, result)
            finally:
                self.timed(name, self.clock.monotonic() - began)
            if call.operation.reports:
                capture()
        return checked

    def external_resources(
        self, report: Reporter, track: Track, obj: Any, seconds: float = RESOURCES_SECONDS
    ) -> list[ExternalResource]:
        """Return the remaining resources that the actuator reports; unknown if it raises.

        Raises WorkerReplaced if it does not return within `seconds`.
        """
        call = ActuatorCall(self, Operation.FORCE_DELETE, report, seconds=seconds, grace=0.0)
        if not self.tracks.begin_reserved(track, call):
            return [UNKNOWN]
        try:
            with self._guarded(call, track, lambda: None):
                found, problem = recordable(self.actuator, obj)
        except CallFailed as failed:
            found = [UNKNOWN]
            problem = failed.error.text
        if problem:
            problem = self._hidden(track, problem)
            report.log.error("external_resources failed", extra={"fields": {"error": problem}})
        return found

    def refuse_while_one_hangs(self, track: Track) -> None:
        """Raise CallFailed while a call for that object has not returned: never two at a time."""
        if track.abandoned:
            hangs = CallHangs(
                f"an earlier call blocks: {blocks(track.abandoned[0].progress())}; the next call "
                "starts when it returns, the extension restarts, or the deletion is forced"
            )
            raise CallFailed(read_error(hangs))

    @contextmanager
    def _announced(self, call: "ActuatorCall", publish: Callable[[str], None]) -> Iterator[None]:
        """Until the call returns, publish that it runs, and later the line at which it blocks."""
        timers: list[Timer] = []
        first = 1.0 if self.processing_after is None else self.processing_after

        def begin() -> None:
            if self.processing_after is not None:
                publish("")
            report = partial(call.report_blocked, publish)
            timers.append(self.timers.call_later(BLOCKS_AFTER_SECONDS - first, report))

        timers.append(self.timers.call_later(first, begin))
        try:
            yield
        finally:
            for timer in timers:  # an action that is running may add one
                timer.cancel()

    @contextmanager
    def _guarded(self, call: Call, track: Track, capture: Callable[[], None]) -> Iterator[None]:
        """Contain exceptions of the author's code. Raises as `invoke` does."""
        failure: ErrorInfo | None = None
        try:
            yield
        except BaseException as error:  # SystemExit included: no actuator may end the process
            capture()
            failure = self._read(call, error)  # within the call: it runs the error's own code
            failure = with_text(failure, partial(self._hidden, track))
        if not self.tracks.end(track, call):
            raise WorkerReplaced from None
        if failure is not None:
            raise CallFailed(failure) from None

    def _hidden(self, track: Track, text: str) -> str:
        """Return the text of an error without values of Secrets that were read for the object."""
        now = self.clock.now()
        known = [secret.read(now) for secret in (track.secrets or {}).values()]
        return hide(text, filter(None, known))

    def _read(self, call: Call, error: BaseException) -> ErrorInfo:
        """Return the error data; a Cancelled error counts only if the call has really ended."""
        info = read_error(error)
        if not info.is_a(CallAbandoned, LeaseLost, DeadlineExceeded):
            return info
        try:
            call.check()
        except Cancelled as reason:
            return read_error(reason)
        return replace(info, cls=ActuatorError)

    def _validate(self, call: "ActuatorCall", obj: Any, cluster: Cluster) -> None:
        if wrong := call.configurations.problems():
            raise invalid(obj, wrong)
        found = self.actuator.validate(call, obj, cluster)
        if not isinstance(found, Iterable):
            raise WrongResult(self.actuator, "validate", found, "yield FieldProblems")
        problems = list(islice(found, _MAX_PROBLEMS))
        for problem in problems:
            if not isinstance(problem, FieldProblem):
                raise WrongResult(self.actuator, "validate", problem, "yield FieldProblems")
        if problems:
            raise invalid(obj, problems)

    def _account(self, call: "ActuatorCall", track: Track, obj: Any, cluster: Cluster) -> str:
        """Return the cloud account; "" if it is known, or cannot be read now: no reason to stop."""
        is_asked = type(innermost(self.actuator)).cloud_account is not Actuator.cloud_account
        if not (call.lacks_account and is_asked):
            return ""
        with call.reading_ahead():
            try:
                account: object = self.actuator.cloud_account(call, obj, cluster)
                return checked_account(self.actuator, "cloud_account", account)
            except Exception as error:  # if the call has to stop, its next step raises it again
                text = self._hidden(track, describe(error))
                call.log.warning("account not read", extra={"fields": {"error": text}})
        return ""

    def _checked(self, operation: Operation, result: object) -> Result:
        """Return the result. Raises WrongResult: a cleanup that promises a result is unfinished."""
        if result is None:
            return Result()
        if operation.guards and isinstance(result, Result):
            return Result(requeue_after=result.requeue_after)
        if isinstance(result, Coroutine):
            result.close()  # else Python warns that it was never awaited
        wanted = "return None or a Result" if operation.guards else "return None"
        again = f"{wanted} when done, and raise RequeueAfter to be called again"
        raise WrongResult(self.actuator, operation.value, result, again)

    @property
    def name(self) -> str:
        """The class name of the author's actuator."""
        return type(innermost(self.actuator)).__name__


class ActuatorCall(Call):
    """The Context of one call. See `actuator.Context` for what an author may use."""

    def __init__(
        self,
        invoker: Invoker,
        operation: Operation,
        report: Reporter,
        save: Callable[[], None] = lambda: None,
        seconds: float | None = None,
        grace: float | None = None,
    ) -> None:
        """`save` writes what the actuator changed in the status of the object.

        The call has at most `seconds`, by default the kind's timeout.
        """
        gate = invoker.gate
        clock = invoker.clock
        limit = invoker.kind.timeout if seconds is None else seconds
        super().__init__(operation, invoker.client, clock, gate, limit, grace=grace)
        self._invoker = invoker
        self._report = report
        self._save = save
        self.method = f"{invoker.name}.{operation.value}"
        self.configurations: Configurations
        """Those of the object, once the actuator is called."""
        self.accepted = False
        """Whether the object was validated, without a problem."""
        self.lacks_account = False
        """Whether the status of the object has no cloud account yet."""
        self.account = ""
        """The account that the actuator returned, if it was asked."""
        self._is_ahead = False
        self._ahead: dict[Request, Raw] = {}
        """The Secrets that were read before the operation, for its first read of each."""

    def report_blocked(self, publish: Callable[[str], None]) -> None:
        """Report where the call blocks: in the log, as an event, and in the status."""
        progress = self.progress()
        self._report.log.warning("call blocks", extra={"fields": progress})
        self._report.event("CallBlocks", blocks(progress), warning=True)
        if not self.cancelled:  # else another call may write the status
            publish(blocks(progress))

    @property
    def config(self) -> Any:
        """See Context."""
        return self.configurations.get()

    def pool_config(self, index: int) -> Any:
        """See Context."""
        return self.configurations.get(index)

    @property
    def log(self) -> logging.LoggerAdapter[logging.Logger]:
        """See Context."""
        logger = logging.getLogger(type(self._invoker.actuator).__module__)
        return logs.bind(logger, **self._report.log.fields)

    def event(self, reason: str, message: str, *, warning: bool = False) -> None:
        """See Context."""
        self.permit()
        self._report.event(reason, message, warning=warning)

    def save(self, _obj: Object) -> None:
        """See Context."""
        self.permit()
        self._save()
        self.permit()  # the next step may have an external effect

    @contextmanager
    def reading_ahead(self) -> Iterator[None]:
        """Keep each Secret that is read meanwhile for its next reader: one request for both."""
        self._is_ahead = True
        try:
            yield
        finally:
            self._is_ahead = False

    def secret(self, name: str, namespace: str) -> Raw:
        """Return the current Secret; for a deletion, the last known state of a deleted one."""
        self.permit()
        secret = Request(namespace, name)
        if not self._is_ahead and secret in self._ahead:
            return self._ahead.pop(secret)
        track = self._report.track
        try:
            found = super().secret(name, namespace)
        except NotFound:
            kept = (track.secrets or {}).get(secret) if self.operation.deletes else None
            known = kept and kept.read(self.clock.now())
            if not known:
                raise
            text = f"Secret {secret} not found; the deletion continues with its last known content"
            self._report.once("SecretGone", text)
            return known
        self.permit()  # results after the end of a call are dropped
        meta = found["metadata"]
        tracks = self._invoker.tracks
        known_as = Request(meta["namespace"], meta["name"])
        tracks.keep_secret(track, known_as, tracks.secrets.share(found))
        if self._is_ahead:
            self._ahead[secret] = found
        return found

    @cached_property
    def shoot(self) -> Client:
        """See Context."""
        self.permit()
        request = self._report.track.request
        if not request.namespace:
            raise ConfigurationError(
                f"{self._invoker.kind.name} {request} has no namespace, so it belongs to no shoot; "
                "use ctx.shoot only for objects in the namespace of a shoot"
            )
        remote = self._invoker.remote
        client = remote.shoot(request.namespace)
        return ShootClient(client, self, request.namespace, remote.patience)

    @cached_property
    def garden(self) -> Client:
        """See Context."""
        self.permit()
        return FencedClient(self.limited(self._invoker.remote.garden()), self.permit)

    def delete_seed_objects(self, groups: Iterable[SeedObjects]) -> None:
        """See Context."""
        self.permit()
        namespace = self._report.track.request.namespace
        kind = self._invoker.kind.name
        delete_seed_objects(self.client, namespace, groups, self._stripped, kind=kind)

    def _stripped(self, stripped: Stripped) -> None:
        self._report.stripped(stripped)
        self._invoker.tracks.note_force_deletion(
            self._report.track, lambda budget: budget.with_stripped(stripped)
        )
