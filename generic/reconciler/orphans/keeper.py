"""Keeper: counts the Orphans of one manager's objects, and deletes those that are long settled.

Runs beside the controllers while a process leads. A closed Orphan's age is that since it was
closed, a gone one's that since it was verified; open ones are never deleted.
"""

from __future__ import annotations

import logging
import math
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from actuator.errors import ApiError, Conflict, LeaseLost, NotFound
from actuator.interface import Client, Clock, Permission
from actuator.meta import parse_time
from generic.controller.metrics.exposition import Bounded
from generic.kube.clock import SystemClock
from generic.reconciler.orphans.kind import KIND_LABEL, ORPHANS, Orphan, OrphanState
from generic.reconciler.orphans.ledger import read_orphans
from generic.reconciler.orphans.served import Serving, serving

logger = logging.getLogger(__name__)

RETENTION = timedelta(days=30)

_Labels = tuple[str, str, str]


class Keeper:
    """Looks every `interval_seconds` at the Orphans of what was `added` to a manager until then.

    `retention` None keeps them for ever. One for each registry of metrics. Raises ValueError for
    an interval that is no number above 0, or a negative retention.
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
            raise ValueError(f"an interval is above 0 seconds, not {interval_seconds!r}")
        if retention is not None and retention < timedelta():
            raise ValueError(f"a retention is no negative time, like {retention}")
        self._added = added
        self._retention = retention
        self._interval = interval_seconds
        self._clock = clock or SystemClock()
        self._gauge = _Gauge()
        registry.register(self._gauge)

    @property
    def permissions(self) -> tuple[Permission, ...]:
        """What `run` does in the API."""
        verbs = ["list", "delete"]
        return (Permission(api_version=ORPHANS.api_version, resource=ORPHANS.plural, verbs=verbs),)

    def run(self, client: Client, stop: threading.Event) -> None:
        """Keeps until `stop`, or until this process no longer leads; nothing else ends it."""
        try:
            while not stop.is_set():
                try:
                    self.look(client)
                except LeaseLost:
                    return
                except Exception as error:  # whatever it was, the next look may work
                    fields = {"error": str(error)}
                    logger.warning("the orphans could not be read", extra={"fields": fields})
                stop.wait(self._interval)
        finally:
            self._gauge.show({})  # whoever leads next counts them

    def look(self, client: Client) -> None:
        """Once: deletes what was settled long ago, and counts the rest. Raises ApiError."""
        own = [one for one in self._read(client) if serving(self._added, one.spec.object)]
        self._gauge.count([one for one in own if not (self._is_over(one) and _delete(client, one))])

    def _read(self, client: Client) -> list[Orphan]:
        kinds = ",".join(sorted({one.kind.name for one in self._added}))
        return read_orphans(client, label_selector=f"{KIND_LABEL} in ({kinds})") if kinds else []

    def _is_over(self, orphan: Orphan) -> bool:
        settled = _settled_at(orphan)
        if settled is None or self._retention is None:
            return False
        return self._clock.now() - settled > self._retention


class _Gauge(Collector):
    """How many there are, at every scrape as they were counted last: never half a count."""

    def __init__(self) -> None:
        self._bounded = Bounded()
        self._counts: Mapping[_Labels, int] = {}

    def count(self, orphans: Iterable[Orphan]) -> None:
        """Shows these and no others."""
        counted: Counter[_Labels] = Counter()
        for orphan in sorted(orphans, key=lambda one: one.spec.resource_type):
            counted[
                orphan.spec.object.kind,
                self._bounded(orphan.spec.resource_type),
                orphan.state.value,
            ] += 1
        self.show(counted)

    def show(self, counts: Mapping[_Labels, int]) -> None:
        """Shows these numbers by kind, resource type and state."""
        self._counts = counts

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """See Collector."""
        family = GaugeMetricFamily(
            "actuator_orphans",
            "What force deletions left outside the seed and is on record.",
            labels=("kind", "resource_type", "state"),
        )
        for labels, number in self._counts.items():
            family.add_metric(labels, number)
        yield family


def _settled_at(orphan: Orphan) -> datetime | None:
    """Since when nobody has to look after it; None where somebody has, or nobody can say."""
    times = {
        OrphanState.CLOSED: orphan.status.closed_at,
        OrphanState.GONE: orphan.status.verified_at,
    }
    try:
        return parse_time(times.get(orphan.state) or "")
    except ValueError:
        return None


def _delete(client: Client, orphan: Orphan) -> bool:
    """Whether it is gone now; what came anew under the same name is another."""
    name = orphan.metadata.name
    try:
        client.delete(ORPHANS, name, uid=orphan.metadata.uid)
    except (NotFound, Conflict):
        return True
    except ApiError as error:  # the others' turn; it has another in the next look
        fields = {"orphan": name, "error": str(error)}
        logger.warning("a settled orphan cannot be deleted", extra={"fields": fields})
        return False
    logger.info("a settled orphan was deleted", extra={"fields": {"orphan": name}})
    return True
