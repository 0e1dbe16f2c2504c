"""The fields of JSON: paths and types, to compare one document with the fields of others.

`python -m tests.support.pages.fields FOLDER > tests/recorded/plutono_fields.txt` records those of
Gardener's dashboards, in `pkg/component/observability/plutono/dashboards` of its source.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from actuator.meta import Raw

_OPEN = ("aliasColors", "excludeByName", "indexByName", "renameByName")
"""Mappings whose keys are names of series or columns."""
_SAME = {"int": "number", "float": "number", "NoneType": "null"}
_ENUMERATIONS = (
    *("type", "format", "mode", "colorMode", "graphMode", "textMode", "orientation", "displayMode"),
    *("dataFormat", "colorScheme", "op", "value_type", "id", "nullPointMode", "renderer"),
)
"""Fields whose texts are those of an enumeration; not `id` of a panel, which is a number."""


def fields(board: Raw) -> Iterator[str]:
    """Yield `place path type` for each field of a dashboard; the place of a panel is its type."""
    for panel in board["panels"]:
        for inner in panel.get("panels") or ():
            yield from _panel(inner)
        yield from _panel({**panel, "panels": []})
    for variable in board["templating"]["list"]:
        yield from _below(variable, f"variable:{variable['type']}")
    for mark in board["annotations"]["list"]:
        yield from _below(mark, "annotation")
    for link in board.get("links") or ():
        yield from _below(link, "link")
    rest = {key: value for key, value in board.items() if key not in _LISTS}
    yield from _below(rest, "board")


_LISTS = ("panels", "templating", "annotations", "links")
_COMMON = ("links", "targets", "fieldConfig", "gridPos", "interval", "transformations", "title")
"""Fields of a panel that have the same form in all panels."""
_RECORDED = ("graph", "stat", "bargauge", "table", "heatmap", "row")


def _panel(panel: Raw) -> Iterator[str]:
    own = {key: value for key, value in panel.items() if key not in _COMMON}
    yield from _below(own, f"panel:{panel['type']}")
    for key in panel.keys() & set(_COMMON):
        yield from _below(panel[key], f"panel.{key}")


def _below(node: Any, path: str) -> Iterator[str]:
    if isinstance(node, dict):
        yield f"{path} object"
        if path.rpartition(".")[2] not in _OPEN:
            for key, value in node.items():
                yield from _below(value, f"{path}.{key}")
    elif isinstance(node, list):
        yield f"{path} list"
        for item in node:
            yield from _below(item, f"{path}[]")
    else:
        name = type(node).__name__
        kind = _SAME.get(name, name)
        listed = isinstance(node, str) and path.rpartition(".")[2] in _ENUMERATIONS
        yield f"{path} {kind}{f'={node}' if listed else ''}"


def main() -> None:
    """Print the fields of all dashboards below a folder that have a present schema."""
    boards = [json.loads(path.read_text()) for path in Path(sys.argv[1]).rglob("*.json")]
    recent = [board for board in boards if board.get("schemaVersion", 0) >= 25]
    found = {field for board in recent for field in fields(board)}
    found = {field for field in found if "scopedVars" not in field}
    own = {field for field in found if not field.startswith("panel:") or _is_used(field)}
    print("\n".join(sorted(own)))


def _is_used(field: str) -> bool:
    return field.removeprefix("panel:").partition(".")[0].split()[0] in _RECORDED


if __name__ == "__main__":
    main()
