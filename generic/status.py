"""What the reconciler writes into an object's status: pure builders of JSON patches.

lastOperation, lastError and observedGeneration are exactly what gardenlet reads (Gardener
documentation, "Extension contract", and `extensions/pkg/controller/status.go`). When and with
which client they are written is `reconciler`'s business.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from actuator.errors import ErrorCode
from actuator.meta import LastOperationState, LastOperationType, Raw
from generic.patches import add, remove, test

__all__ = ["changes", "failed", "onto", "processing", "saved", "succeeded", "with_condition"]

_RECONCILERS = frozenset({"lastOperation", "lastError", "observedGeneration"})


def processing(
    obj: Raw, type: LastOperationType, description: str, now: str, changed: Raw | None = None
) -> list[Raw]:
    """lastOperation says Processing; lastError and observedGeneration stay as they are."""
    operation = _operation(type, LastOperationState.PROCESSING, 1, description, now)
    return _patch(obj, {**(changed or {}), "lastOperation": operation})


def succeeded(
    obj: Raw,
    type: LastOperationType,
    description: str,
    now: str,
    *,
    generation: int,
    changed: Raw,
) -> list[Raw]:
    """lastOperation says Succeeded, lastError goes; `changed` is what the actuator changed."""
    operation = _operation(type, LastOperationState.SUCCEEDED, 100, description, now)
    outcome = {"lastOperation": operation, "lastError": None}
    return _patch(obj, {**changed, **outcome, "observedGeneration": generation})


def failed(
    obj: Raw,
    type: LastOperationType,
    description: str,
    now: str,
    *,
    generation: int,
    codes: Iterable[ErrorCode],
    changed: Raw,
) -> list[Raw]:
    """lastOperation says Error, lastError says the same, with codes."""
    operation = _operation(type, LastOperationState.ERROR, 50, description, now)
    error: Raw = {"description": description, "lastUpdateTime": now}
    if listed := [str(code) for code in codes]:
        error["codes"] = listed
    outcome = {"lastOperation": operation, "lastError": error}
    return _patch(obj, {**changed, **outcome, "observedGeneration": generation})


def changes(before: Raw, after: Raw) -> Raw:
    """The fields of the status that an actuator changed; None stands for removed.

    The reconciler's own fields are not among them: an actuator cannot write those.
    """
    fields = (before.keys() | after.keys()) - _RECONCILERS
    return {f: after.get(f) for f in sorted(fields) if before.get(f) != after.get(f)}


def onto(obj: Raw, changed: Raw, before: Raw) -> Raw:
    """What an actuator changed since `before`, as it has to be written over what `obj` says now.

    Conditions are somebody else's too (health checks): only those that the actuator set or
    removed are touched.
    """
    if "conditions" not in changed:
        return changed
    wanted, known = _by_type(changed), _by_type(before)
    merged = _by_type(obj.get("status"))
    for type_ in known.keys() - wanted.keys():
        merged.pop(type_, None)
    merged.update({type_: c for type_, c in wanted.items() if known.get(type_) != c})
    return {**changed, "conditions": list(merged.values())}


def with_condition(obj: Raw, changed: Raw, type: str, make: Callable[[Raw | None], Raw]) -> Raw:
    """`changed` with one condition more, made from what it is in `obj` now."""
    merged = _by_type(changed if "conditions" in changed else obj.get("status"))
    merged[type] = make(merged.get(type))
    return {**changed, "conditions": list(merged.values())}


def _by_type(status: Raw | None) -> dict[str, Raw]:
    conditions = (status or {}).get("conditions") or []
    return {str(condition.get("type")): condition for condition in conditions}


def saved(obj: Raw, changed: Raw) -> list[Raw]:
    """Only what the actuator changed, ahead of the result."""
    return _patch(obj, changed)


def _operation(
    type: LastOperationType, state: LastOperationState, progress: int, description: str, now: str
) -> Raw:
    return {
        "description": description,
        "lastUpdateTime": now,
        "progress": progress,
        "state": str(state),
        "type": str(type),
    }


def _patch(obj: Raw, fields: Raw) -> list[Raw]:
    """A patch that sets these fields of the status; None removes one."""
    uid = test("/metadata/uid", obj["metadata"]["uid"])
    if not isinstance(obj.get("status"), dict):  # `add /status` would overwrite somebody else's
        present = {name: value for name, value in fields.items() if value is not None}
        return [uid, test("/status", None), add("/status", present)]
    patch = [uid]
    if "conditions" in fields:  # built upon what was read: nobody's in between may be lost
        patch.append(test("/status/conditions", obj["status"].get("conditions")))
    for name, value in fields.items():
        path = f"/status/{name}"
        patch.append(add(path, {} if value is None else value))
        if value is None:  # removing what is not there is an error, so it is there first
            patch.append(remove(path))
    return patch
