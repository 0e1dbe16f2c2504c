"""The report of a force deletion as one page: verdict, rules, timeline, remaining resources."""

from collections import Counter
from collections.abc import Iterator, Sequence

from actuator.interface import ExternalResource
from generic.testing.drill import timeline
from generic.testing.drill.evidence import Evidence
from generic.testing.drill.html import render
from generic.testing.drill.judge import Finding, covers
from generic.testing.drill.timeline import short


def page(evidence: Evidence, findings: Sequence[Finding]) -> str:
    """Return the whole page."""
    lives = timeline.summed_up(evidence.lives)
    strips = Counter(strip.text.removeprefix("Stripped ") for strip in evidence.strips)
    return render(
        "force-deletion",
        findings,
        what=evidence.path or "Force deletion",
        evidence=evidence,
        verdict=_verdict(evidence),
        timeline=timeline.drawn(lives),
        moments=timeline.rows(lives),
        reasons=_reasons(evidence),
        strips=strips.most_common(),
        left=_left(evidence),
        facts=_facts(evidence),
    )


def _verdict(evidence: Evidence) -> str:
    if evidence.path:
        return "; ".join(evidence.unfinished) or "Each step of gardenlet ended as it has to."
    left = evidence.outside_after
    recorded = sum(any(covers(r.resource, real) for r in evidence.records) for real in left)
    there = f"{len(left)} thing{' is' if len(left) == 1 else 's are'} left outside"
    return f"{_stuck(evidence)} {_went(evidence)} {there}; {recorded} of {len(left)} on record."


def _stuck(evidence: Evidence) -> str:
    lives = [life for life in evidence.rehearsed if life.stuck is not None]
    stuck, shoots = len({life.shoot for life in lives}), len({o.shoot for o in evidence.rehearsed})
    codes = ", ".join(sorted({code for life in lives for code in life.codes})) or "no code"
    return f"{stuck} of {shoots} shoots were stuck in deletion{f' ({codes})' if stuck else ''}."


def _went(evidence: Evidence) -> str:
    lives = [life for life in evidence.lives if life.forced is not None]
    gone = [life.gone for life in lives if life.gone is not None]
    if not lives:
        return "Nothing was force-deleted."
    if len(gone) < len(lives):
        return f"Once forced, {len(gone)} of {len(lives)} objects went."
    took = max(gone) - min(life.forced for life in lives if life.forced is not None)
    return f"Once forced, all {len(gone)} objects were gone in {took:.1f} s."


def _reasons(evidence: Evidence) -> list[Sequence[str]]:
    counts = Counter(
        (life.kind, life.error, ", ".join(life.codes))
        for life in evidence.rehearsed
        if life.stuck is not None
    )
    return [(f"{n} {kind}", error, codes) for (kind, error, codes), n in counts.items()]


def _left(evidence: Evidence) -> Iterator[Sequence[str | None]]:
    """Yield a row for each recorded resource, then for each unrecorded one, without an owner."""
    for record in evidence.records:
        there = any(covers(record.resource, real) for real in evidence.outside_after)
        owner = (short(record.shoot), record.owner)
        yield *_cells(record.resource), *owner, "yes" if there else "no"
    for real in evidence.outside_after:
        if not any(covers(record.resource, real) for record in evidence.records):
            yield *_cells(real), "", None, "yes"


def _cells(resource: ExternalResource) -> tuple[str, str, str]:
    tags = ", ".join(f"{key}={value}" for key, value in resource.tags.items())
    return resource.type, resource.id or f"tagged {tags}", resource.region


def _facts(evidence: Evidence) -> dict[str, str]:
    return {
        "Drill": evidence.drill,
        "Started": evidence.started,
        "Took": f"{evidence.seconds:.1f} s",
        "Outcomes": _pairs({**evidence.counted, "bypassed": evidence.bypassed}),
        "The manager's requests": _pairs(evidence.requests),
    }


def _pairs(numbers: dict[str, int]) -> str:
    return ", ".join(f"{name} {number}" for name, number in numbers.items() if number) or "none"
