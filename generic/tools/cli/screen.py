"""Tables, progress and ages in the output of commands, for people. Needs rich."""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Any

from rich.console import Console, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from actuator.meta import parse_time
from generic.kube.printable import printable
from generic.tools.cli.statuses import drop_output

_UNITS = ((1, "s", 120), (60, "m", 7200), (3600, "h", 172_800))
"""Seconds in a unit, its suffix, and the limit of its use in seconds, as in kubectl."""


class Screen(Console):
    """A console that prints plain text: no markup, and no control characters."""

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **options)

    def on_broken_pipe(self) -> None:
        """See Console, which ends the process with status 1: a drill must clean up, and go on."""
        drop_output()
        raise BrokenPipeError

    def render(self, renderable: RenderableType, options: Any = None) -> Iterable[Segment]:
        """See Console; all text passes here, including text in tables."""
        if isinstance(renderable, (str, Text)):
            renderable = Text(renderable) if isinstance(renderable, str) else renderable.copy()
            renderable.plain = printable(renderable.plain, keep="\n")
        return super().render(renderable, options)


def new_table(*columns: str, title: str | None = None, whole: Collection[str] = ()) -> Table:
    """Return a table that folds long cells, except in the columns of `whole`."""
    table = Table(title=title, title_justify="left", title_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold", no_wrap=column in whole)
    return table


def columns(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return aligned columns with one line for each row, as kubectl prints them."""
    table = [tuple(printable(cell) or "-" for cell in row) for row in (head, *rows)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    padded = (
        [f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)] for row in table
    )
    return "\n".join("   ".join(row).rstrip() for row in padded)


def verdict(holds: bool, why: str = "", word: str = "BROKEN") -> Text:
    """Return the colored result of a rule; if it does not hold, `word` and the reason."""
    return Text("holds", "green") if holds else Text.assemble((word, "red"), f" {why}")


def age(seconds: float) -> str:
    """Format seconds as an age: 90s, 5m, 3h, 2d; never below 0."""
    whole = max(int(seconds), 0)
    for size, unit, below in _UNITS:
        if whole < below:
            return f"{whole // size}{unit}"
    return f"{whole // 86_400}d"


def since(timestamp: str, now: datetime) -> str:
    """Format the age of a Kubernetes timestamp; "?" if it is not one."""
    try:
        return age((now - parse_time(timestamp)).total_seconds())
    except ValueError:
        return "?"
