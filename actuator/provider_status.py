"""providerStatus: an extension's record of external resources, an attrs class of its own.

It is also stored in status.state: other objects of a shoot read providerStatus, control plane
migration transfers state to the next seed. No record means that no resource was ever requested.
"""

from typing import TypeVar

from actuator.codec import decode, encode
from actuator.errors import ActuatorError, DecodeError
from actuator.meta import DefaultStatus

S = TypeVar("S")


def read_status(cls: type[S], status: DefaultStatus, unreadable: S | None = None) -> S | None:
    """Return the stored record; None if there is none.

    Of another record returns `unreadable`, or raises ActuatorError if that is None.
    """
    stored = status.provider_status or status.state
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


def write_status(status: DefaultStatus, record: object) -> None:
    """Store the record in the object. Raises TypeError unless it has an apiVersion and a kind."""
    status.provider_status = encode(record)
    if not {"apiVersion", "kind"} <= status.provider_status.keys():
        name = type(record).__name__
        raise TypeError(
            f"{name}: give api_version and kind defaults; readers of a status need both"
        )
    status.state = encode(record)
