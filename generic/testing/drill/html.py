"""The parts that reports are made of: one self-contained HTML page, sections, tables, rules.

The frame of the page is `report.html`; it loads nothing and runs no script. Whoever makes a cell
has to escape everything foreign in it (errors, names, tags).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from pathlib import Path
from string import Template

from generic.kube.printable import printable
from generic.testing.drill.judge import Finding

__all__ = ["document", "rules", "section", "table"]

_SHOWN = 5

_PAGE = Template(Path(__file__).with_name("report.html").read_text(encoding="utf-8"))


def document(
    what: str, drill: str, scenario: str, verdict: str, passed: bool, sections: Iterable[str]
) -> str:
    """The whole page. `what` was drilled; `scenario` and `verdict` are a sentence or two each."""
    page = _PAGE.substitute(
        what=escape(what),
        drill=escape(drill),
        outcome="passed" if passed else "failed",
        kind="verdict" if passed else "verdict broken",
        scenario=escape(scenario),
        verdict=escape(verdict),
        sections="\n".join(sections),
    )
    return printable(page, keep="\n")


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
