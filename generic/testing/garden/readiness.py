"""gardenlet's checks of an object it waits for: ready, migrated, or why not. Pure.

Source: gardener `pkg/extensions/customresources.go` and `pkg/utils/kubernetes/health`. Kinds
outside Gardener, which report with a condition Ready, are read in the same way.
"""

from actuator.meta import LastOperationState, LastOperationType, Raw, conditions_in, parse_time
from generic.controller.predicates import OPERATION, TIMESTAMP
from generic.reconciler.status import READY

_AT_WORK = frozenset({"Reconciling", "Deleting"})


def error_of(obj: Raw) -> Raw | None:
    """Return the error in the object's status, description and codes; None if there is none."""
    status = obj.get("status") or {}
    if error := status.get("lastError"):
        return dict(error)
    ready = conditions_in(status).get(READY)
    if ready is None or ready["status"] != "False" or ready["reason"] in _AT_WORK:
        return None
    return {"description": ready["message"], "codes": ready.get("codes") or []}


def progress_of(obj: Raw) -> str:
    """Return what the extension reports about its unfinished operation, to append to a reason."""
    operation = (obj.get("status") or {}).get("lastOperation") or {}
    text = operation.get("description")
    if not obj.get("status") and not obj["metadata"].get("finalizers"):
        return ": no extension has worked on it"
    if not text or operation.get("state") != LastOperationState.PROCESSING:
        return ""
    return f": {operation.get('type')} is in progress: {text}"


def not_ready_because(obj: Raw) -> str | None:
    """Return why gardenlet does not consider the object ready; None if it does.

    The reason ends with the progress that the extension reports.
    """
    reason = _unready(obj)
    return reason and f"{reason}{progress_of(obj)}"


def _unready(obj: Raw) -> str | None:
    meta = obj["metadata"]
    status = obj.get("status") or {}
    annotations = meta.get("annotations") or {}
    operation = status.get("lastOperation")
    if error := error_of(obj):
        return f"error: {error.get('description')}"
    if status.get("observedGeneration") != meta.get("generation"):
        return "observed generation outdated"
    if OPERATION in annotations:
        return f"operation {annotations[OPERATION]!r} is not yet picked up"
    if not operation and (ready := conditions_in(status).get(READY)):
        return None if ready["status"] == "True" else f"not ready: {ready['message']}"
    if not operation:
        return "no last operation yet"
    if operation.get("state") != "Succeeded":
        return f"last operation is {operation.get('state')}"
    return _is_outdated(annotations.get(TIMESTAMP), operation)


def _is_outdated(asked: str | None, operation: Raw) -> str | None:
    """Return why the last operation is older than the request; compares whole seconds."""
    if asked is None:
        return None
    try:
        wanted = parse_time(asked).replace(microsecond=0)
        outdated = wanted > parse_time(operation["lastUpdateTime"])
    except ValueError as error:
        return f"a timestamp cannot be read: {error}"
    return "last operation is older than the request" if outdated else None


def not_migrated_because(obj: Raw) -> str | None:
    """Return why gardenlet does not consider the object migrated; None if it does."""
    operation = (obj.get("status") or {}).get("lastOperation") or {}
    done = (LastOperationType.MIGRATE, LastOperationState.SUCCEEDED)
    if (operation.get("type"), operation.get("state")) == done:
        return None
    if error := error_of(obj):
        return f"error: {error.get('description')}"
    said = f"{operation.get('type')} is {operation.get('state')}" if operation else "none yet"
    return f"last operation: {said}{progress_of(obj)}"
