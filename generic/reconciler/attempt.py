"""Attempt: every write to an object during one attempt at an operation.

An undisturbed life takes three requests: one patch that adds the finalizer and removes a
`reconcile` annotation, one status, one patch that removes the finalizer. Not here: the rules by
which no request is lost (`annotation`).
"""

import re
import threading
from collections.abc import Callable
from contextlib import suppress
from itertools import chain
from typing import Any

import attrs
from msgspec.structs import replace

from actuator.checking import check
from actuator.codec import decode_json, encode, plain_json, read_json
from actuator.errors import ActuatorError, ApiError, ErrorCode
from actuator.interface import Clock, resource_of
from actuator.meta import Kind, LastOperationState, Object, Raw, format_time, wire_name
from actuator.provider_config import ACCEPTED, accepted_message, has_configuration, is_accepted
from actuator.tolerance import decode_tolerantly
from generic.controller.predicates import OPERATION, TIMESTAMP, requested
from generic.kube import finalizers
from generic.kube.dropped import NotStored, lost
from generic.kube.errorinfo import describe, shorten
from generic.kube.finalizers import Stale
from generic.kube.headers import DELETION_BLOCKED, Header
from generic.kube.patches import escape, remove, test
from generic.kube.store import StoredObject
from generic.kube.writer import ObjectGone, Writer
from generic.reconciler import status
from generic.reconciler.annotation import Removal, removal
from generic.reconciler.blocked import blocking
from generic.reconciler.operation import Operation
from generic.reconciler.origin import CLOUD_ACCOUNT, UNKNOWN_VALUE, account_of
from generic.reconciler.status import Failure
from generic.reconciler.track import Track

_MAX_ROUNDS = 10  # of reading and patching again, before the queue's backoff applies
_MAX_STATUS = 2**20
"""Maximum bytes of JSON of one status field: etcd accepts 1.5 MiB for a whole object."""
_TOO_LARGE = re.compile("too large|larger than max")
_OPTIONAL = re.compile(r"status\.conditions\[\d+\]\.(lastUpdateTime|codes)")
"""Fields that the conditions of Kubernetes lack, and so of CRDs that are not ours."""
_SHORT = 1024
"""Maximum bytes of an error's text in a status after the API server refused a longer one."""


class StatusUnwritable(ActuatorError):
    """An actuator put a value into the status that the API server cannot keep."""

    def __init__(self, field: str, why: str) -> None:
        super().__init__(
            f"cannot write {field}: {why}; the extension must set another value",
            codes=[ErrorCode.ERR_CONFIGURATION_PROBLEM],  # so that the shoot may be force-deleted
        )


