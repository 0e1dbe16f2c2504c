"""The scenarios of `actuator drill`: the procedure of each, and what it needs of a rehearsal.

The failures that a rehearsal describes, and gardenlet's flows before a deletion (`--path`), are
scenarios as well. Not here: crash tests of single calls, which `explorer` selects.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import attrs

from generic.testing.drill.breaks import MIGRATION_BREAKS
from generic.testing.drill.evidence import Evidence
from generic.testing.drill.judge import WEBHOOKS_DOWN, rules_of
from generic.testing.drill.migration.rules import MigrationEvidence
from generic.testing.drill.migration.run import SCENARIO as MIGRATION
from generic.testing.drill.migration.run import migrate
from generic.testing.drill.paths import PATHS, PathRun
from generic.testing.drill.run import DrillRun, drill
from generic.testing.drill.settings import DrillSettings, Watcher
from generic.testing.drill.takeover import SCENARIO as TAKE_OVER
from generic.testing.drill.takeover import TakeOver
from generic.testing.rehearsal import CombinedRehearsal
from generic.testing.shootapi import require_servers


@attrs.frozen(kw_only=True)
class Scenario:
    """The procedure and the needs of one drill."""

    name: str
    """A failure of the outside world that the rehearsal describes, or one of OWN."""
    path: str = ""
    """gardenlet's flows before the deletion, a name of PATHS; "": none."""
    course: Callable[..., DrillRun] | None = DrillRun
    """Makes the procedure; None: shoots migrate between two seeds, whose managers are killed."""
    lacks: Callable[[CombinedRehearsal], str] = lambda _rehearsal: ""
    """Returns why a rehearsal cannot run it, or ""."""
    patience: float = 90.0
    """Seconds for each phase."""
    patience_if_broken: float = 6.0
    """The same if a rule is violated on purpose, so that most phases do not end."""

    @property
    def breakable(self) -> Sequence[str]:
        """The rules that `--break` can violate."""
        if self.course is None:
            return [*MIGRATION_BREAKS]
        return [*rules_of(self.path, self.name), "report"]

    def run(
        self, settings: DrillSettings, rehearsal: CombinedRehearsal, watcher: Watcher
    ) -> Evidence | MigrationEvidence:
        """Run a drill. Raises ActuatorError or ApiError if it could not run."""
        if rehearsal.with_shoot_api:
            require_servers(settings.shoots)
        if self.course is None:
            return migrate(settings, rehearsal, watcher)
        return drill(settings, rehearsal, watcher, self.course)


def _webhooks_down(*given: Any) -> DrillRun:
    from generic.testing.drill.webhooksdown import WebhooksDown  # no other scenario needs a server

    return WebhooksDown(*given)


def _no_take_over(rehearsal: CombinedRehearsal) -> str:
    missing = "it has no ManagedResources of a Go extension (takes_over)"
    return "" if rehearsal.takes_over else missing


def _no_migration(rehearsal: CombinedRehearsal) -> str:
    return "its kinds do not migrate (never_migrates)" if rehearsal.never_migrates else ""


def _no_other_seed(rehearsal: CombinedRehearsal) -> str:
    missing = "other processes cannot use its outside world (share, attach)"
    return _no_migration(rehearsal) or ("" if rehearsal.is_shared else missing)


OWN: Mapping[str, Scenario] = {
    item.name: item
    for item in (
        Scenario(name=TAKE_OVER, course=TakeOver, lacks=_no_take_over),
        Scenario(
            name=MIGRATION,
            course=None,
            lacks=_no_other_seed,
            patience=120.0,
            patience_if_broken=15.0,
        ),
        Scenario(name=WEBHOOKS_DOWN, course=_webhooks_down),
    )
}
"""The scenarios that need no description in a rehearsal."""


def scenario_of(name: str, path: str = "") -> Scenario:
    """Return the scenario of this name; with a path, gardenlet's flows with this failure."""
    if not path:
        return OWN.get(name) or Scenario(name=name)
    scenario = Scenario(name=name, path=path, course=PathRun)
    moves = "migrat" in PATHS[path]
    return attrs.evolve(scenario, lacks=_no_migration) if moves else scenario


def supported(rehearsal: CombinedRehearsal) -> list[str]:
    """Return the names of OWN that the rehearsal can run."""
    return [name for name, scenario in OWN.items() if not scenario.lacks(rehearsal)]


def default_scenario(known: Collection[str]) -> str:
    """Return the usual one of these scenarios, else the first, or "" without any."""
    usual = "credentials-revoked"
    return usual if usual in known else next(iter(known), "")


def refusal(rehearsal: CombinedRehearsal, scenario: Scenario) -> str:
    """Return why the rehearsal does not have or cannot run the scenario, or ""."""
    if reason := scenario.lacks(rehearsal):
        what = f"path {scenario.path}" if scenario.path else scenario.name
        return f"{rehearsal.title} cannot run {what}: {reason}"
    known = [*rehearsal.scenarios, *([] if scenario.path else supported(rehearsal))]
    if scenario.name in known:
        return ""
    return f"{rehearsal.title} has no scenario {scenario.name!r}; set one of: {', '.join(known)}"
