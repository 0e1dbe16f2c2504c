"""Aggregates the results of several checks into the one condition that they share.

Pure. Statuses, reasons and messages are those of Gardener's health check library: gardenlet shows
them unchanged to the owner of a shoot.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime

from actuator.meta import Condition, parse_time
from generic.kube.errorinfo import describe
from generic.library.healthchecks.model import HealthResult, HealthStatus

_SUCCESSFUL = "HealthCheckSuccessful"
_UNSUCCESSFUL = "HealthCheckUnsuccessful"
_PROGRESSING = "HealthCheckProgressing"
_ERROR = "ConditionCheckError"

Finding = HealthResult | BaseException
"""The result of a check, or the error that prevented it."""


def hibernated(type: str) -> Condition:
    """Return the condition of a hibernated shoot, which is healthy."""
    return Condition(type=type, status="True", reason=_SUCCESSFUL, message="Shoot is hibernated")


def not_executed(type: str, why: str) -> Condition:
    """Return the condition if no check could be called."""
    message = f"unable to execute any health check: {why}"
    return Condition(type=type, status="Unknown", reason=_ERROR, message=message)


def condition(
    type: str, findings: Iterable[Finding], before: Condition | None, now: datetime
) -> Condition:
    """Return the condition, without its times. An error of a check outweighs all results."""
    results = []
    errors = []
    for finding in findings:
        if isinstance(finding, HealthResult):
            results.append(finding)
        else:
            errors.append(describe(finding))
    unhealthy = [result for result in results if result.status is HealthStatus.FALSE]
    progressing = [result for result in results if result.status is HealthStatus.PROGRESSING]
    said = _message(errors, unhealthy, progressing)
    if errors:
        text = f"failed to execute {len(errors)} health {_checks(len(errors))}: {said}"
        return Condition(type=type, status="Unknown", reason=_ERROR, message=text)
    bad = [*unhealthy, *progressing]
    if not bad:
        text = "All health checks successful"
        return Condition(type=type, status="True", reason=_SUCCESSFUL, message=text)
    patient = not unhealthy and _may_progress(progressing, before, now)
    return Condition(
        type=type,
        status="Progressing" if patient else "False",
        reason=_PROGRESSING if patient else _UNSUCCESSFUL,
        message=said,
        codes=list(dict.fromkeys(str(code) for result in bad for code in result.codes)),
    )


def _may_progress(results: Sequence[HealthResult], before: Condition | None, now: datetime) -> bool:
    """Whether Progressing is still accepted: the shortest threshold decides.

    The full time starts again after healthy; unhealthy lasts until all checks succeed. A start in
    the future is one of a clock that was wrong.
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
    except ValueError:  # an unknown start counts as now
        return True
    return abs((now - since).total_seconds()) <= min(thresholds)


def _message(
    errors: Sequence[str], unhealthy: Sequence[HealthResult], progressing: Sequence[HealthResult]
) -> str:
    """Return all details, with a heading for each group if there are several."""
    groups = {
        "Unable to execute": errors,
        "Failed": [result.detail for result in unhealthy],
        "Progressing": [result.detail for result in progressing],
    }
    filled = {heading: details for heading, details in groups.items() if details}
    if len(filled) == 1:
        return _listed(*filled.values())
    return " ".join(f"{h} {_checks(len(d))}: {_listed(d)}" for h, d in filled.items())


def _listed(details: Sequence[str]) -> str:
    sentences = [detail if detail.endswith(".") else f"{detail}." for detail in details]
    if len(sentences) == 1:
        return sentences[0]
    return " ".join(f"{number}) {text}" for number, text in enumerate(sentences, 1))


def _checks(count: int) -> str:
    return "check" if count == 1 else "checks"
