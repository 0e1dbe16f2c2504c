"""Keeper: counts the Orphans of one manager's objects, and deletes old settled ones.

It runs beside the controllers while a process leads. A Closed Orphan ages from closedAt, a Gone one
from verifiedAt; open ones are never deleted.
"""

import logging
import math
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from prometheus_client import CollectorRegistry, Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from actuator.errors import ApiError, Conflict, LeaseLost, NotFound, TooManyRequests
from actuator.interface import Client, Clock, Permission
from actuator.meta import parse_time
from generic.kube.clock import SystemClock, trusted_now
from generic.manager.orphans.ledger import Serving, read_orphans, serving
from generic.reconciler.orphans.kind import KIND_LABEL, ORPHANS, Orphan, OrphanState
from generic.serving.metrics.exposition import Bounded
from generic.serving.metrics.values import OLDER, ORPHAN_AGES

logger = logging.getLogger(__name__)

RETENTION = timedelta(days=30)

_Labels = tuple[str, str, str]


class Keeper(Collector):
    """Processes the Orphans of the actuators `added` to a manager, every `interval_seconds`.

    `retention` None keeps them without limit. One per metrics registry. Raises ValueError unless
    the interval is above 0, and for a negative retention.
    """

    def __init__(
        self,
        added: Sequence[Serving],
        registry: CollectorRegistry,
        *,
        retention: timedelta | None = RETENTION,
        interval_seconds: float = 300.0,
        clock: Clock | None = None,
    ) -> None:
        if not 0 < interval_seconds < math.inf:
            raise ValueError(f"interval_seconds must be above 0, got {interval_seconds!r}")
        if retention is not None and retention < timedelta():
            raise ValueError(f"retention must not be negative, got {retention}")
        self._added = added
        self._retention = retention
        self._interval = interval_seconds
        self._clock = clock or SystemClock()
        self._bounded = Bounded()
        self._counts: Mapping[_Labels, int] = {}
        self._open_since: Sequence[datetime] = ()
        registry.register(self)

    @property
    def permissions(self) -> tuple[Permission, ...]:
        """The permissions of `run`."""
        return (ORPHANS.permission("list", "delete"),)

    def run(self, client: Client, stop: threading.Event) -> None:
        """Run until `stop` is set, or until this process no longer leads."""
        refused = False
        try:
            while not stop.is_set():
                try:
                    self.look(client)
                    refused = False
                except LeaseLost:
                    return
                except Exception as error:  # any error: the next pass may succeed
                    refused = isinstance(error, TooManyRequests) and not refused
                    level = logging.DEBUG if refused else logging.WARNING
                    fields = {"error": str(error)}
                    logger.log(level, "orphan list failed", extra={"fields": fields})
                stop.wait(2.0 if refused else self._interval)  # refused just after its CRD came
        finally:
            self._counts = {}  # the next leader counts them
            self._open_since = ()

    def look(self, client: Client) -> None:
        """Run one pass: delete old settled Orphans and count the rest. Raises ApiError."""
        own = [obj for obj in self._read(client) if serving(self._added, obj.spec.object)]
        kept = [item for item in own if not (self._is_over(item) and _delete(client, item))]
        counts: Counter[_Labels] = Counter()
        for obj in sorted(kept, key=lambda item: item.spec.resource_type):
            type_ = self._bounded(obj.spec.resource_type)
            counts[obj.spec.object.kind, type_, obj.state.value] += 1
        self._counts = counts
        self._open_since = [since for item in kept if (since := _open_since(item)) is not None]

    def collect(self) -> Iterator[Metric]:
        """Yield the number of Orphans of the last complete pass; see Collector."""
        family = GaugeMetricFamily(
            "actuator_orphans",
            "Number of recorded Orphans, by state.",
            labels=("kind", "resource_type", "state"),
        )
        for labels, number in self._counts.items():
            family.add_metric(labels, number)
        yield family
        now = self._clock.now()
        ages = [(now - since).total_seconds() for since in self._open_since]
        opened = GaugeMetricFamily(
            "actuator_open_orphans",
            "Number of Orphans that are neither closed nor gone, by age.",
            labels=("age",),
        )
        numbers = Counter(map(_age, ages))
        for age in (*ORPHAN_AGES, OLDER):
            opened.add_metric((age,), numbers[age])
        yield opened

    def _read(self, client: Client) -> list[Orphan]:
        kinds = ",".join(sorted({item.kind.name for item in self._added}))
        return read_orphans(client, label_selector=f"{KIND_LABEL} in ({kinds})") if kinds else []

    def _is_over(self, orphan: Orphan) -> bool:
        settled = _settled_at(orphan)
        now = trusted_now(self._clock)
        if settled is None or now is None or self._retention is None:
            return False
        return now - settled > self._retention


def _settled_at(orphan: Orphan) -> datetime | None:
    """Return since when it is settled; None for an open one, or without a valid time."""
    times = {
        OrphanState.CLOSED: orphan.status.closed_at,
        OrphanState.GONE: orphan.status.verified_at,
    }
    try:
        return parse_time(times.get(orphan.state) or "")
    except ValueError:
        return None


def _age(seconds: float) -> str:
    """Return the least age of ORPHAN_AGES that is not exceeded, or OLDER."""
    return next((age for age, bound in ORPHAN_AGES.items() if seconds <= bound), OLDER)


def _open_since(orphan: Orphan) -> datetime | None:
    """Return the time of recording of an open Orphan; None for another one, or an invalid time."""
    if orphan.state in (OrphanState.CLOSED, OrphanState.GONE):
        return None
    try:
        return parse_time(orphan.spec.recorded_at or orphan.metadata.creation_timestamp or "")
    except ValueError:
        return None


def _delete(client: Client, orphan: Orphan) -> bool:
    """Delete the Orphan with this uid; return whether it is deleted."""
    name = orphan.metadata.name
    try:
        client.delete(ORPHANS, name, uid=orphan.metadata.uid)
    except (NotFound, Conflict):
        return True
    except ApiError as error:  # continue with the others; this one is retried in the next pass
        fields = {"orphan": name, "error": str(error)}
        logger.warning("orphan deletion failed", extra={"fields": fields})
        return False
    logger.info("settled orphan deleted", extra={"fields": {"orphan": name}})
    return True
