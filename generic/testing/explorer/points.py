"""Where an operation can be killed, and what came of it there. Pure data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from enum import StrEnum

import attrs

from generic.reconciler.operation import Operation

__all__ = ["Failure", "Kill", "Point", "Side", "Tally", "points_of"]


class Side(StrEnum):
    """Of a call: `before` it is made, `after` it took effect and nobody heard the answer."""

    BEFORE = "before"
    AFTER = "after"


@attrs.frozen
class Point:
    """The call `text`, made for the `number`-th time in an operation, from 1."""

    text: str
    number: int

    def __str__(self) -> str:
        return self.text if self.number == 1 else f"{self.text} (no. {self.number})"


@attrs.frozen
class Kill:
    """A moment to die at."""

    point: Point
    side: Side

    def __str__(self) -> str:
        return f"{self.side.value} {self.point}"


@attrs.frozen(kw_only=True)
class Failure:
    """What did not hold after a kill; without any kill where `at` is empty."""

    at: str
    problems: Sequence[str]


@attrs.frozen(kw_only=True)
class Tally:
    """One operation of one kind: its points, and how many kills it survived.

    `missed` counts kills whose point was not reached: calls that depend on time, of which there
    are not always equally many.
    """

    kind: str
    operation: Operation
    points: Sequence[Point] = ()
    tried: int = 0
    missed: int = 0
    failures: Sequence[Failure] = ()

    def __str__(self) -> str:
        return f"{self.kind} {self.operation.value}"

    @property
    def survived(self) -> int:
        """The kills after which everything held."""
        return self.tried - sum(bool(failure.at) for failure in self.failures)

    @property
    def holds(self) -> bool:
        """Whether something was tried, and all of it survived."""
        return self.tried > 0 and not self.failures


def points_of(calls: Iterable[str]) -> list[Point]:
    """The points of calls, as they followed each other."""
    seen: Counter[str] = Counter()
    points = []
    for text in calls:
        seen[text] += 1
        points.append(Point(text, seen[text]))
    return points
