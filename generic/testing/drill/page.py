"""The report of a force deletion as one page: verdict, rules, timeline, remaining resources.

The timeline is a bar for each object (`templates/timeline.html` draws them), and the same as a
table for readers who cannot distinguish or see the colours.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from typing import Any

from actuator.interface import ExternalResource
from actuator.meta import format_time, parse_time
from generic.testing.drill.evidence import Evidence, Life, by_error
from generic.testing.drill.html import render
from generic.testing.drill.judge import Finding, covers


def page(
    evidence: Evidence,
    findings: Sequence[Finding],
    template: str = "force-deletion",
    **more: Any,
) -> str:
    """Return the whole page; `more` are values of another template, or replace those of this."""
    lives = summed_up(evidence.lives)
    strips = Counter(strip.text.removeprefix("Stripped ") for strip in evidence.strips)
    values: dict[str, Any] = {
        "what": _what(evidence),
        "evidence": evidence,
        "verdict": _verdict(evidence),
        "timeline": drawn(lives),
        "moments": rows(lives),
        "reasons": _reasons(evidence),
        "strips": strips.most_common(),
        "webhooks": list(refusals(evidence)),
        "left": _left(evidence),
        "acts": [(_clock(evidence, act.at), seconds(act.at), act.text) for act in evidence.acts],
        "facts": {
            **({"Path": evidence.path} if evidence.path else {}),
            **({"Cluster": evidence.target} if evidence.target else {}),
            **({"Manager": evidence.manager} if evidence.manager else {}),
            "Outcomes": _pairs(
                {**evidence.counted, "removed externally": evidence.removed_externally}
            ),
            "The manager's requests": _pairs(evidence.requests),
            "Gardenlet's timeouts and thresholds": scale_text(evidence),
        },
    }
    return render(template, findings, **{**values, **more})


def _what(evidence: Evidence) -> str:
    path = evidence.path.partition(":")[0]
    return f"Drill of the path {path}" if path else f"Drill of the scenario {evidence.scenario}"


def _clock(evidence: Evidence, at: float) -> str:
    """Return the time of day of a moment, UTC."""
    return format_time(parse_time(evidence.started) + timedelta(seconds=at))


def scale_text(evidence: Evidence) -> str:
    """Return the scale of gardenlet's waits, for people."""
    if evidence.scale is None:
        return "not applied: no step had to get stuck"
    limits = f"a timeout of 180 s is {180 * evidence.scale:g} s"
    return f"scaled by 1/{1 / evidence.scale:.0f} in steps that must get stuck: {limits}"


def _verdict(evidence: Evidence) -> str:
    if evidence.stopped:
        return f"It stopped: {evidence.stopped}"
    left = evidence.resources_after
    recorded = sum(any(covers(r.resource, real) for r in evidence.records) for real in left)
    there = f"{len(left)} external resource{' remains' if len(left) == 1 else 's remain'}"
    if evidence.path:
        steps = "; ".join(evidence.unfinished) or "Each step of gardenlet ended as expected"
        begin = f"{steps}."
    else:
        begin = _stuck(evidence)
    return f"{begin} {_went(evidence)} {there}; {recorded} of {len(left)} recorded."


def _stuck(evidence: Evidence) -> str:
    lives = [life for life in evidence.rehearsed if life.stuck is not None]
    stuck = len({life.shoot for life in lives})
    shoots = len({o.shoot for o in evidence.rehearsed})
    codes = ", ".join(sorted({code for life in lives for code in life.codes})) or "no code"
    return f"{stuck} of {shoots} shoots were stuck in deletion{f' ({codes})' if stuck else ''}."


def _went(evidence: Evidence) -> str:
    lives = [life for life in evidence.lives if life.forced is not None]
    gone = [life.gone for life in lives if life.gone is not None]
    if not lives:
        return "Nothing was force-deleted."
    if len(gone) < len(lives):
        return f"{len(gone)} of {len(lives)} objects were deleted after the force deletion."
    took = max(gone) - min(life.forced for life in lives if life.forced is not None)
    return f"The force deletion deleted all {len(gone)} objects in {took:.1f} s."


def _reasons(evidence: Evidence) -> list[Sequence[str]]:
    return [
        (f"{len(lives)} {kind}", lives[0].error, ", ".join(codes))
        for (kind, _, codes), lives in by_error(evidence.rehearsed).items()
    ]


def refusals(evidence: Evidence) -> Iterator[Sequence[str]]:
    """Yield a row for each request that a failing webhook refused."""
    for webhook in evidence.webhooks:
        hook = f"{webhook.webhook} ({webhook.policy}): {webhook.failure}"
        took = (
            "blocked"
            if webhook.seconds is None
            else f"not blocked: it took {webhook.seconds:.1f} s"
        )
        yield hook, f"{short(webhook.shoot)}: {webhook.request}", webhook.error, took


