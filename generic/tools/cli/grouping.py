"""Tables of records that count them by fields: the option `--by`.

A field is a fact of an Orphan or ForceDeletionRecord. Not here: reading and selecting records.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, TypeVar

import attrs
import click

from actuator.meta import Object, Raw
from generic.manager.orphans.ledger import closed_by
from generic.reconciler.origin import DeletionOrigin
from generic.tools.cli.load import print_list

_VERSION = 1
"""Version of the JSON format: increased when a field is removed or changes its meaning."""
R = TypeVar("R", bound=Object)
Fields = Mapping[str, Callable[[Any], str]]
"""The fields of a kind of records, by name."""


def _of_origin(name: str) -> Callable[[Any], str]:
    return lambda item: str(getattr(item.spec.object.origin, name))


_COMMON: Fields = {
    "name": attrgetter("metadata.name"),
    "kind": attrgetter("spec.object.kind"),
    "type": attrgetter("spec.object.type"),
    "reason": attrgetter("spec.reason"),
    "extension": lambda item: item.spec.object.origin.extension_version.partition(" ")[0],
    **{
        field.name.replace("_", "-"): _of_origin(field.name)
        for field in attrs.fields(DeletionOrigin)
        if field.name != "extra"  # fields of a later version
    },
}
FORCED: Fields = {
    **_COMMON,
    "finished": attrgetter("spec.finished_at"),
    "outcome": attrgetter("spec.outcome"),
}
REMAINING: Fields = {
    **_COMMON,
    "resource-type": attrgetter("spec.resource_type"),
    "id": attrgetter("spec.id"),
    "state": attrgetter("state.value"),
    "closed-by": closed_by,
    "note": attrgetter("status.note"),
}


def by_option(fields: Fields, text: str) -> Callable[[Any], Any]:
    """Return the option `--by`, which can be repeated."""
    choice = click.Choice(sorted(fields))
    return click.option("--by", multiple=True, type=choice, metavar="FIELD", help=text)


def print_groups(
    output: str,
    items: Sequence[R],
    fields: Fields,
    by: Sequence[str],
    count: Callable[[Sequence[R]], Raw],
    none: str,
) -> None:
    """Print for each group of equal fields the fields and the counts, sorted by the fields."""
    found: dict[tuple[str, ...], list[R]] = {}
    for item in items:
        found.setdefault(tuple(fields[name](item) for name in by), []).append(item)
    rows = [
        {**dict(zip(by, key, strict=True)), **count(members)}
        for key, members in sorted(found.items(), key=lambda pair: pair[0])
    ]
    data = {"version": _VERSION, "groups": rows}
    names = [item.metadata.name for item in items]
    print_list(output, data, names, partial(row_table, rows), none)


def row_table(rows: Sequence[Raw]) -> str:
    """Return rows of equal fields as aligned columns."""
    from generic.tools.cli.screen import columns

    head = [name.replace("-", " ").upper() for name in rows[0]]
    return columns(head, [[str(value) for value in row.values()] for row in rows])
