"""Decoding for deletions and migrations, which may need only a part of an object.

A field of spec or status has a wrong type when, for example, a newer Gardener changed it. Such a
field blocks only an operation that reads it. A default value in its place would be wrong: a
deletion could miss existing resources.
"""

import json
from functools import lru_cache
from typing import Any, NoReturn, TypeVar

import attrs

from actuator.codec import decode, decode_json, read_json
from actuator.errors import DecodeError
from actuator.meta import Raw, wire_name

T = TypeVar("T")


class WrongField(DecodeError):
    """A field of spec or status that has a wrong type was used."""


def decode_tolerantly(cls: type[T], text: bytes) -> T:
    """Like `decode_json`, but a field of spec or status with a wrong type raises when it is read.

    Reading it raises WrongField; `encode` writes it back unchanged, unless it was set. Raises
    DecodeError for other problems, and ValueError for text that is not JSON.
    """
    try:
        return decode_json(cls, text)
    except DecodeError:
        data = read_json(text)
        if not (wrong := _remove_wrong(cls, data)):
            raise
    obj = decode_json(cls, json.dumps(data).encode())
    for part, fields in wrong.items():
        holder = getattr(obj, part)
        object.__setattr__(holder, "extra", {**holder.extra, **fields})
        hiding = _hiding(cls, part, type(holder), frozenset(fields))  # type: ignore[arg-type]
        object.__setattr__(holder, "__class__", hiding)
    return obj


def _remove_wrong(cls: type, data: Any) -> dict[str, Raw]:
    wrong: dict[str, Raw] = {}
    for part in ("spec", "status") if isinstance(data, dict) else ():
        fields: Any = data.get(part)
        for name in list(fields) if isinstance(fields, dict) else ():
            try:
                decode(cls, {part: {name: fields[name]}})
            except DecodeError:
                wrong.setdefault(part, {})[name] = fields.pop(name)
    return wrong


@lru_cache(maxsize=256)
def _hiding(cls: type, part: str, base: type, wrong: frozenset[str]) -> type:
    """Return a subclass of `base` whose given fields raise when read and are unknown to attrs."""
    if not wrong:
        return base

    def fail(obj: Any) -> NoReturn:
        try:
            decode(cls, {part: {name: obj.extra[name] for name in wrong}})
        except DecodeError as error:
            raise WrongField(f"{error}; correct the field or upgrade the extension") from None
        raise WrongField(f"{part}: invalid fields")

    def hide(name: str, wire: str) -> property:
        def replace(obj: Any, value: object) -> None:
            obj.extra = {key: kept for key, kept in obj.extra.items() if key != wire}
            obj.__class__ = _hiding(cls, part, base, wrong - {wire})
            setattr(obj, name, value)

        return property(fail, replace)

    fields = attrs.fields(base)
    hidden = {f.name: hide(f.name, wire_name(f)) for f in fields if wire_name(f) in wrong}
    shown = tuple(field for field in fields if field.name not in hidden)
    return type(base.__name__, (base,), {"__slots__": (), "__attrs_attrs__": shown, **hidden})