def _left(evidence: Evidence) -> Iterator[Sequence[str | None]]:
    """Yield a row for each recorded resource, then for each unrecorded one, without an owner."""
    for record in evidence.records:
        there = any(covers(record.resource, real) for real in evidence.resources_after)
        owner = (short(record.shoot), record.owner)
        yield *_cells(record.resource), *owner, "yes" if there else "no"
    for real in evidence.resources_after:
        if not any(covers(record.resource, real) for record in evidence.records):
            yield *_cells(real), "", None, "yes"


def _cells(resource: ExternalResource) -> tuple[str, str, str]:
    tags = ", ".join(f"{key}={value}" for key, value in resource.tags.items())
    return resource.type, resource.id or f"tagged {tags}", resource.region


def _pairs(numbers: dict[str, int]) -> str:
    return ", ".join(f"{name} {number}" for name, number in numbers.items() if number) or "none"


_MOMENTS = ("created", "failed", "ready", "migrated", "deleted", "stuck", "forced", "gone")
_PHASES = (
    ("making", "being created", "created"),
    ("well", "ready", "ready"),
    ("migrated", "migrated", "migrated"),
    ("deleting", "being deleted", "deleted"),
    ("stuck", "stuck in deletion", "stuck"),
    ("forced", "being force-deleted", "forced"),
)
_MANY = 100


def summed_up(lives: Sequence[Life]) -> list[Life]:
    """Sort for the page; summarize more than a hundred objects to one line for each shoot."""
    shoots: dict[str, list[Life]] = {}
    for life in sorted(lives, key=lambda life: (life.bad, len(life.shoot), life.shoot)):
        shoots.setdefault(life.shoot, []).append(life)
    if len(lives) > _MANY:
        return [_sum(group) for group in shoots.values()]
    return [item for group in shoots.values() for item in sorted(group, key=lambda o: o.created)]


def _sum(lives: Sequence[Life]) -> Life:
    """Summarize a shoot: ready and gone when all are, deleted and stuck when the first is."""
    first = min
    last = max
    return Life(
        kind=f"({len(lives)} objects)",
        shoot=lives[0].shoot,
        name="",
        uid="",
        created=first(life.created for life in lives),
        bad=lives[0].bad,
        ready=None if any(life.ready is None for life in lives) else last(_all(lives, "ready")),
        failed=first(_all(lives, "failed"), default=None),
        migrated=first(_all(lives, "migrated"), default=None),
        deleted=first(_all(lives, "deleted"), default=None),
        stuck=first(_all(lives, "stuck"), default=None),
        forced=first(_all(lives, "forced"), default=None),
        gone=None if any(life.gone is None for life in lives) else last(_all(lives, "gone")),
        outcomes=[outcome for life in lives for outcome in life.outcomes],
    )


def _all(lives: Iterable[Life], name: str) -> list[float]:
    return [moment for life in lives if (moment := getattr(life, name)) is not None]


def rows(lives: Iterable[Life]) -> Iterator[Sequence[str]]:
    """Yield the cells of a row for each: name, moments in seconds, and how it ended."""
    for life in lives:
        moments = [seconds(getattr(life, name)) for name in _MOMENTS]
        yield _name(life), *moments, _ended(life)


def _ended(life: Life) -> str:
    counts = Counter(life.outcomes)
    return ", ".join(f"{n} {count}" if n > 1 else count for count, n in counts.items()) or "-"


def drawn(lives: Sequence[Life]) -> dict[str, Any]:
    """Return the template's data. Moments are in seconds; a bar is a name and its phases."""
    moments = [moment for name in _MOMENTS for moment in _all(lives, name)] or [0.0]
    begin = max(int(min(moments)), 0)
    end = max(*moments, begin + 1.0)
    steps = (1, 2, 5, 10, 30, 60, 300, 3600, 10**9)
    return {
        "legend": [(css, text) for css, text, _ in _PHASES],
        "begin": begin,
        "end": end,
        "step": next(step for step in steps if (end - begin) / step <= 12),
        "bars": [(_name(life), _phases(life, end), life.gone is None) for life in lives],
    }


def _phases(life: Life, end: float) -> list[tuple[str, str, float, float]]:
    """Return the phases: each lasts until the next, the last until the object is gone."""
    until = end if life.gone is None else life.gone
    found = []
    for css, text, moment in reversed(_PHASES):
        begin = getattr(life, moment)
        if begin is not None and begin < until:
            found.append((css, text, begin, until))
            until = begin
    return found[::-1]


def _name(life: Life) -> str:
    return f"{short(life.shoot)} {life.kind}{' (planted)' if life.bad else ''}"


def short(technical_id: str) -> str:
    """Return a shoot's own name."""
    return technical_id.rpartition("--")[2] or technical_id


def seconds(moment: float | None) -> str:
    """Return the moment with one decimal, or a dash."""
    return "-" if moment is None else f"{moment:.1f}"
