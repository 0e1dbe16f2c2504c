"""The timeline of the drill's report: an SVG with a bar for each object, and the same in words.

Who cannot tell the colours, or cannot see them, reads the table below the bars. `page` puts
it into the report.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from html import escape

from generic.testing.drill.evidence import Life

__all__ = ["HEAD", "rows", "short", "summed_up", "svg"]

HEAD = ("Object", "Created", "Ready", "Deleted", "Stuck", "Forced", "Gone", "Outcome")
"""The titles of the columns of `rows`."""
_MOMENTS = ("created", "ready", "deleted", "stuck", "forced", "gone")
_PHASES = (
    ("making", "being created", "created"),
    ("well", "ready", "ready"),
    ("deleting", "being deleted", "deleted"),
    ("stuck", "stuck in deletion", "stuck"),
    ("forced", "being force-deleted", "forced"),
)
_WIDTH, _ROW, _LABEL, _AXIS, _MARGIN = 960, 18, 190, 24, 24
_MANY = 100


def summed_up(lives: Sequence[Life]) -> list[Life]:
    """In the order of the page; of more than a hundred objects, one line for each shoot."""
    shoots: dict[str, list[Life]] = {}
    for life in sorted(lives, key=lambda life: (life.bad, len(life.shoot), life.shoot)):
        shoots.setdefault(life.shoot, []).append(life)
    if len(lives) > _MANY:
        return [_sum(group) for group in shoots.values()]
    return [one for group in shoots.values() for one in sorted(group, key=lambda o: o.created)]


def _sum(lives: Sequence[Life]) -> Life:
    """A shoot as one: ready and gone when all are, deleted and stuck when the first is."""
    first, last = min, max
    return Life(
        kind=f"({len(lives)} objects)",
        shoot=lives[0].shoot,
        name="",
        uid="",
        created=first(life.created for life in lives),
        bad=lives[0].bad,
        ready=None if any(life.ready is None for life in lives) else last(_all(lives, "ready")),
        deleted=first(_all(lives, "deleted"), default=None),
        stuck=first(_all(lives, "stuck"), default=None),
        forced=first(_all(lives, "forced"), default=None),
        gone=None if any(life.gone is None for life in lives) else last(_all(lives, "gone")),
        outcomes=[outcome for life in lives for outcome in life.outcomes],
    )


def _all(lives: Iterable[Life], name: str) -> list[float]:
    return [moment for life in lives if (moment := getattr(life, name)) is not None]


def rows(lives: Iterable[Life]) -> Iterator[Sequence[str]]:
    """When what happened, in seconds, and how it ended; cells of HTML."""
    for life in lives:
        moments = [getattr(life, name) for name in _MOMENTS]
        times = ["-" if moment is None else f"{moment:.1f}" for moment in moments]
        yield escape(_name(life)), *times, escape(_ended(life))


def _ended(life: Life) -> str:
    counts = Counter(life.outcomes)
    return ", ".join(f"{n} {one}" if n > 1 else one for one, n in counts.items()) or "-"


def svg(lives: Sequence[Life]) -> str:
    """A legend, and a bar for each; who is not gone has a bar to the end, and an arrow."""
    end = max([*(moment for name in _MOMENTS for moment in _all(lives, name)), 1.0])
    scale = (_WIDTH - _LABEL - _MARGIN) / end
    height = len(lives) * _ROW + _AXIS
    legend = "".join(
        f'<li><svg viewBox="0 0 14 12" aria-hidden="true"><rect class="{css}" width="14" '
        f'height="12"/></svg> {text}</li>'
        for css, text, _ in _PHASES
    )
    marks = "".join(_mark(second, scale, height) for second in _seconds(end))
    bars = "".join(_bar(life, row, scale, end) for row, life in enumerate(lives))
    return (
        f'<ul class="legend">{legend}<li>&#9654; still there at the end</li></ul>'
        f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" '
        f'aria-label="Timeline; the table below says the same">{marks}{bars}</svg>'
    )


def _seconds(end: float) -> Iterator[int]:
    step = next(s for s in (1, 2, 5, 10, 30, 60, 300, 3600, 10**9) if end / s <= 12)
    yield from range(0, int(end) + 1, step)


def _mark(second: int, scale: float, height: int) -> str:
    x = _LABEL + second * scale
    return (
        f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{height - _AXIS}"/>'
        f'<text x="{x:.1f}" y="{height - 8}" text-anchor="middle">{second} s</text>'
    )


def _bar(life: Life, row: int, scale: float, end: float) -> str:
    y, name = row * _ROW, escape(_name(life))
    parts = [f'<text x="0" y="{y + 12}">{name}</text>']
    for css, text, begin, until in _phases(life, end):
        x, width = _LABEL + begin * scale, max((until - begin) * scale, 1.0)
        parts.append(
            f'<rect class="{css}" x="{x:.1f}" y="{y + 3}" width="{width:.1f}" '
            f'height="{_ROW - 6}" rx="2">'
            f"<title>{name}: {text}, {until - begin:.1f} s</title></rect>"
        )
    if life.gone is None:
        parts.append(f'<text x="{_WIDTH - _MARGIN + 4}" y="{y + 13}">&#9654;</text>')
    return "".join(parts)


def _phases(life: Life, end: float) -> list[tuple[str, str, float, float]]:
    """Each lasts until the next one that came; the last until the object went, or the end."""
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
    """A shoot's own name."""
    return technical_id.rpartition("--")[2] or technical_id
