"""The drill's report as one self-contained HTML page: verdict, rules, timeline, what is left.

Everything foreign in it (errors, names, tags) is escaped; it loads nothing and runs no script.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from html import escape

from actuator.interface import ExternalResource
from generic.drill import timeline
from generic.drill.evidence import Evidence
from generic.drill.judge import Finding, covers
from generic.drill.timeline import short

__all__ = ["page"]

_SHOWN = 5

_CSS = """
:root { color-scheme: light dark; --fg: #1d2330; --bg: #ffffff; --soft: #f1f3f7; --line: #c9cfda;
  --good: #1a6b37; --bad: #b3261e; --making: #858ea1; --well: #2e7d4f; --stuck: #b3261e;
  --forced: #b26a00; --deleting: #3d6fb5; }
@media (prefers-color-scheme: dark) { :root { --fg: #e6e9f0; --bg: #14171d; --soft: #1f242d;
  --line: #3c4452; --good: #7fd19b; --bad: #ff9a91; --making: #7d879c; --well: #4fae76;
  --stuck: #ef6c62; --forced: #e0a030; --deleting: #6fa0e6; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1080px; padding: 1.5rem 1rem 3rem; background: var(--bg);
  color: var(--fg); font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: 0 0 .25rem; } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
.verdict { font-size: 1.05rem; border-left: .4rem solid var(--good); background: var(--soft);
  padding: .75rem 1rem; margin: 1rem 0; } .verdict.broken { border-color: var(--bad); }
.scroll { overflow-x: auto; } .scroll:focus-visible { outline: 2px solid var(--deleting); }
table { border-collapse: collapse; width: 100%; } .wide table { min-width: 46rem; }
summary { cursor: pointer; padding: .5rem 0; }
th, td { text-align: left; vertical-align: top; padding: .35rem .6rem .35rem 0;
  border-bottom: 1px solid var(--line); } td { overflow-wrap: anywhere; }
  td:first-child { overflow-wrap: normal; }
.holds { color: var(--good); font-weight: 600; } .broken { color: var(--bad); font-weight: 600; }
.verdict.broken { color: inherit; font-weight: inherit; }
.facts { color: inherit; opacity: .85; margin: 0; } svg { min-width: 640px; width: 100%; }
svg text { fill: var(--fg); font: 11px system-ui, sans-serif; } .grid { stroke: var(--line); }
.making { fill: var(--making); } .well { fill: var(--well); } .stuck { fill: var(--stuck); }
.forced { fill: var(--forced); } .deleting { fill: var(--deleting); }
ul.legend { list-style: none; display: flex; flex-wrap: wrap;
  gap: .25rem 1.25rem; padding: 0; } .legend svg { min-width: 0; width: 14px; height: 12px; }
@media print { .scroll { overflow: visible; } .wide table, svg { min-width: 0; }
  tr, svg { break-inside: avoid; } }
"""


def page(evidence: Evidence, findings: Sequence[Finding]) -> str:
    """The whole page."""
    passed = all(finding.holds for finding in findings)
    kind = "verdict" if passed else "verdict broken"
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>Drill {escape(evidence.drill)}: {'passed' if passed else 'failed'}</title>",
        f"<style>{_CSS}</style></head><body><main>",
        f"<h1>Force deletion drill: {'passed' if passed else 'failed'}</h1>",
        f'<p class="facts">{escape(_scenario(evidence))}</p>',
        f'<p class="{kind}">{escape(_verdict(evidence))}</p>',
        _section("What had to hold", _table(("Rule", "What", "Held"), _rules(findings))),
        _section("Timeline", _timeline(evidence), wide=True),
        _section("Why they were stuck", _table(("Objects", "Error", "Codes"), _why(evidence))),
        _section("Stripped in the seed", _table(("Finalizer", "Times"), _strips(evidence))),
        _section(
            "Left outside the seed",
            _table(
                ("Type", "Id", "Region", "Shoot", "Recorded for", "Still there"), _left(evidence)
            ),
            wide=True,
        ),
        _section("This run", _table(("What", "Value"), _facts(evidence))),
        "</main></body></html>",
    ]
    return "\n".join(parts)


def _scenario(evidence: Evidence) -> str:
    return f"{evidence.title}. Scenario {evidence.scenario}: {evidence.scenario_text}"


def _verdict(evidence: Evidence) -> str:
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
    forced = [life.forced for life in evidence.lives if life.forced is not None]
    gone = [life.gone for life in evidence.lives if life.gone is not None]
    if not forced:
        return "Nothing was force-deleted."
    if len(gone) < len(evidence.lives):
        return f"Once forced, {len(gone)} of {len(evidence.lives)} objects went."
    return f"Once forced, all {len(gone)} objects were gone in {max(gone) - min(forced):.1f} s."


def _timeline(evidence: Evidence) -> str:
    lives = timeline.summed_up(evidence.lives)
    table = _table(timeline.HEAD, timeline.rows(lives))
    words = f"<details><summary>The same as a table, in seconds</summary>{table}</details>"
    return f"{timeline.svg(lives)}{words}"


def _section(title: str, body: str, *, wide: bool = False) -> str:
    """What is wide scrolls by itself on a small screen; with the keyboard too."""
    name = escape(title)
    css = "scroll wide" if wide else "scroll"
    return (
        f'<section><h2>{name}</h2><div class="{css}" role="group" aria-label="{name}" '
        f'tabindex="0">{body}</div></section>'
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells that are HTML already."""
    lines = ["".join(f"<td>{cell}</td>" for cell in row) for row in rows]
    if not lines:
        return "<p>None.</p>"
    titles = "".join(f'<th scope="col">{escape(title)}</th>' for title in head)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>"


def _rules(findings: Sequence[Finding]) -> Iterator[Sequence[str]]:
    for finding in findings:
        answer = '<span class="holds">yes</span>'
        if not finding.holds:
            shown = [escape(problem) for problem in finding.problems[:_SHOWN]]
            if more := len(finding.problems) - len(shown):
                shown.append(f"and {more} more: report.json has them all")
            problems = "<br>".join(shown)
            answer = f'<span class="broken">no</span>: {problems}'
        yield escape(finding.rule), escape(finding.title), answer


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
        "Outcomes": _pairs(evidence.counted),
        "The manager's requests": _pairs(evidence.requests),
    }
    for name, value in facts.items():
        yield escape(name), escape(value)


def _pairs(numbers: dict[str, int]) -> str:
    return ", ".join(f"{name} {number}" for name, number in numbers.items() if number) or "none"
