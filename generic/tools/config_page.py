"""The documentation page of a configuration class: an example, and a table of all fields."""

import json
import re
from collections.abc import Iterator, Sequence

import yaml

from actuator.checking import constraints
from actuator.meta import Raw
from actuator.schema import content_of, json_schema
from generic.testing.minimal import example, type_of


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


def _rows(schema: Raw, path: str = "") -> Iterator[list[str]]:
    """Yield the cells of each field, with those of its parts below it."""
    for name, field in schema["properties"].items():
        default = f"`{json.dumps(field['default'])}`" if "default" in field else ""
        needed = "required" if name in schema.get("required", ()) else default
        limits = [
            *constraints(field),
            *(f"each: {constraint}" for constraint in constraints(content_of(field))),
        ]
        listed = re.sub(r"([\\`*_{}\[\]<>])", r"\\\1", ", ".join(limits))
        yield [f"`{path}{name}`", type_of(field), needed, listed, field.get("description", "")]
        where = f"{path}{name}"
        inner = field
        while content := content_of(inner):
            where = f"{where}{'[]' if 'items' in inner else '.*'}"
            inner = content
        if "properties" in inner:
            yield from _rows(inner, f"{where}.")
