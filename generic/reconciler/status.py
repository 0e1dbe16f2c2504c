"""Builders of the JSON patches that the reconciler writes into a status. Pure.

lastOperation, lastError and observedGeneration are exactly what gardenlet reads (Gardener
documentation, "Extension contract", and `extensions/pkg/controller/status.go`). Kinds outside
Gardener report the same as a condition Ready. Not here: the time and the client of the write
(`attempt`).
"""

from collections.abc import Callable, Collection

from msgspec import Struct

from actuator.errors import ErrorCode
from actuator.meta import LastOperationState, LastOperationType, Raw, ReadyReasons, conditions_in
from generic.kube.patches import add, remove, test, test_version

READY = "Ready"
"""The type of the condition by which kinds outside Gardener report."""

_RECONCILERS = frozenset({"lastOperation", "lastError", "observedGeneration"})
_PROGRESS = {
    LastOperationState.PROCESSING: 1,
    LastOperationState.ERROR: 50,
    LastOperationState.SUCCEEDED: 100,
}


class Failure(Struct, frozen=True, kw_only=True):
    """An error in the form of a status.

    `reason` is the error's own, if it has one. `blocked` is the reason and message of the condition
    of a blocked deletion; `gives_up` means that it is not retried.
    """

    text: str
    codes: Collection[ErrorCode] = ()
    reason: str = ""
    blocked: tuple[str, str] | None = None
    gives_up: bool = False


class Report(Struct, frozen=True, kw_only=True):
    """The state of one attempt: Processing, Succeeded, or Error with its `failure`."""

    type: LastOperationType
    state: LastOperationState
    text: str
    now: str
    generation: int
    failure: Failure | None = None

    @property
    def codes(self) -> Collection[ErrorCode]:
        """Gardener's codes of the error."""
        return self.failure.codes if self.failure else ()

    @property
    def is_final(self) -> bool:
        """Whether the attempt ended."""
        return self.state is not LastOperationState.PROCESSING


def reported(obj: Raw, changed: Raw, report: Report, ready: ReadyReasons | None) -> Raw:
    """Return the fields for the report; `changed` has the actuator's changes."""
    if ready is None:
        return {**changed, **_last_operation(report)}
    shown = with_condition(obj, changed, READY, lambda before: _ready(before, report, ready))
    observed = {"observedGeneration": report.generation} if report.is_final else {}
    return {**shown, **observed}


def _last_operation(report: Report) -> Raw:
    """Return lastOperation; unless Processing, also lastError and observedGeneration."""
    operation: Raw = {
        "description": report.text,
        "lastUpdateTime": report.now,
        "progress": _PROGRESS[report.state],
        "state": str(report.state),
        "type": str(report.type),
    }
    if not report.is_final:
        return {"lastOperation": operation}
    error: Raw | None = None
    if report.failure is not None:
        error = {"description": report.text, "lastUpdateTime": report.now}
        if report.codes:
            error["codes"] = [str(code) for code in report.codes]
    return {
        "lastOperation": operation,
        "lastError": error,
        "observedGeneration": report.generation,
    }


def _ready(before: Raw | None, report: Report, reasons: ReadyReasons) -> Raw:
    """Return the condition Ready; a ready object stays ready while it is reconciled."""
    deleting = report.type is LastOperationType.DELETE
    was = before.get("status") if before is not None else None
    if report.failure is not None:
        failed = reasons.deletion_failed if deleting else reasons.failed
        own = reasons.given_up if report.failure.gives_up else report.failure.reason
        status = "False"
        reason = own or failed
    elif report.is_final:
        status = "True"
        reason = reasons.succeeded
    else:
        status = "True" if was == "True" and not deleting else "False"
        reason = "Deleting" if deleting else "Reconciling"
    since = before.get("lastTransitionTime") if before is not None and was == status else None
    return condition(
        READY, status, reason, report.text, codes=report.codes, now=report.now, since=since
    )


def condition(
    type: str,
    status: str,
    reason: str,
    message: str,
    *,
    codes: Collection[ErrorCode],
    now: str,
    since: str | None,
) -> Raw:
    """Return a condition as JSON; its transition was at `since`, or is `now`."""
    made: Raw = {
        "type": type,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": since or now,
        "lastUpdateTime": now,
    }
    return {**made, "codes": [str(code) for code in codes]} if codes else made


def changes(before: Raw, after: Raw) -> Raw:
    """Return the status fields that an actuator changed; None means removed.

    The reconciler's own fields are left out: an actuator cannot write those.
    """
    fields = (before.keys() | after.keys()) - _RECONCILERS
    return {f: after.get(f) for f in sorted(fields) if before.get(f) != after.get(f)}


def onto(obj: Raw, changed: Raw, before: Raw) -> Raw:
    """Return the changes of an actuator since `before`, merged with the current status of `obj`.

    Other controllers write conditions too (health checks): only those that the actuator set or
    removed are changed.
    """
    if "conditions" not in changed:
        return changed
    wanted = conditions_in(changed)
    known = conditions_in(before)
    merged = conditions_in(obj.get("status"))
    for type_ in known.keys() - wanted.keys():
        merged.pop(type_, None)
    merged.update({type_: c for type_, c in wanted.items() if known.get(type_) != c})
    return {**changed, "conditions": list(merged.values())}


def with_condition(obj: Raw, changed: Raw, type: str, make: Callable[[Raw | None], Raw]) -> Raw:
    """Return `changed` with one more condition, made from the current one in `obj`."""
    merged = conditions_in(changed if "conditions" in changed else obj.get("status"))
    merged[type] = make(merged.get(type))
    return {**changed, "conditions": list(merged.values())}


def with_fact(obj: Raw, changed: Raw, type: str, reason: str, text: str, now: str) -> Raw:
    """Return `changed` with one more condition, which is true since its text last changed."""

    def make(before: Raw | None) -> Raw:
        if before is not None and before.get("message") == text:
            return before
        return condition(type, "True", reason, text, codes=(), now=now, since=None)

    return with_condition(obj, changed, type, make)


def patch(obj: Raw, fields: Raw) -> list[Raw]:
    """Return a patch that sets these fields of the status; None removes one."""
    uid = test("/metadata/uid", obj["metadata"]["uid"])
    if not isinstance(obj.get("status"), dict):  # else `add` replaces another client's status
        present = {name: value for name, value in fields.items() if value is not None}
        return [uid, test("/status", None), add("/status", present)]
    operations = [uid]
    if "conditions" in fields:  # built on the state that was read: no concurrent change may be lost
        operations.append(test_version(obj))
    for name, value in fields.items():
        path = f"/status/{name}"
        operations.append(add(path, {} if value is None else value))
        if value is None:  # removing a missing field is an error, so add it first
            operations.append(remove(path))
    return operations
