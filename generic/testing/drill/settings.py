"""What a drill is asked to do, and who hears of its progress."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import attrs

from generic.testing.drill.breaks import BREAKS, Break
from generic.testing.drill.evidence import Life
from generic.testing.drill.trouble import CALM, Trouble


@attrs.frozen(kw_only=True)
class Settings:
    """What is rehearsed, and where. `patience`: seconds that each phase may take."""

    shoots: int = 10
    scenario: str = "credentials-revoked"
    path: str = ""
    """Name and steps of gardenlet's flows, from `paths.PATHS`; "": a force deletion."""
    kubeconfig: Path | None = None
    context: str | None = None
    break_rule: str | None = None
    trouble: Trouble = CALM
    patience: float = 60.0
    dice: int | None = None
    """What decides when managers are killed; any number, if none is given."""

    @property
    def broken(self) -> Break:
        """What is broken on purpose, if anything."""
        return BREAKS[self.break_rule] if self.break_rule in BREAKS else Break(text="")


class Watcher:
    """Hears of a drill's progress; this one tells nobody."""

    def say(self, text: str) -> None:
        """Something happens."""

    def count(self, what: str, done: int, total: int) -> None:
        """So many of the objects have come so far."""

    def stuck(self, lives: Sequence[Life]) -> None:
        """These are stuck, for the reasons they show."""
