"""providerStatus: an extension's record of external resources, an attrs class of its own.

It is also stored in status.state: other objects of a shoot read providerStatus, control plane
migration transfers state to the next seed. The state of a Worker belongs to gardenlet. No record
means that no resource was ever requested.
"""

from copy import deepcopy
from typing import Any, TypeVar

import attrs

from actuator.codec import decode, encode
from actuator.errors import ActuatorError, DecodeError
from actuator.meta import DefaultStatus, Raw, wire_name

S = TypeVar("S")
_IDENTITY = {"apiVersion", "kind"}


def read_status(cls: type[S], status: DefaultStatus, unreadable: S | None = None) -> S | None:
    """Return the stored record; None if there is none.

    Of another record returns `unreadable`, or raises ActuatorError if that is None.
    """
    stored = _stored(status)
    if stored is None:
        return None
    try:
        return decode(cls, stored)
    except DecodeError as error:
        if unreadable is not None:
            return unreadable
        raise ActuatorError(
            f"status.providerStatus, or status.state, is no {cls.__name__}: {error}"
        ) from error


def write_status(status: DefaultStatus, record: Any, *, state: bool = True) -> None:
    """Store the record in the object. Raises TypeError unless it has an apiVersion and a kind.

    With `state` false only in providerStatus: status.state has a content of its own.

    Fields of the stored record that its class, or the class of a part, does not have stay: after
    a rollback they are of a later version, which needs them. Parts in lists are replaced.
    """
    encoded = encode(record)
    if not (attrs.has(type(record)) and encoded.keys() >= _IDENTITY):
        name = type(record).__name__
        raise TypeError(
            f"{name}: define an attrs class with defaults of api_version and kind; readers of a "
            "status need both"
        )
    stored = (_stored(status) if state else status.provider_status) or {}
    if all(stored.get(name) == encoded[name] for name in _IDENTITY):
        encoded = _merged(stored, encoded, record)
    status.provider_status = encoded
    if state and status.OWNS_STATE:
        status.state = deepcopy(encoded)


def _merged(stored: Any, encoded: Any, record: Any) -> Any:
    """Return the encoded record, with the stored fields that its class does not have."""
    if not (isinstance(stored, dict) and attrs.has(type(record))):
        return encoded
    parts = {wire_name(field): getattr(record, field.name) for field in attrs.fields(type(record))}
    later = {name: value for name, value in stored.items() if name not in parts}
    return later | {k: _merged(stored.get(k), v, parts[k]) for k, v in encoded.items()}


def _stored(status: DefaultStatus) -> Raw | None:
    return status.provider_status or (status.state if status.OWNS_STATE else None)