class Attempt:
    """One attempt at `operation` for the object as it was in `entry`."""

    def __init__(
        self,
        kind: Kind,
        track: Track,
        entry: StoredObject[Header],
        operation: Operation,
        writer: Writer,
        clock: Clock,
    ) -> None:
        self.track = track
        self.request = track.request
        self.uid = entry.header.uid
        self.operation = operation
        self.start = entry.header
        self._kind = kind
        self.entry = entry
        """The object as this process last wrote or read it."""
        self._writer = writer
        self._clock = clock
        self._lock = threading.Lock()  # Processing is published from another thread
        self._type = operation.last_operation_type(entry.header)
        self._obj: Object | None = None
        self._before: Raw = {}
        self._changed: Raw = {}  # by the actuator, as plain JSON
        self.unwritable: StatusUnwritable | None = None
        """The error in the status that the actuator left; None if it can be written."""
        self.not_stored: NotStored | None = None
        """The error for fields that the API server did not store, also for those of ours."""
        self.loses_fields = track.loses_fields
        """Whether the API server did not store a field that the actuator set."""
        self.has_config = self.accepted = False
        """Whether the actuator has a provider configuration, and this attempt accepted it."""
        self.account = ""
        """The cloud account, if the actuator was asked for it; written with the next state."""
        self._is_published = False
        self._removal = removal(kind, operation, entry.header)

    @property
    def doing(self) -> str:
        """The attempt in words: "deleting Infrastructure"."""
        verb = self.operation.value.removesuffix("e").replace("_", "-")
        return f"{verb}ing {self._kind.name}"

    @property
    def lacks_account(self) -> bool:
        """Whether the opened object may keep its cloud account, and does not have it."""
        status = getattr(self._obj, "status", None)
        known = account_of({"status": self._before})
        return hasattr(status, "conditions") and known == UNKNOWN_VALUE

    def open(self, cls: type[Object]) -> Any:
        """Return the object for the actuator, as last written. Raises DecodeError."""
        decode = decode_tolerantly if self.operation.releases else decode_json
        self._obj = decode(cls, self.entry.raw)
        self._changed = {}
        self._before = read_json(self.entry.raw).get("status") or {}
        return self._obj

    def guard(self, cls: type[Object]) -> None:
        """Add our finalizer if the operation needs it, and remove the annotation if it must be off.

        An object that cannot be read gets no finalizer, so that nothing blocks its deletion.
        Raises DecodeError, Stale, ObjectGone, or ApiError.
        """
        header = self.entry.header
        patch: list[Raw] = []
        if self.operation.guards and self._kind.finalizer not in header.finalizers:
            decode_json(cls, self.entry.raw)
            patch = finalizers.patch_adding(self._kind.finalizer, self.uid, header.finalizers)
        self._pick_up(patch)

    def _pick_up(self, patch: list[Raw]) -> None:
        """Apply a patch of metadata, together with the removal of the annotation if it is due."""
        is_due = self._removal in (Removal.BEFORE, Removal.PUBLISHED)
        if self._removal is Removal.PUBLISHED:
            self.publish()
        if is_due:
            patch = self._with_removal(patch, self.start.generation)
        if patch:
            self.entry = self._writer.patch(self.request, self.uid, patch)
        if is_due:
            self._removal = Removal.NEVER

    def publish(self, text: str = "") -> None:
        """Write the state Processing, once without a text. Raises ObjectGone or ApiError.

        A kind that reports by conditions keeps its current condition, if it has one.
        """
        if self._is_published and not text:
            return
        self._is_published = True
        shown = any(type == status.READY for type, _ in self.entry.header.conditions)
        if self._kind.ready is None or not shown:
            self._show(LastOperationState.PROCESSING, text or _sentence(self.doing), {})

    def wait(self, description: str) -> None:
        """Write the state Processing with a description.

        Also writes the changes of the actuator, since they may contain a new id. Raises
        StatusUnwritable.
        """
        self._show_changed(LastOperationState.PROCESSING, description)

    @property
    def others_finalizers(self) -> list[str]:
        """The finalizers of other controllers on the object, as last read."""
        return [name for name in self.entry.header.finalizers if name != self._kind.finalizer]

    def capture(self) -> None:
        """Copy what the actuator changed, as plain JSON. Raises nothing.

        Called in the guarded call, since the values of an author may be anything.
        """
        self._changed = {}
        self.unwritable = None
        given = getattr(self._obj, "status", None)
        try:
            after = encode(self._obj).get("status") or {}
            for name, value in status.changes(self._before, after).items():
                try:
                    plain = _plain(name, value)
                    for path, why in check(type(given), {name: plain}, "status", closed=False):
                        raise StatusUnwritable(path, why)
                    self._changed[name] = plain
                except StatusUnwritable as error:  # the other fields are kept
                    self.unwritable = error
        except BaseException as error:  # reading an author's object may raise anything
            self.unwritable = StatusUnwritable(_field_of(given), describe(error))

    def save(self) -> None:
        """Write what the actuator changed so far into the status.

        Raises NotStored while it is not stored: nothing is created whose id would be lost.
        """
        self.capture()
        changed = self._checked()
        if changed:
            self._write_status(changed, lambda _raw, fields: fields)
            self._before = {**self._before, **changed}

    def succeed(self) -> None:
        """Write the state Succeeded. Raises StatusUnwritable or NotStored."""
        text = f"Successfully finished {self.doing}"
        if self.loses_fields:  # no success may be visible before they are stored
            self._show_changed(LastOperationState.PROCESSING, _sentence(self.doing))
        self._show_changed(LastOperationState.SUCCEEDED, text)
        self.loses_fields = False

    def _show_changed(self, state: LastOperationState, text: str) -> None:
        changed = self._checked()
        try:
            self._show(state, text, changed)
        except ApiError as error:
            if not changed or not is_refused(error):
                raise
            raise StatusUnwritable("the status", describe(error)) from error

    def fail(self, failure: Failure) -> None:
        """Write the error into the status.

        A status that the API server refuses is reduced until it is accepted: first without the
        actuator's changes and with a shorter text, then also without DeletionBlocked.
        """
        if self._kind.outcomes_are_watched:
            with suppress(ApiError, Stale):  # the error matters more than who sees it first
                self._pick_up([])
        short = replace(failure, text=shorten(failure.text, _SHORT))
        if failure.blocked is not None:
            reason, message = failure.blocked
            short = replace(short, blocked=(reason, shorten(message, _SHORT)))
        bare = replace(short, blocked=None, reason="")
        for less, changed in ((failure, self._changed), (short, {}), (bare, {})):
            text = shorten(f"Error {self.doing}: {less.text}")
            try:
                self._show(LastOperationState.ERROR, text, changed, less)
                return
            except NotStored:  # the error itself is written
                return
            except ApiError as error:
                if less is bare or not is_refused(error):
                    raise

    def _checked(self) -> Raw:
        if self.unwritable is not None:
            raise self.unwritable
        return self._changed

    def settle(self) -> None:
        """Remove the operation annotation after success; a newer request stays and runs again."""
        if self._removal is not Removal.AFTER:
            return
        with suppress(Stale, ObjectGone):
            patch = self._with_removal([], self.start.generation)
            self.entry = self._writer.patch(self.request, self.uid, patch)

    def release(self) -> None:
        """Remove our finalizer and a migrate annotation; a deleted object counts as success.

        Raises Stale if other clients change the object faster than we can, or ApiError.
        """
        with suppress(ObjectGone):
            self._patch(self._releasing)

    def _releasing(self) -> list[Raw]:
        header = self.entry.header
        patch: list[Raw] = []
        if self._kind.finalizer in header.finalizers:
            ours = [self._kind.finalizer]
            deleting = header.deletion_timestamp is not None
            patch = finalizers.patch_removing(ours, self.uid, header.finalizers, deleting=deleting)
        same_request = requested(header) == requested(self.start)
        if self._removal is Removal.AFTER and same_request:
            patch = self._with_removal(patch, header.generation)
        return patch

    def _with_removal(self, patch: list[Raw], generation: int) -> list[Raw]:
        """Return the patch of metadata that also removes the annotation, if it is unchanged."""
        operation, timestamp = requested(self.start)
        path = f"/metadata/annotations/{escape(OPERATION)}"
        return [
            *(patch or [test("/metadata/uid", self.uid)]),
            test(path, operation),
            test(f"/metadata/annotations/{escape(TIMESTAMP)}", timestamp),
            test("/metadata/generation", generation),
            remove(path),
        ]

    def _show(
        self,
        state: LastOperationState,
        text: str,
        changed: Raw,
        failure: Failure | None = None,
    ) -> None:
        """Write the state of this attempt, as lastOperation or as the condition of the kind."""

        def build(raw: Raw, changed: Raw) -> Raw:
            now = format_time(self._clock.now())
            report = status.Report(
                type=self._type,
                state=state,
                text=text,
                now=now,
                generation=self.start.generation,
                failure=failure,
            )
            if failure is not None:
                changed = _with_blocked(raw, changed, failure, now)
            if self.account:
                account = CLOUD_ACCOUNT, "CredentialsWork", self.account
                changed = status.with_fact(raw, changed, *account, now)
            if self._remembers(raw, state):
                accepted = ACCEPTED, "Accepted", accepted_message(self.start.generation)
                changed = status.with_fact(raw, changed, *accepted, now)
            return status.reported(raw, changed, report, self._kind.ready)

        self._write_status(changed, build)

    def _remembers(self, raw: Raw, state: LastOperationState) -> bool:
        """Whether only a condition can show later that this generation was accepted."""
        judged = self.has_config or has_configuration(raw)
        if not judged or state is LastOperationState.SUCCEEDED:
            return False
        known = is_accepted(self.start.generation, raw.get("status"))
        return state is LastOperationState.ERROR if known else self.accepted

    def _write_status(self, changed: Raw, build: Callable[[Raw, Raw], Raw]) -> None:
        """Write the fields that `build` returns for the current object and the changes.

        Raises NotStored if the API server did not store one of the changes.
        """
        sent: Raw = {}

        def patch() -> list[Raw]:
            nonlocal sent
            raw = read_json(self.entry.raw)
            sent = build(raw, status.onto(raw, changed, self._before))
            return status.patch(raw, sent)

        with self._lock:
            self.entry = self._writer.latest(self.request, self.uid)  # others may have written
            self._patch(patch, subresource="status")
            stored = read_json(self.entry.raw).get("status")
        dropped: dict[str, list[str]] = {}
        for name, value in sent.items():
            paths = lost({name: value}, stored, "status")
            dropped[name] = [path for path in paths if not _OPTIONAL.fullmatch(path)]
        if paths_of_all := [*chain(*dropped.values())]:
            self.not_stored = NotStored(resource_of(self._kind), paths_of_all)
        if paths_of_actuator := [*chain(*(dropped[name] for name in changed))]:
            self.loses_fields = True
            raise NotStored(resource_of(self._kind), paths_of_actuator)

    def _patch(self, build: Callable[[], list[Raw]], subresource: str = "") -> None:
        """Write the patch, unless it is empty; if the object changed, build it again."""
        for left in reversed(range(_MAX_ROUNDS)):
            try:
                if patch := build():
                    self.entry = self._writer.patch(
                        self.request, self.uid, patch, subresource=subresource
                    )
                return
            except Stale:
                if not left:
                    raise
                self.entry = self._writer.latest(self.request, self.uid)


