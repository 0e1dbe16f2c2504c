"""The timeline of the drill's report: a bar for each object, and the same as a table.

The table below the bars is for readers who cannot distinguish or see the colours.
`templates/timeline.html` draws the bars.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from generic.testing.drill.evidence import Life

_MOMENTS = ("created", "ready", "deleted", "stuck", "forced", "gone")
_PHASES = (
    ("making", "being created", "created"),
    ("well", "ready", "ready"),
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
    return [one for group in shoots.values() for one in sorted(group, key=lambda o: o.created)]


def _sum(lives: Sequence[Life]) -> Life:
    """Summarize a shoot: ready and gone when all are, deleted and stuck when the first is."""
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
    """Yield the cells of a row for each: name, moments in seconds, and how it ended."""
    for life in lives:
        moments = [seconds(getattr(life, name)) for name in _MOMENTS]
        yield _name(life), *moments, _ended(life)


def _ended(life: Life) -> str:
    counts = Counter(life.outcomes)
    return ", ".join(f"{n} {one}" if n > 1 else one for one, n in counts.items()) or "-"


def drawn(lives: Sequence[Life]) -> dict[str, Any]:
    """Return the template's data. Moments are in seconds; a bar is a name and its phases."""
    end = max([*(moment for name in _MOMENTS for moment in _all(lives, name)), 1.0])
    return {
        "legend": [(css, text) for css, text, _ in _PHASES],
        "end": end,
        "step": next(s for s in (1, 2, 5, 10, 30, 60, 300, 3600, 10**9) if end / s <= 12),
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
