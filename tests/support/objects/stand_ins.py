"""Arguments in place of real ones, which mypy accepts for a parameter of any type."""

from typing import TYPE_CHECKING, Any

UNUSED: Any = None
"""For a parameter that the tested code does not use: to use it raises an error."""

if TYPE_CHECKING:
    StandIn = Any
else:
    StandIn = object
"""The base of a class that has only the attributes that the tested code uses."""
