"""What the results of several checks mean for the one condition that they share.

Pure. Statuses, reasons and messages are those of Gardener's health check library: gardenlet shows
them to the owner of a shoot as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

import attrs

from actuator.meta import Condition, parse_time
from generic.kube.errorinfo import describe
from generic.library.healthchecks.model import HealthResult, HealthStatus

_SUCCESSFUL = "HealthCheckSuccessful"
_UNSUCCESSFUL = "HealthCheckUnsuccessful"
_PROGRESSING = "HealthCheckProgressing"
_ERROR = "ConditionCheckError"

Finding = HealthResult | BaseException
"""What a check found, or why it could not look."""


def hibernated(type: str) -> Condition:
    """Nothing runs, and nothing has to."""
    return Condition(type=type, status="True", reason=_SUCCESSFUL, message="Shoot is hibernated")


def not_executed(type: str, why: str) -> Condition:
    """No check could be called at all."""
    message = f"unable to execute any health check: {why}"
    return Condition(type=type, status="Unknown", reason=_ERROR, message=message)


def condition(
    type: str, findings: Iterable[Finding], before: Condition | None, now: datetime
) -> Condition:
    """The condition, without its times. What could not be checked outweighs all that was."""
    sorted_out = _SortedOut.of(findings)
    if sorted_out.errors:
        count = len(sorted_out.errors)
        text = f"failed to execute {count} health {_checks(count)}: {sorted_out.message()}"
        return Condition(type=type, status="Unknown", reason=_ERROR, message=text)
    bad = [*sorted_out.unhealthy, *sorted_out.progressing]
    if not bad:
        text = "All health checks successful"
        return Condition(type=type, status="True", reason=_SUCCESSFUL, message=text)
    patient = not sorted_out.unhealthy and _may_progress(sorted_out.progressing, before, now)
    return Condition(
        type=type,
        status="Progressing" if patient else "False",
        reason=_PROGRESSING if patient else _UNSUCCESSFUL,
        message=sorted_out.message(),
        codes=list(dict.fromkeys(str(code) for result in bad for code in result.codes)),
    )


def _may_progress(results: Sequence[HealthResult], before: Condition | None, now: datetime) -> bool:
    """Whether Progressing still counts as that: the shortest threshold decides.

    Who was healthy gets the whole time again; who was unhealthy stays so until all is well.
    """
    thresholds = [r.progressing_threshold for r in results if r.progressing_threshold is not None]
    if not thresholds:
        return False
    if before is None or before.status == "True":
        return True
    if before.status == "False":
        return False
    try:
        since = parse_time(before.last_transition_time or "")
    except ValueError:  # nobody knows since when, so it is from now on
        return True
    return (now - since).total_seconds() <= min(thresholds)


@attrs.frozen(kw_only=True)
class _SortedOut:
    """Findings by what they say."""

    errors: list[str]
    unhealthy: list[HealthResult]
    progressing: list[HealthResult]

    @classmethod
    def of(cls, findings: Iterable[Finding]) -> _SortedOut:
        errors: list[str] = []
        results: dict[HealthStatus, list[HealthResult]] = {status: [] for status in HealthStatus}
        for finding in findings:
            if isinstance(finding, HealthResult):
                results[finding.status].append(finding)
            else:
                errors.append(describe(finding))
        return cls(
            errors=errors,
            unhealthy=results[HealthStatus.FALSE],
            progressing=results[HealthStatus.PROGRESSING],
        )

    def message(self) -> str:
        """All details; with a heading for each group where there are several."""
        groups = [
            ("Unable to execute", self.errors),
            ("Failed", [result.detail for result in self.unhealthy]),
            ("Progressing", [result.detail for result in self.progressing]),
        ]
        filled = [(heading, details) for heading, details in groups if details]
        if len(filled) == 1:
            return _listed(filled[0][1])
        return " ".join(f"{h} {_checks(len(d))}: {_listed(d)}" for h, d in filled)


def _listed(details: Sequence[str]) -> str:
    sentences = [detail if detail.endswith(".") else f"{detail}." for detail in details]
    if len(sentences) == 1:
        return sentences[0]
    return " ".join(f"{number}) {text}" for number, text in enumerate(sentences, 1))


def _checks(count: int) -> str:
    return "check" if count == 1 else "checks"
