"""The table at the end of `actuator drill --all`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from generic.testing.drill.all import Held

__all__ = ["show_rounds"]


def show_rounds(held: Sequence[Held], output: Path) -> None:
    """Prints a line for each round, and where the reports are."""
    from rich.table import Table

    from generic.tools.cli.screen import Screen, verdict

    table = Table(title="All rounds", title_justify="left")
    for column in ("scenario", "injected", "verdict"):
        table.add_column(column, overflow="fold")
    table.add_column("seconds", justify="right")
    for one in held:
        answer = verdict(not one.broken, "; ".join(one.broken))
        table.add_row(one.round.scenario, one.round.injected, answer, f"{one.seconds:.1f}")
    console = Screen()
    console.print(table)
    holding = sum(not one.broken for one in held)
    console.print(f"{holding} of {len(held)} hold; reports are in {output}")
