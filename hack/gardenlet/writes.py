"""gardenlet's writes to an object, told from two versions of it by what they changed. Pure.

Who wrote follows from the fields, for both the real and the simulated gardenlet: extensions write
status and finalizers, and remove the operation annotation; gardenlet writes all else.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from actuator.cluster import FORCE_DELETION
from actuator.meta import Raw
from generic.controller.predicates import OPERATION, TIMESTAMP
from generic.kube.deleting import CONFIRM_DELETION

_TOLD = frozenset({OPERATION, CONFIRM_DELETION, FORCE_DELETION})
"""The annotations whose values belong to the contract; of others only the name is recorded."""
_COPIED = "ProviderStatus"
DELETE = "delete"
_REPEAT = f"annotate {TIMESTAMP}"


def is_repeated(step: str, steps: Sequence[str]) -> bool:
    """Whether a write repeats one of these: gardenlet retries a request with a new timestamp."""
    return step in steps or (step == _REPEAT and any(TIMESTAMP in step for step in steps))


def is_for_deletion(step: str) -> bool:
    """Whether a write requests a deletion, or prepares it."""
    confirms = CONFIRM_DELETION in step or FORCE_DELETION in step
    return step == DELETE or (confirms and step.startswith("annotate"))


def write_between(before: Raw | None, after: Raw) -> str:
    """Return what gardenlet wrote, in words; empty if the write was another one's.

    `before` is None for a new object.
    """
    if after["kind"] == "Namespace":
        return _of_namespace(before, after)
    if after["kind"] == "Cluster":
        return _of_cluster(before, after)
    if before is None:
        return _creation(after)
    return "; ".join(_changes(before, after))


def _creation(obj: Raw) -> str:
    copied = sorted(f"spec.{name}" for name in obj.get("spec") or {} if name.endswith(_COPIED))
    parts = [*sorted(map(_annotation, _annotations(obj).items())), *copied]
    return f"create with {', '.join(parts)}" if parts else "create"


def _changes(before: Raw, after: Raw) -> Iterator[str]:
    old = _annotations(before)
    new = _annotations(after)
    if changed := sorted(_annotation(item) for item in new.items() if item not in old.items()):
        yield f"annotate {', '.join(changed)}"
    if removed := sorted(old.keys() - new.keys() - {OPERATION}):
        yield f"remove annotation {', '.join(removed)}"
    if fields := _changed(before.get("spec"), after.get("spec")):
        yield f"change {', '.join(f'spec.{name}' for name in fields)}"
    if _is_state_written(before, after):
        yield "write status.state"
    if _is_deleted(after) and not _is_deleted(before):
        yield DELETE


def _is_state_written(before: Raw, after: Raw) -> bool:
    """Whether status.state or status.resources changed alone, as in a restoration."""
    changed = _changed(before.get("status"), after.get("status"))
    return bool(changed) and {"state", "resources"} >= set(changed)


def _of_namespace(before: Raw | None, after: Raw) -> str:
    if before is None:
        return "create"
    return DELETE if _is_deleted(after) and not _is_deleted(before) else ""


def _of_cluster(before: Raw | None, after: Raw) -> str:
    shown = _shown(after)
    if before is None:
        return f"create with {shown}"
    if _is_deleted(after) and not _is_deleted(before):
        return DELETE
    return f"show {shown}" if shown != _shown(before) else ""


def _shown(cluster: Raw) -> str:
    """Return the state of the shoot that its Cluster shows to extensions."""
    shoot = cluster["spec"]["shoot"]
    status = shoot.get("status") or {}
    operation = status.get("lastOperation") or {}
    parts = [f"lastOperation {operation.get('type')} {operation.get('state')}"]
    if status.get("hibernated"):
        parts.append("hibernated")
    if _is_deleted(shoot):
        parts.append("deletionTimestamp")
    if FORCE_DELETION in _annotations(shoot):
        parts.append(_annotation((FORCE_DELETION, _annotations(shoot)[FORCE_DELETION])))
    return ", ".join(parts)


def _changed(before: Any, after: Any) -> list[str]:
    """Return the names of the fields that differ, in order."""
    old = before or {}
    new = after or {}
    return sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))


def _annotations(obj: Raw) -> Mapping[str, str]:
    return obj.get("metadata", {}).get("annotations") or {}


def _annotation(item: tuple[str, str]) -> str:
    name, value = item
    return f"{name}={value}" if name in _TOLD else name


def _is_deleted(obj: Raw) -> bool:
    return "deletionTimestamp" in obj.get("metadata", {})
