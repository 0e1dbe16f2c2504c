"""Everything that a rehearsal can be drilled with: its scenarios, each with each trouble.

Only the list is here; a round is held by `run`, a migration by `migration.run`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import attrs

from generic.testing.drill import takeover
from generic.testing.drill.judge import Finding
from generic.testing.drill.migration.run import SCENARIO
from generic.testing.drill.settings import Settings
from generic.testing.drill.trouble import CALM, TROUBLES, Trouble
from generic.testing.rehearsal import CombinedRehearsal


@attrs.frozen
class Round:
    """One drill of many."""

    scenario: str
    trouble: Trouble

    @property
    def injected(self) -> str:
        """What goes wrong on top of the scenario, in a word or two."""
        if self.scenario == SCENARIO:
            return "managers killed"
        return "nothing more" if self.trouble is CALM else self.trouble.name

    @property
    def folder(self) -> Path:
        """Where its report goes, below the one for all."""
        return Path(self.scenario, "" if self.scenario == SCENARIO else self.trouble.name)

    def settings(self, given: Settings) -> Settings:
        """Those for all, for this round."""
        return attrs.evolve(given, scenario=self.scenario, trouble=self.trouble)


@attrs.frozen(kw_only=True)
class Held:
    """What came of a round; `problem` is why it could not be held at all."""

    round: Round
    findings: Sequence[Finding] = ()
    problem: str = ""
    seconds: float

    @property
    def broken(self) -> list[str]:
        """What does not hold, a line each."""
        told = [f"{one.rule}: {one.problems[0]}" for one in self.findings if not one.holds]
        return [self.problem, *told] if self.problem else told


def rounds(rehearsal: CombinedRehearsal) -> list[Round]:
    """Each scenario with each trouble; a take-over and a migration if the rehearsal supports them.

    A migration needs a shared outside.
    """
    found = [Round(scenario, trouble) for scenario in rehearsal.scenarios for trouble in TROUBLES]
    if rehearsal.takes_over:
        found.append(Round(takeover.SCENARIO, CALM))
    if rehearsal.is_shared and not rehearsal.never_migrates:
        found.append(Round(SCENARIO, CALM))
    return found
