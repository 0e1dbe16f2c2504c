"""Sentences for the exceptions that Python raises when an author misuses the contract's objects."""

import re
from traceback import walk_tb

import attrs
from attrs.exceptions import FrozenInstanceError

from actuator.errors import ErrorCode
from actuator.interface import ProviderConfig
from actuator.meta import KeepsUnknownFields
from actuator.suggestions import did_you_mean

_NOT_SET = re.compile(r"'(\w{1,60})' object has no attribute '(\w{1,60})'")
_SHAPES = (KeepsUnknownFields, ProviderConfig)


def mistake(error: BaseException) -> str:
    """Return one sentence about a wrong field of an object, or an unknown ErrorCode; else ""."""
    if isinstance(error, FrozenInstanceError):
        *_, (frame, _) = walk_tb(error.__traceback__)
        owner, name = (frame.f_locals[key] for key in ("self", "name"))  # of attrs' __setattr__
        only = "an actuator changes only the fields of obj.status"
        return f"{type(owner).__name__}.{name} cannot be set; {only}"
    if not isinstance(error, AttributeError):
        return ""
    cls = type(error.obj)
    name = error.name or ""
    if error.obj is ErrorCode:
        return f"there is no ErrorCode {name}{did_you_mean(name, ErrorCode.__members__)}"
    if not name and (found := _NOT_SET.fullmatch(str(error))):  # the field was to be set
        cls = _shape(found[1])
        name = found[2]
    if not issubclass(cls, _SHAPES):
        return ""
    return f"{cls.__name__} has no field {name}{did_you_mean(name, attrs.fields_dict(cls))}"


def _shape(name: str) -> type:
    """Return the class of the contract, or of an author's kind, with this name."""
    waiting: list[type] = [*_SHAPES]
    for cls in waiting:
        if cls.__name__ == name:
            return cls
        waiting += cls.__subclasses__()
    return object
