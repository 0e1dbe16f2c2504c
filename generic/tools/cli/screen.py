"""Tables and progress of commands, for people. Needs rich."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console, RenderableType
from rich.segment import Segment
from rich.text import Text

from generic.kube.printable import printable

__all__ = ["Screen", "verdict"]


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


def verdict(holds: bool, why: str = "") -> Text:
    """Whether a rule holds, and why it does not."""
    return Text("holds", "green") if holds else Text.assemble(("BROKEN", "red"), f" {why}")
