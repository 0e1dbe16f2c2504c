"""Series for promtool: a name with labels, and values with one sample a minute from minute 0."""

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Literal

import attrs


@attrs.frozen
class Name:
    """A series: the metric and its labels."""

    metric: str
    labels: tuple[tuple[str, str], ...]

    def but(self, **labels: str) -> "Name":
        """Return the series with these labels added or replaced; "" removes one."""
        merged = {**dict(self.labels), **labels}
        return named(self.metric, **{key: value for key, value in merged.items() if value})

    def __str__(self) -> str:
        """Return it as in PromQL."""
        matchers = ", ".join(f'{key}="{value}"' for key, value in self.labels)
        return f"{self.metric}{{{matchers}}}"


Series = Mapping[Name, str]
"""The values of each series, in the notation of promtool."""


def named(metric: str, /, **labels: str) -> Name:
    """Return a series."""
    return Name(metric, tuple(sorted(labels.items())))


def one(metric: str, values: str, /, **labels: str) -> dict[Name, str]:
    """Return one series with its values."""
    return {named(metric, **labels): values}


def each(metric: str, label: str, values: Mapping[str, str], /, **labels: str) -> dict[Name, str]:
    """Return one series for each value of a label."""
    return {named(metric, **{**labels, label: key}): value for key, value in values.items()}


def labelled(series: Series, **labels: str) -> dict[Name, str]:
    """Return all series with these labels."""
    return {name.but(**labels): values for name, values in series.items()}


Value = float | Literal["stale"] | None
"""A sample, the marker of a series that ended, or no sample."""


def written(values: Iterable[Value]) -> str:
    """Return values in the notation of promtool."""
    parts: list[str] = []
    for value, found in groupby(values):
        count = len(list(found))
        if value is None:
            parts.append(f"_x{count}")
        elif isinstance(value, str):
            parts += [value] * count
        else:
            parts.append(f"{value:.17g}x{count - 1}")
    return " ".join(parts)


def together(many: Iterable[Series]) -> dict[Name, str]:
    """Return all series; none may be there twice."""
    found: dict[Name, str] = {}
    for series in many:
        assert not found.keys() & series.keys(), found.keys() & series.keys()
        found.update(series)
    return found
