"""Dropped: the parts of a successful write that the API server did not store.

A CRD that is older than the program prunes the fields that it lacks (Kubernetes documentation,
"Extend the Kubernetes API with CustomResourceDefinitions", "Field pruning"), and a webhook can
change every value; the answer shows both. Defaults, and nulls that are removed, are no loss. Pure.
"""

from collections.abc import Iterator, Sequence

from actuator.errors import ActuatorError, ApiError, ErrorCode
from actuator.interface import Resource

CHANGED = " (changed)"
"""Follows the path of a field that is stored with another value."""
_MAX_NAMED = 8


class NotStored(ApiError, ActuatorError):
    """The API server accepted a write and did not store these fields."""

    def __init__(self, resource: Resource, paths: Sequence[str]) -> None:
        why = f"the CRD {resource} in this cluster does not know the field; install the CRDs"
        why += " of this version (actuator crds)"
        if all(path.endswith(CHANGED) for path in paths):
            why = f"the API server or a webhook for {resource} replaces the value; correct it"
        super().__init__(200, f"cannot store {', '.join(paths[:_MAX_NAMED])}: {why}")
        self.codes = (ErrorCode.ERR_CONFIGURATION_PROBLEM,)  # allows to force-delete the shoot


def require_stored(resource: Resource, sent: object, stored: object, path: str) -> None:
    """Raise NotStored unless `stored` has everything that was sent; `path` is that of both."""
    if paths := [*lost(sent, stored, path)]:
        raise NotStored(resource, paths)


def lost(sent: object, stored: object, path: str) -> Iterator[str]:
    """Yield the path of each part of `sent` that `stored` lacks."""
    if sent is None or sent == stored:
        return
    if isinstance(sent, dict) and isinstance(stored or {}, dict):
        for name, value in sent.items():
            if isinstance(stored, dict) and name in stored:
                yield from lost(value, stored[name], f"{path}.{name}")
            elif value is not None:
                yield f"{path}.{name}"
    elif isinstance(sent, list) and isinstance(stored, list) and len(sent) <= len(stored):
        for index, value in enumerate(sent):
            yield from lost(value, stored[index], f"{path}[{index}]")
    elif not isinstance(sent, str) or sent.encode(errors="replace").decode() != stored:
        yield path + CHANGED  # a request cannot contain a lone surrogate
