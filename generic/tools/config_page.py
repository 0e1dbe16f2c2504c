"""The documentation page of a configuration class: an example, and a table of all fields."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import yaml

from actuator.checking import constraints
from actuator.meta import Raw
from actuator.schema import json_schema


def config_page(cls: type, places: Sequence[str] = ()) -> str:
    """Return the page in Markdown. `places` are where users write such a configuration."""
    schema = json_schema(cls)
    text = yaml.safe_dump(example(schema), sort_keys=False, allow_unicode=True)
    rows = [["field", "type", "default", "constraints", "description"], ["---"] * 5, *_rows(schema)]
    escaped = ([cell.replace("|", r"\|") for cell in row] for row in rows)
    table = "".join(f"| {' | '.join(row)} |\n" for row in escaped)
    found = "".join(f"- {place}\n" for place in places)
    parts = [f"# {schema['title']}\n", f"{schema['description']}\n", found, f"```yaml\n{text}```\n"]
    return "\n".join([*filter(None, parts), table])


def example(schema: Raw, *, required: bool = True) -> Any:
    """Return a value with all required fields, and those that have an example or a default.

    A required field without either gets its type in angle brackets; an optional value is None.
    """
    known = [schema[name] for name in ("example", "default") if name in schema]
    if known := known or schema.get("enum", [])[:1]:
        return known[0]
    if content := _content(schema):
        item = example(content, required=required)
        return item if item is None else [item] if "items" in schema else {"name": item}
    needed = schema.get("required", ())
    fields = schema.get("properties", {}).items()
    values = {name: example(field, required=name in needed) for name, field in fields}
    shown = {name: value for name, value in values.items() if value is not None}
    return shown or (f"<{_type(schema)}>" if required else None)


def _rows(schema: Raw, path: str = "") -> Iterator[list[str]]:
    """Yield the cells of each field, with those of its parts below it."""
    for name, field in schema["properties"].items():
        default = f"`{json.dumps(field['default'])}`" if "default" in field else ""
        needed = "required" if name in schema.get("required", ()) else default
        limits = [*constraints(field), *(f"each: {one}" for one in constraints(_content(field)))]
        listed = re.sub(r"([\\`*_{}\[\]<>])", r"\\\1", ", ".join(limits))
        yield [f"`{path}{name}`", _type(field), needed, listed, field.get("description", "")]
        where, inner = f"{path}{name}", field
        while content := _content(inner):
            where, inner = f"{where}{'[]' if 'items' in inner else '.*'}", content
        if "properties" in inner:
            yield from _rows(inner, f"{where}.")


def _type(schema: Raw) -> str:
    if content := _content(schema):
        return f"{'list' if 'items' in schema else 'map'} of {_type(content)}"
    return str(schema.get("type", "integer or string" if "anyOf" in schema else "any"))


def _content(schema: Raw) -> Raw:
    """Return the schema of the entries of a list or a map; otherwise {}."""
    return schema.get("items") or schema.get("additionalProperties") or {}
