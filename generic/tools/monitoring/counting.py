"""Expressions that count exactly, whoever scrapes: text for Prometheus, from names of metrics.

A replica is one value of `seed`, `extension` and `instance`. If two jobs scrape it, its series
exist twice: the greater one counts. Replicas of an extension are added, since a standby counts
nothing.
Not here: what is recorded (`recordings`), and objectives.
"""

from collections.abc import Sequence

SECONDS = {
    "5m": 300,
    "15m": 900,
    "30m": 1800,
    "1h": 3600,
    "2h": 7200,
    "6h": 21600,
    "1d": 86400,
    "3d": 259200,
}
"""The seconds of each window."""
_OURS = 'extension!=""'
_LOOKBACK = 300
"""Seconds for which Prometheus shows the last sample of a series."""


def by(*labels: str) -> str:
    """Return the list of labels that aggregations keep."""
    return ", ".join(("seed", "extension", *labels))


def selector(metric: str, where: str = "") -> str:
    """Return the series of our extensions: other programs have no label `extension`."""
    matchers = ", ".join(filter(None, (_OURS, where)))
    return f"{metric}{{{matchers}}}"


def each_replica(expr: str, own: Sequence[str]) -> str:
    """Return the expression with one series for each replica; `own` are labels of the metric."""
    return f"max by ({by('instance', *own)}) ({expr})"


def gauge(metric: str, own: Sequence[str]) -> str:
    """Return the sum of a gauge over the replicas."""
    return f"sum by ({by(*own)}) ({each_replica(selector(metric), own)})"


def rate(metric: str, own: Sequence[str], where: str = "") -> str:
    """Return the rate per second of a counter in five minutes, added over the replicas."""
    ranged = f"rate({selector(metric, where)}[5m])"
    return f"sum by ({by(*own)}) ({each_replica(ranged, own)})"


def increase(
    metric: str, own: Sequence[str], window: str, where: str = "", *, kept: Sequence[str] = ()
) -> str:
    """Return the exact number that a counter gained in a window; `kept` labels remain.

    `increase` extrapolates, so it is only for a counter that was reset, and is rounded.
    Increments before the first sample are not counted: a new counter begins with 0, and others are
    old. That is why neither a new Prometheus nor a gap in its samples counts anything twice.
    """
    series = selector(metric, where)
    steady = f"resets({series}[{SECONDS[window] + _LOOKBACK}s]) == 0"
    gained = " or ".join(
        (
            f"(max_over_time({series}[{window}]) - ({series} offset {window}) and {steady})",
            f"(max_over_time({series}[{window}]) - min_over_time({series}[{window}]) and {steady})",
            f"round(increase({series}[{window}]))",
        )
    )
    return f"sum by ({by(*kept)}) ({each_replica(gained, own)})"
