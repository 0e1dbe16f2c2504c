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


def write_status(status: DefaultStatus, record: Any) -> None:
    """Store the record in the object. Raises TypeError unless it has an apiVersion and a kind.

    Fields of the stored record that its class does not have stay: after a rollback they are of a
    later version, which needs them.
    """
    encoded = encode(record)
    if not encoded.keys() >= _IDENTITY:
        name = type(record).__name__
        raise TypeError(
            f"{name}: give api_version and kind defaults; readers of a status need both"
        )
    stored = _stored(status) or {}
    if all(stored.get(name) == encoded[name] for name in _IDENTITY):
        known = {wire_name(field) for field in attrs.fields(type(record))}
        encoded = {k: v for k, v in stored.items() if k not in known} | encoded
    status.provider_status = encoded
    if status.OWNS_STATE:
        status.state = deepcopy(encoded)


def _stored(status: DefaultStatus) -> Raw | None:
    return status.provider_status or (status.state if status.OWNS_STATE else None)
