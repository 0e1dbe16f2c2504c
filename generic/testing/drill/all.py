"""Many drills: of a rehearsal, each scenario with each trouble; of many seeds, each scenario.

Not here: the scenarios (`scenarios`), the index of all rounds (`index`), the seeds (`seedlist`).
"""

import re
from collections.abc import Sequence
from pathlib import Path

import attrs

from generic.kube.canonical import digest
from generic.testing.drill.judge import Finding
from generic.testing.drill.migration.run import SCENARIO as MIGRATION
from generic.testing.drill.report import own_name
from generic.testing.drill.scenarios import supported
from generic.testing.drill.settings import DrillSettings
from generic.testing.drill.trouble import CALM, TROUBLES, Trouble
from generic.testing.rehearsal import CombinedRehearsal

NOT_BEGUN = "not begun"
INTERRUPTED = "interrupted"


@attrs.frozen
class Round:
    """One drill of many."""

    scenario: str
    trouble: Trouble = CALM
    seed: str = ""
    """The context of an existing seed; "": an embedded cluster."""

    @property
    def injected(self) -> str:
        """The additional faults, for people."""
        if self.scenario == MIGRATION:
            return "managers killed"
        return "nothing more" if self.trouble is CALM else self.trouble.name

    @property
    def title(self) -> str:
        """The round, for people."""
        return f"{self.seed or self.scenario}, {self.scenario if self.seed else self.injected}"

    @property
    def folder(self) -> Path:
        """The folder of its report, relative to the common one."""
        if self.seed:
            return Path(_folder_name(self.seed), self.scenario)
        return Path(self.scenario, "" if self.scenario == MIGRATION else self.trouble.name)

    def settings(self, given: DrillSettings) -> DrillSettings:
        """Return the common settings, adapted to this round."""
        context = self.seed or None
        return attrs.evolve(given, scenario=self.scenario, trouble=self.trouble, context=context)


@attrs.frozen(kw_only=True)
class RoundResult:
    """The result of a round; `problem` is the reason if it has no verdict or no report."""

    round: Round
    findings: Sequence[Finding] = ()
    problem: str = ""
    drill: str = ""
    """The id of its drill; "": it has no report."""
    identity: str = ""
    """Of the existing seed; "": an embedded cluster, or a seed that could not be asked."""
    started: str = ""
    """RFC 3339; "": it has not begun."""
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
        if self.broken:
            return "BROKEN"
        if self.problem in (NOT_BEGUN, INTERRUPTED):
            return "not run"
        return "could not check" if self.problem else "holds"

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
    return [*found, *(Round(name) for name in supported(rehearsal))]


def _folder_name(context: str) -> str:
    """Return the name of a context as that of a folder, with a hash if it had to be changed."""
    name = re.sub(r"^\W|[^\w.-]", "_", context, flags=re.ASCII)[:100]
    return name if name == context else f"{name}-{digest(context)[:8]}"
