"""Act on several objects, so that the error of one does not stop the others."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from actuator.errors import ActuatorError, ApiError

__all__ = ["for_each"]

T = TypeVar("T")


def for_each(items: Iterable[T], act: Callable[[T], object]) -> None:
    """Call `act` for every item, then raise the first ActuatorError or ApiError, if any.

    Any other exception, such as Cancelled, ends it at once.
    """
    first: ActuatorError | ApiError | None = None
    for item in items:
        try:
            act(item)
        except (ActuatorError, ApiError) as error:
            first = first or error
    if first is not None:
        raise first