def _field_of(given: Any) -> str:
    """Return the path of the first field of a status that cannot be encoded."""
    with suppress(Exception):
        for field in attrs.fields(type(given)):
            try:
                encode(type(given)(**{field.name: getattr(given, field.name)}))
            except Exception:
                return f"status.{wire_name(field)}"
    return "status"


def _plain(field: str, value: Any) -> Any:
    """Copy plain JSON. Raises StatusUnwritable for a value that the API server cannot keep."""
    try:
        return plain_json(value, _MAX_STATUS)
    except RecursionError:
        raise StatusUnwritable(f"status.{field}", "nested too deeply") from None
    except (TypeError, ValueError, OverflowError) as error:
        raise StatusUnwritable(f"status.{field}", str(error)) from None


def is_refused(error: BaseException) -> bool:
    """Whether the API server refused the content of a write, not its author or its time.

    An object too large for etcd, or for the request to it, is answered with 500.
    """
    if not isinstance(error, ApiError):
        return False
    too_large = error.status == 500 and _TOO_LARGE.search(error.message) is not None
    return too_large or error.status in (400, 413, 422)


def _with_blocked(raw: Raw, changed: Raw, failure: Failure, now: str) -> Raw:
    """Return `changed`, with the condition DeletionBlocked if the failure blocks a deletion."""
    if failure.blocked is None:
        return changed
    reason, said, codes = *failure.blocked, failure.codes
    return status.with_condition(
        raw, changed, DELETION_BLOCKED, lambda before: blocking(before, reason, said, codes, now)
    )


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
