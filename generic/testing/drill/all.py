"""All drills of a rehearsal: its scenarios, each with each trouble.

Not here: the execution of a round (`run`) or of a migration (`migration.run`), their index.
"""

from collections.abc import Collection, Sequence
from pathlib import Path

import attrs

from generic.testing.drill import takeover
from generic.testing.drill.judge import WEBHOOKS_DOWN, Finding
from generic.testing.drill.migration.run import SCENARIO
from generic.testing.drill.paths import PATHS
from generic.testing.drill.report import own_name
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
        """The additional faults, for people."""
        if self.scenario == SCENARIO:
            return "managers killed"
        return "nothing more" if self.trouble is CALM else self.trouble.name

    @property
    def folder(self) -> Path:
        """The folder of its report, relative to the common one."""
        return Path(self.scenario, "" if self.scenario == SCENARIO else self.trouble.name)

    def settings(self, given: Settings) -> Settings:
        """Return the common settings, adapted to this round."""
        return attrs.evolve(given, scenario=self.scenario, trouble=self.trouble)


@attrs.frozen(kw_only=True)
class Held:
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
        return [f"{one.rule}: {one.problems[0]}" for one in self.findings if not one.holds]

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
    refused = unsupported(rehearsal)
    return [*found, *(Round(name, CALM) for name in OWN_SCENARIOS if name not in refused)]


OWN_SCENARIOS = (takeover.SCENARIO, SCENARIO, WEBHOOKS_DOWN)
"""The scenarios that need no description in a rehearsal."""


def unsupported(rehearsal: CombinedRehearsal) -> dict[str, str]:
    """Return which of OWN_SCENARIOS the rehearsal cannot run, each with the reason."""
    found = {}
    if not rehearsal.takes_over:
        found[takeover.SCENARIO] = "it has no ManagedResources of a Go extension (takes_over)"
    if rehearsal.never_migrates:
        found[SCENARIO] = "its kinds do not migrate (never_migrates)"
    elif not rehearsal.is_shared:
        found[SCENARIO] = "other processes cannot use its outside world (share, attach)"
    return found


def default_scenario(known: Collection[str]) -> str:
    """Return the usual one of these scenarios, else the first, or "" without any."""
    usual = "credentials-revoked"
    return usual if usual in known else next(iter(known), "")


def refusal(rehearsal: CombinedRehearsal, scenario: str, path: str | None = None) -> str:
    """Return why the rehearsal does not have or cannot run a scenario or path, or ""."""
    refused = unsupported(rehearsal)
    known = [*rehearsal.scenarios]
    if not path:
        known += [name for name in OWN_SCENARIOS if name not in refused]
        if reason := refused.get(scenario):
            return f"{rehearsal.title} cannot run {scenario}: {reason}"
    elif rehearsal.never_migrates and "migrat" in PATHS[path]:
        return f"{rehearsal.title} cannot run path {path}: {refused[SCENARIO]}"
    if scenario in known:
        return ""
    return f"{rehearsal.title} has no scenario {scenario!r}; set one of: {', '.join(known)}"
