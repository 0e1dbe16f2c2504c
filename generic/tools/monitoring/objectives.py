"""Service levels: the objectives, and their recordings and alerts by multi-window burn rates.

Windows and factors are those of the Google SRE Workbook, "Alerting on SLOs", for 30 days. To change
a service level, change `OBJECTIVES`. Not here: the metrics that they read.
"""

from collections.abc import Iterator, Sequence

import attrs

from actuator.meta import Raw
from generic.tools.monitoring.counting import by, increase

ERRORS = "seed:actuator_objective_errors:sum"
"""The share of bad events, by objective and window."""
BURN = "seed:actuator_objective_burn:sum"
"""1 while an objective burns, by severity."""
_DELETION = ("controller", "kind", "outcome")
_KIND = ("controller", "kind")
_DURATION = "actuator_deletion_duration_seconds"


@attrs.frozen
class Counted:
    """Events: a counter with its labels, or a recorded gauge, which is averaged over the window."""

    metric: str
    labels: Sequence[str] = ()
    where: str = ""

    def within(self, window: str) -> str:
        """Return the number of events in a window."""
        if self.metric.startswith("seed:"):
            return f"sum by ({by()}) (avg_over_time({self.metric}{{{self.where}}}[{window}]))"
        return increase(self.metric, self.labels, window, self.where)


@attrs.frozen
class Burn:
    """Both windows burn more than `factor` times the allowed share of errors."""

    long: str
    short: str
    factor: float
    severity: str


FAST = (Burn("1h", "5m", 14.4, "critical"), Burn("6h", "30m", 6.0, "critical"))
SLOW = (Burn("1d", "2h", 3.0, "warning"), Burn("3d", "6h", 1.0, "warning"))


@attrs.frozen
class Objective:
    """At least `target` of all events are good."""

    name: str
    alert: str
    text: str
    """The bad events, as the end of a sentence."""
    target: float
    total: Counted
    bad: Counted | None = None
    good: Counted | None = None
    """The good events; the others are bad."""
    least: int = 10
    """Events in the long window below which no alert fires: few events say nothing."""
    burns: Sequence[Burn] = (*FAST, *SLOW)

    @property
    def alerts(self) -> dict[str, str]:
        """The name of the alert for each severity.

        Names differ, because a usual inhibition of Alertmanager suppresses each warning while there
        is a critical alert of the same name: also that of another extension.
        """
        severities = dict.fromkeys(burn.severity for burn in self.burns)
        slow = self.alert.replace("Burn", "SlowBurn")
        return {item: slow if number else self.alert for number, item in enumerate(severities)}

    def share(self, window: str) -> str:
        """Return the share of bad events in a window."""
        total = self.total.within(window)
        is_long = any(burn.long == window for burn in self.burns)
        enough = f"({total} >= {self.least})" if is_long else f"({total} > 0)"
        if self.bad is not None:
            return f"{self.bad.within(window)} / {enough}"
        assert self.good is not None
        return f"1 - {self.good.within(window)} / {enough}"


OBJECTIVES = (
    Objective(
        name="deletion-success",
        alert="ActuatorDeletionSuccessBudgetBurn",
        text="of the deleted objects were forced",
        target=0.95,
        total=Counted(
            "actuator_deletions_total", _DELETION, 'outcome=~"deleted|force_deleted|orphaned"'
        ),
        bad=Counted("actuator_deletions_total", _DELETION, 'outcome=~"force_deleted|orphaned"'),
    ),
    Objective(
        name="deletion-duration",
        alert="ActuatorDeletionDurationBudgetBurn",
        text="of the deletions took longer than ten minutes",
        target=0.95,
        total=Counted(f"{_DURATION}_count", _DELETION),
        good=Counted(f"{_DURATION}_bucket", (*_DELETION, "le"), 'le=~"600(\\\\.0)?"'),
    ),
    Objective(
        name="force-deletion-budget",
        alert="ActuatorForceDeletionBudgetBurn",
        text="of the force deletions exceeded their time budget",
        target=0.95,
        total=Counted("actuator_force_deletion_duration_seconds_count", _KIND),
        bad=Counted("actuator_force_deletions_over_budget_total", _KIND),
        least=5,
    ),
    Objective(
        name="orphan-age",
        alert="ActuatorOrphanAgeBudgetBurn",
        text="of the open Orphans are older than 30 days",
        target=0.95,
        total=Counted("seed:actuator_open_orphans:sum"),
        bad=Counted("seed:actuator_open_orphans:sum", where='age="older"'),
        least=1,
        burns=SLOW,
    ),
)


def recordings(objectives: Sequence[Objective] = OBJECTIVES) -> Iterator[Raw]:
    """Yield the recordings: the share of bad events by window, then whether the objective burns."""
    for objective in objectives:
        windows = [window for burn in objective.burns for window in (burn.short, burn.long)]
        for window in dict.fromkeys(windows):
            labels = {"objective": objective.name, "window": window}
            yield {"record": ERRORS, "labels": labels, "expr": objective.share(window)}
        for severity in dict.fromkeys(burn.severity for burn in objective.burns):
            labels = {"objective": objective.name, "severity": severity}
            yield {"record": BURN, "labels": labels, "expr": _burns(objective, severity)}


def _burns(objective: Objective, severity: str) -> str:
    conditions = []
    for burn in objective.burns:
        if burn.severity == severity:
            most = f"{burn.factor * (1 - objective.target):.6g}"
            long, short = (
                f'{ERRORS}{{objective="{objective.name}", window="{window}"}} > {most}'
                for window in (burn.long, burn.short)
            )
            conditions.append(f"({long} and on ({by()}) {short})")
    return f"group by ({by()}) ({' or '.join(conditions)})"


def alerts(objectives: Sequence[Objective] = OBJECTIVES) -> Iterator[Raw]:
    """Yield the alerts of each objective: one for each severity, and only one of them fires.

    A slow burn is not reported for three days after a fast one: the cause is known.
    """
    for objective in objectives:
        first = next(iter(objective.alerts))
        for severity, name in objective.alerts.items():
            expr = _burning(objective, severity)
            if severity != first:
                fast = _burning(objective, first, "[3d]")
                expr = f"{expr} unless on ({by()}) max_over_time({fast}) > 0"
            yield {
                "alert": name,
                "expr": expr if " unless " in expr else f"{expr} > 0",
                "keep_firing_for": "1h",
                "labels": {"severity": severity},
                "annotations": {
                    "summary": f"More than {1 - objective.target:.0%} {objective.text}.",
                    "description": "The objective {{ $labels.objective }} of "
                    "{{ $labels.extension }}{{ with $labels.seed }} in seed {{ . }}{{ end }} is "
                    f"{objective.target:.0%} in 30 days. Its error budget is used up too early.",
                },
            }


def _burning(objective: Objective, severity: str, ranged: str = "") -> str:
    return f'{BURN}{{objective="{objective.name}", severity="{severity}"}}{ranged}'
