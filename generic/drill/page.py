"""The drill's report as one self-contained HTML page: verdict, rules, timeline, what is left.

Everything foreign in it (errors, names, tags) is escaped; it loads nothing and runs no script.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from html import escape

from generic.drill.evidence import Evidence, Life
from generic.drill.judge import Finding, covers

__all__ = ["page"]

_WIDTH, _ROW, _LABEL, _AXIS = 960, 18, 190, 24
_PHASES = (
    ("making", "being created", "created", "ready"),
    ("well", "ready", "ready", "deleted"),
    ("stuck", "stuck in deletion", "deleted", "forced"),
    ("forced", "being force-deleted", "forced", "gone"),
)

_CSS = """
:root { color-scheme: light dark; --fg: #1d2330; --bg: #ffffff; --soft: #f1f3f7; --line: #c9cfda;
  --good: #1a6b37; --bad: #b3261e; --making: #8a93a6; --well: #2e7d4f; --stuck: #b3261e;
  --forced: #b26a00; }
@media (prefers-color-scheme: dark) { :root { --fg: #e6e9f0; --bg: #14171d; --soft: #1f242d;
  --line: #3c4452; --good: #7fd19b; --bad: #ff9a91; --making: #7d879c; --well: #4fae76;
  --stuck: #ef6c62; --forced: #e0a030; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1080px; padding: 1.5rem 1rem 3rem; background: var(--bg);
  color: var(--fg); font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: 0 0 .25rem; } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
.verdict { font-size: 1.05rem; border-left: .4rem solid var(--good); background: var(--soft);
  padding: .75rem 1rem; margin: 1rem 0; } .verdict.broken { border-color: var(--bad); }
.scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .35rem .6rem .35rem 0;
  border-bottom: 1px solid var(--line); } td { overflow-wrap: anywhere; }
  td:first-child { overflow-wrap: normal; }
.holds { color: var(--good); font-weight: 600; } .broken { color: var(--bad); font-weight: 600; }
.verdict.broken { color: inherit; font-weight: inherit; }
.facts { color: inherit; opacity: .85; margin: 0; } svg { min-width: 640px; width: 100%; }
svg text { fill: var(--fg); font: 11px system-ui, sans-serif; } .grid { stroke: var(--line); }
.making { fill: var(--making); } .well { fill: var(--well); } .stuck { fill: var(--stuck); }
.forced { fill: var(--forced); } ul.legend { list-style: none; display: flex; flex-wrap: wrap;
  gap: .25rem 1.25rem; padding: 0; } .legend svg { min-width: 0; width: 14px; height: 12px; }
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
        _section("Timeline", _timeline(evidence)),
        _section("Why they were stuck", _table(("Objects", "Error", "Codes"), _why(evidence))),
        _section("Stripped in the seed", _table(("Finalizer", "Times"), _strips(evidence))),
        _section(
            "Left outside the seed",
            _table(("Type", "Id", "Shoot", "Recorded for", "Still there"), _left(evidence)),
        ),
        _section("This run", _table(("What", "Value"), _facts(evidence))),
        "</main></body></html>",
    ]
    return "\n".join(parts)


def _scenario(evidence: Evidence) -> str:
    return f"{evidence.title}. Scenario {evidence.scenario}: {evidence.scenario_text}"


def _verdict(evidence: Evidence) -> str:
    shoots = {life.shoot for life in evidence.rehearsed}
    codes = sorted({code for life in evidence.rehearsed for code in life.codes})
    forced = [life.forced for life in evidence.lives if life.forced is not None]
    gone = [life.gone for life in evidence.lives if life.gone is not None]
    left = evidence.outside_after
    recorded = [real for real in left if any(covers(r.resource, real) for r in evidence.records)]
    text = f"{len(shoots)} shoots were stuck in deletion ({', '.join(codes) or 'no code'})."
    if forced and len(gone) == len(evidence.lives):
        text += f" Once forced, all {len(gone)} objects were gone in "
        text += f"{max(gone) - min(forced):.1f} s."
    elif forced:
        text += f" Once forced, {len(gone)} of {len(evidence.lives)} objects went."
    return f"{text} {len(left)} things are left outside; {len(recorded)} of them are on record."


