"""All drills of a rehearsal: its scenarios, each with each trouble.

Not here: the scenarios (`scenarios`), the index of all rounds.
"""

from collections.abc import Sequence
from pathlib import Path

import attrs

from generic.testing.drill.judge import Finding
from generic.testing.drill.migration.run import SCENARIO as MIGRATION
from generic.testing.drill.report import own_name
from generic.testing.drill.scenarios import supported
from generic.testing.drill.settings import DrillSettings
from generic.testing.drill.trouble import CALM, TROUBLES, Trouble
from generic.testing.rehearsal import CombinedRehearsal


@attrs.frozen
class Round:
    """One drill of many."""

    scenario: str
    trouble: Trouble

    @property
    def injected(self) -> str:
        """The additional faults, for people."""
        if self.scenario == MIGRATION:
            return "managers killed"
        return "nothing more" if self.trouble is CALM else self.trouble.name

    @property
    def folder(self) -> Path:
        """The folder of its report, relative to the common one."""
        return Path(self.scenario, "" if self.scenario == MIGRATION else self.trouble.name)

    def settings(self, given: DrillSettings) -> DrillSettings:
        """Return the common settings, adapted to this round."""
        return attrs.evolve(given, scenario=self.scenario, trouble=self.trouble)


@attrs.frozen(kw_only=True)
class RoundResult:
    """The result of a round; `problem` is the reason if it has no verdict or no report."""

    round: Round
    findings: Sequence[Finding] = ()
    problem: str = ""
    drill: str = ""
    """The id of its drill; "": it has no report."""
    seconds: float = 0.0

    @property
    def broken(self) -> list[str]:
        """The violated rules, a line each."""
        return [
            f"{finding.rule}: {finding.problems[0]}"
            for finding in self.findings
            if not finding.holds
        ]

    @property
    def verdict(self) -> str:
        """Whether its rules hold, for people and machines."""
        return "BROKEN" if self.broken else "not run" if self.problem else "holds"

    @property
    def told(self) -> list[str]:
        """The problem and the violated rules, a line each."""
        return [self.problem, *self.broken] if self.problem else self.broken

    @property
    def report(self) -> Path | None:
        """Its page, relative to the common folder."""
        return own_name(self.round.folder / "report.html", self.drill) if self.drill else None


def rounds(rehearsal: CombinedRehearsal) -> list[Round]:
    """Return each scenario with each trouble, and take-over and migration if supported."""
    found = [Round(scenario, trouble) for scenario in rehearsal.scenarios for trouble in TROUBLES]
    return [*found, *(Round(name, CALM) for name in supported(rehearsal))]
