"""The report of a force deletion as one page: verdict, rules, timeline, what is left."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from html import escape

from actuator.interface import ExternalResource
from generic.testing.drill import timeline
from generic.testing.drill.evidence import Evidence
from generic.testing.drill.html import document, rules, section, table
from generic.testing.drill.judge import Finding, covers
from generic.testing.drill.timeline import short

__all__ = ["page"]


def page(evidence: Evidence, findings: Sequence[Finding]) -> str:
    """The whole page."""
    passed = all(finding.holds for finding in findings)
    left = ("Type", "Id", "Region", "Shoot", "Recorded for", "Still there")
    sections = [
        rules(findings),
        section("Timeline", _timeline(evidence), wide=True),
        section("Why they were stuck", table(("Objects", "Error", "Codes"), _why(evidence))),
        section("Stripped in the seed", table(("Finalizer", "Times"), _strips(evidence))),
        section("Left outside the seed", table(left, _left(evidence)), wide=True),
        section("This run", table(("What", "Value"), _facts(evidence))),
    ]
    told = (_scenario(evidence), _verdict(evidence))
    return document(evidence.path or "Force deletion", evidence.drill, *told, passed, sections)


def _scenario(evidence: Evidence) -> str:
    return f"{evidence.title}. Scenario {evidence.scenario}: {evidence.scenario_text}"


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


def _timeline(evidence: Evidence) -> str:
    lives = timeline.summed_up(evidence.lives)
    words = "<summary>As a table: when, in seconds, and how it ended</summary>"
    cells = table(timeline.HEAD, timeline.rows(lives))
    return f"{timeline.svg(lives)}<details>{words}{cells}</details>"


def _why(evidence: Evidence) -> Iterator[Sequence[str]]:
    reasons: defaultdict[tuple[str, str, str], int] = defaultdict(int)
    for life in evidence.rehearsed:
        if life.stuck is not None:
            reasons[life.kind, life.error, ", ".join(life.codes)] += 1
    for (kind, error, codes), count in reasons.items():
        yield f"{count} {escape(kind)}", escape(error), escape(codes)


def _strips(evidence: Evidence) -> Iterator[Sequence[str]]:
    texts = Counter(strip.text.removeprefix("Stripped ") for strip in evidence.strips)
    for text, count in texts.most_common():
        yield escape(text), str(count)


def _left(evidence: Evidence) -> Iterator[Sequence[str]]:
    for record in evidence.records:
        there = any(covers(record.resource, real) for real in evidence.outside_after)
        cells = (*_cells(record.resource), short(record.shoot), record.owner)
        yield *map(escape, cells), "yes" if there else "no"
    for real in evidence.outside_after:
        if not any(covers(record.resource, real) for record in evidence.records):
            yield *map(escape, _cells(real)), "", "<strong>nobody</strong>", "yes"


def _cells(resource: ExternalResource) -> tuple[str, str, str]:
    tags = ", ".join(f"{key}={value}" for key, value in resource.tags.items())
    return resource.type, resource.id or f"tagged {tags}", resource.region


def _facts(evidence: Evidence) -> Iterator[Sequence[str]]:
    facts = {
        "Drill": evidence.drill,
        "Started": evidence.started,
        "Took": f"{evidence.seconds:.1f} s",
        "Outcomes": _pairs({**evidence.counted, "bypassed": evidence.bypassed}),
        "The manager's requests": _pairs(evidence.requests),
    }
    for name, value in facts.items():
        yield escape(name), escape(value)


def _pairs(numbers: dict[str, int]) -> str:
    return ", ".join(f"{name} {number}" for name, number in numbers.items() if number) or "none"
