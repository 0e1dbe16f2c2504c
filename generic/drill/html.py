"""The parts that reports are made of: one self-contained HTML page, sections, tables, rules.

Everything foreign (errors, names, tags) has to be escaped by who makes a cell; the page loads
nothing and runs no script.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape

from generic.drill.judge import Finding
from generic.printable import printable

__all__ = ["document", "rules", "section", "table"]

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


def document(
    what: str, drill: str, scenario: str, verdict: str, passed: bool, sections: Iterable[str]
) -> str:
    """The whole page. `what` was drilled; `scenario` and `verdict` are a sentence or two each."""
    outcome = "passed" if passed else "failed"
    kind = "verdict" if passed else "verdict broken"
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>Drill {escape(drill)}: {outcome}</title>",
        f"<style>{_CSS}</style></head><body><main>",
        f"<h1>{escape(what)} drill: {outcome}</h1>",
        f'<p class="facts">{escape(scenario)}</p>',
        f'<p class="{kind}">{escape(verdict)}</p>',
        *sections,
        "</main></body></html>",
    ]
    return printable("\n".join(parts), keep="\n")


def section(title: str, body: str, *, wide: bool = False) -> str:
    """What is wide scrolls by itself on a small screen; with the keyboard too."""
    name = escape(title)
    css = "scroll wide" if wide else "scroll"
    return (
        f'<section><h2>{name}</h2><div class="{css}" role="group" aria-label="{name}" '
        f'tabindex="0">{body}</div></section>'
    )


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells that are HTML already."""
    lines = ["".join(f"<td>{cell}</td>" for cell in row) for row in rows]
    if not lines:
        return "<p>None.</p>"
    titles = "".join(f'<th scope="col">{escape(title)}</th>' for title in head)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>"


def rules(findings: Sequence[Finding]) -> str:
    """The section that says what had to hold, and whether it did."""
    return section("What had to hold", table(("Rule", "What", "Held"), _rows(findings)))


def _rows(findings: Sequence[Finding]) -> Iterator[Sequence[str]]:
    for finding in findings:
        answer = '<span class="holds">yes</span>'
        if not finding.holds:
            shown = [escape(problem) for problem in finding.problems[:_SHOWN]]
            if more := len(finding.problems) - len(shown):
                shown.append(f"and {more} more: report.json has them all")
            problems = "<br>".join(shown)
            answer = f'<span class="broken">no</span>: {problems}'
        yield escape(finding.rule), escape(finding.title), answer