def _section(title: str, body: str) -> str:
    return f'<section><h2>{escape(title)}</h2><div class="scroll">{body}</div></section>'


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
            problems = "<br>".join(escape(problem) for problem in finding.problems[:5])
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
        resource = record.resource
        tags = ", ".join(f"{key}={value}" for key, value in resource.tags.items())
        there = any(covers(resource, real) for real in evidence.outside_after)
        cells = (resource.type, resource.id or f"tagged {tags}", _short(record.shoot), record.owner)
        yield *map(escape, cells), "yes" if there else "no"
    for real in evidence.outside_after:
        if not any(covers(record.resource, real) for record in evidence.records):
            yield escape(real.type), escape(real.id), "", "<strong>nobody</strong>", "yes"


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


def _timeline(evidence: Evidence) -> str:
    """A bar for each object, its phases in colours and, for those who cannot tell them, titles."""
    lives = sorted(
        evidence.lives, key=lambda life: (life.bad, len(life.shoot), life.shoot, life.created)
    )
    ends = [end for life in lives for end in (life.gone, life.forced, life.created) if end]
    scale = (_WIDTH - _LABEL - 10) / max([*ends, 1.0])
    height = len(lives) * _ROW + _AXIS
    bars = [_bar(life, row, scale) for row, life in enumerate(lives)]
    marks = [_mark(second, scale, height) for second in _seconds(max([*ends, 1.0]))]
    label = f"Timeline of {len(lives)} objects; the table below says the same in words"
    legend = "".join(
        f'<li><svg viewBox="0 0 14 12" aria-hidden="true"><rect class="{name}" width="14" '
        f'height="12"/></svg> {escape(text)}</li>'
        for name, text, _, _ in _PHASES
    )
    return (
        f'<ul class="legend">{legend}</ul><svg viewBox="0 0 {_WIDTH} {height}" role="img" '
        f'aria-label="{label}">{"".join(marks)}{"".join(bars)}</svg>'
    )


def _seconds(end: float) -> Iterator[int]:
    step = next(s for s in (1, 2, 5, 10, 30, 60, 300, 10**9) if end / s <= 12)
    yield from range(0, int(end) + 1, step)


def _mark(second: int, scale: float, height: int) -> str:
    x = _LABEL + second * scale
    return (
        f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{height - _AXIS}"/>'
        f'<text x="{x:.1f}" y="{height - 8}" text-anchor="middle">{second} s</text>'
    )


def _bar(life: Life, row: int, scale: float) -> str:
    y = row * _ROW
    name = f"{_short(life.shoot)} {life.kind}{' (planted)' if life.bad else ''}"
    parts = [f'<text x="0" y="{y + 12}">{escape(name)}</text>']
    for css, text, first, last in _PHASES:
        begin, end = getattr(life, first), getattr(life, last)
        if begin is None:
            continue
        if end is None:  # this phase never came to its end: the next one that did ends the bar
            later = [life.deleted, life.forced, life.gone]
            end = next((moment for moment in later if moment is not None and moment > begin), None)
        if end is None or end <= begin:
            continue
        x, width = _LABEL + begin * scale, max((end - begin) * scale, 1.0)
        title = escape(f"{name}: {text}, {end - begin:.1f} s")
        parts.append(
            f'<rect class="{css}" x="{x:.1f}" y="{y + 3}" width="{width:.1f}" '
            f'height="{_ROW - 6}" rx="2"><title>{title}</title></rect>'
        )
    return "".join(parts)


def _short(technical_id: str) -> str:
    return technical_id.rpartition("--")[2] or technical_id
