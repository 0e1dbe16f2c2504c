"""The settings of a drill, and the watcher of its progress."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs

from actuator.meta import format_time
from generic.kube.clock import SystemClock
from generic.testing.drill.breaks import BREAKS, MIGRATION_BREAKS, Break
from generic.testing.drill.evidence import Life, Origin
from generic.testing.drill.names import Names
from generic.testing.drill.trouble import CALM, Trouble
from generic.testing.rehearsal import CombinedRehearsal

_NOT_REACHED = "The drill ended before it caused the failure."


@attrs.frozen(kw_only=True)
class DrillSettings:
    """Settings of one drill. `patience`: seconds that each phase may take."""

    shoots: int = 10
    scenario: str = "credentials-revoked"
    path: str = ""
    """Name and steps of gardenlet's flows, from `paths.PATHS`; "": a force deletion."""
    kubeconfig: Path | None = None
    context: str | None = None
    break_rule: str | None = None
    trouble: Trouble = CALM
    patience: float = 60.0
    random_seed: int | None = None
    """Random seed that decides when managers are killed; None: a random one."""
    origin: Origin = attrs.field(factory=Origin)

    @property
    def broken(self) -> Break:
        """The rule that is broken on purpose; an empty Break for none."""
        return {**MIGRATION_BREAKS, **BREAKS}.get(self.break_rule or "", Break())

    def facts(
        self, names: Names, rehearsal: CombinedRehearsal, text: str = _NOT_REACHED
    ) -> dict[str, Any]:
        """Return what DrillEvidence has at the start; `text` describes the caused failure."""
        return {
            "drill": names.id,
            "title": rehearsal.title,
            "scenario": self.scenario,
            "scenario_text": text,
            "broken": f"{self.break_rule}: {self.broken.text}" if self.break_rule else "",
            "started": format_time(SystemClock().now()),
            "shoots_only": rehearsal.shoots_only,
            "origin": self.origin,
        }


class Watcher:
    """Receives a drill's progress; this base class ignores it."""

    def say(self, text: str) -> None:
        """Receive a message about a new phase."""

    def count(self, what: str, done: int, total: int) -> None:
        """Receive the number of objects that have reached the state `what`."""

    def failing(self, lives: Sequence[Life]) -> None:
        """Receive objects that are not ready, with their errors."""

    def stuck(self, lives: Sequence[Life]) -> None:
        """Receive the objects that are stuck, with their errors."""
