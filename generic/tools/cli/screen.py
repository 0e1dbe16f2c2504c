"""Tables, progress and ages in the output of commands, for people. Needs rich."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Any

from rich.console import Console, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from actuator.meta import parse_time
from generic.kube.printable import printable

_UNITS = ((1, "s", 120), (60, "m", 7200), (3600, "h", 172_800))
"""Seconds in a unit, and below how many it is used: as kubectl writes ages."""


class Screen(Console):
    """A console that shows text as it is: no markup, and no control characters."""

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **options)

    def render(self, renderable: RenderableType, options: Any = None) -> Iterable[Segment]:
        """See Console; all text comes through here, that inside tables included."""
        if isinstance(renderable, (str, Text)):
            renderable = Text(renderable) if isinstance(renderable, str) else renderable.copy()
            renderable.plain = printable(renderable.plain, keep="\n")
        return super().render(renderable, options)


def new_table(*columns: str, title: str | None = None, whole: Collection[str] = ()) -> Table:
    """A table whose long cells are folded, but for those of the columns in `whole`."""
    table = Table(title=title, title_justify="left", title_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold", no_wrap=column in whole)
    return table


def verdict(holds: bool, why: str = "") -> Text:
    """Whether a rule holds, and why it does not."""
    return Text("holds", "green") if holds else Text.assemble(("BROKEN", "red"), f" {why}")


def age(seconds: float) -> str:
    """So many seconds: 90s, 5m, 3h, 2d; never below 0."""
    whole = max(int(seconds), 0)
    for size, unit, below in _UNITS:
        if whole < below:
            return f"{whole // size}{unit}"
    return f"{whole // 86_400}d"


def since(timestamp: str, now: datetime) -> str:
    """How long ago a Kubernetes timestamp was; "?" for a text that is none."""
    try:
        return age((now - parse_time(timestamp)).total_seconds())
    except ValueError:
        return "?"
