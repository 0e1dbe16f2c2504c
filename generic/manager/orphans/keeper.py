"""Keeper: counts the Orphans of one manager's objects, and deletes old records.

It runs beside the controllers while a process leads. A Closed Orphan ages from closedAt, a Gone one
from verifiedAt; open ones are never deleted. A ForceDeletionRecord ages from its creation, and is
kept while an Orphan of its object is open.
"""

import logging
import math
import threading
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta

import attrs
from prometheus_client import CollectorRegistry, Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from actuator.errors import ApiError, Conflict, Forbidden, LeaseLost, NotFound, TooManyRequests
from actuator.interface import Client, Clock, Permission, Resource
from actuator.meta import parse_time
from generic.kube.client import each
from generic.kube.clock import SystemClock, trusted_now
from generic.kube.refusals import explained
from generic.manager.orphans.ledger import Serving, read_records, serving
from generic.reconciler.orphans.forced import FORCE_DELETIONS
from generic.reconciler.orphans.kind import KIND_LABEL, ORPHANS, TYPE_LABEL, Orphan, OrphanState
from generic.serving.metrics.exposition import Bounded
from generic.serving.metrics.values import OLDER, ORPHAN_AGES

logger = logging.getLogger(__name__)

RETENTION = timedelta(days=400)
_RECORDS_SECONDS = 3600.0
"""Seconds between two looks at ForceDeletionRecords, of which there may be thousands."""
_POLICY_REMEDY = (
    "run the manager with the ServiceAccount of its chart, or set --force-deletion-retention-days "
    "to none"
)

_Labels = tuple[str, str, str]


@attrs.frozen(kw_only=True)
class Retention:
    """The time for which records are kept, by their state; None: without limit."""

    closed: timedelta | None = RETENTION
    gone: timedelta | None = RETENTION
    force_deletions: timedelta | None = RETENTION

    def __attrs_post_init__(self) -> None:
        """Raise ValueError for a negative time."""
        for name, time in attrs.asdict(self).items():
            if time is not None and time < timedelta():
                raise ValueError(f"retention of {name} must not be negative, got {time}")

    @classmethod
    def of_days(cls, **days: float | None) -> "Retention":
        """Return the retention of these numbers of days, by field."""
        return cls(**{name: None if n is None else timedelta(days=n) for name, n in days.items()})


class Keeper(Collector):
    """Processes the records of the actuators `added` to a manager, every `interval_seconds`.

    One per metrics registry. Raises ValueError unless the interval is above 0.
    """

    def __init__(
        self,
        added: Sequence[Serving],
        registry: CollectorRegistry,
        *,
        retention: Retention = Retention(),
        interval_seconds: float = 300.0,
        clock: Clock | None = None,
    ) -> None:
        if not 0 < interval_seconds < math.inf:
            raise ValueError(f"interval_seconds must be above 0, got {interval_seconds!r}")
        self._added = added
        self._retention = retention
        self._interval = interval_seconds
        self._clock = clock or SystemClock()
        self._bounded = Bounded()
        self._counts: Mapping[_Labels, int] = {}
        self._open_since: Sequence[datetime] = ()
        self._next_records = -math.inf
        self._reported: set[Resource] = set()
        registry.register(self)

    @property
    def permissions(self) -> tuple[Permission, ...]:
        """The permissions of `run`."""
        return tuple(of.permission("list", "delete") for of in (ORPHANS, FORCE_DELETIONS))

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
        """Run one pass: delete old records, and count the Orphans. Raises ApiError.

        Of each record it keeps a few values only: there may be thousands.
        """
        found: Counter[_Labels] = Counter()
        open_since: list[datetime] = []
        still_open: set[str] = set()
        for orphan in self._read(client):
            if not serving(self._added, orphan.spec.object) or self._is_deleted(client, orphan):
                continue
            former = orphan.spec.object
            found[orphan.spec.resource_type, former.kind, orphan.state.value] += 1
            if orphan.is_open:
                still_open.add(former.uid)
                since = _recorded(orphan)
                if since is not None:
                    open_since.append(since)
        counts: Counter[_Labels] = Counter()
        for (type_, kind, state), number in sorted(found.items()):
            counts[kind, self._bounded(type_), state] += number
        self._counts = counts
        self._open_since = open_since
        self._delete_old_records(client, still_open)

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

    @property
    def _of_our_kinds(self) -> str:
        """The selector of records; "" without an actuator."""
        kinds = ",".join(sorted({item.kind.name for item in self._added}))
        return f"{KIND_LABEL} in ({kinds})" if kinds else ""

    def _read(self, client: Client) -> Iterable[Orphan]:
        selector = self._of_our_kinds
        return read_records(client, Orphan, label_selector=selector) if selector else ()

    def _is_deleted(self, client: Client, orphan: Orphan) -> bool:
        """Delete an Orphan whose time is over; return whether it is deleted."""
        settled, retention = _settled(orphan, self._retention)
        if not self._is_over(settled, retention):
            return False
        return self._delete(client, ORPHANS, orphan.metadata.name, orphan.metadata.uid)

    def _delete_old_records(self, client: Client, still_open: Collection[str]) -> None:
        """Delete ForceDeletionRecords, except of the UIDs with open Orphans. Raises ApiError."""
        selector = self._of_our_kinds
        retention = self._retention.force_deletions
        now = self._clock.monotonic()
        if not selector or retention is None or now < self._next_records:
            return
        with suppress(NotFound):  # readiness reports that the CRD is missing
            for found in each(client, FORCE_DELETIONS, label_selector=selector, metadata_only=True):
                metadata = found["metadata"]
                name: str = metadata["name"]
                over = self._is_over(metadata["creationTimestamp"], retention)
                if over and name not in still_open and self._serves(metadata["labels"]):
                    self._delete(client, FORCE_DELETIONS, name, metadata["uid"])
            self._next_records = now + _RECORDS_SECONDS

    def _delete(self, client: Client, resource: Resource, name: str, uid: str) -> bool:
        """Delete the record with this uid; return whether it is deleted.

        The first refusal by a policy or a role is logged, since others repeat it each hour.
        """
        fields = {"resource": str(resource), "record": name}
        try:
            client.delete(resource, name, uid=uid)
        except (NotFound, Conflict):
            return True
        except Forbidden as error:
            if resource not in self._reported:
                self._reported.add(resource)
                fields["error"] = explained(error, PolicyDenied=_POLICY_REMEDY)
                logger.warning("old records are kept: deletion refused", extra={"fields": fields})
            return False
        except ApiError as error:  # continue with the others; retried in the next pass
            fields["error"] = str(error)
            logger.warning("record deletion failed", extra={"fields": fields})
            return False
        logger.info("old record deleted", extra={"fields": fields})
        return True

    def _serves(self, labels: Mapping[str, str]) -> bool:
        """Whether the record with these labels is about an object of our actuators."""
        kind = labels[KIND_LABEL]
        type_ = labels.get(TYPE_LABEL, "")
        return any(
            item.kind.name == kind and (not item.types or type_ in item.types)
            for item in self._added
        )

    def _is_over(self, since: str | None, retention: timedelta | None) -> bool:
        now = trusted_now(self._clock)
        if since is None or now is None or retention is None:
            return False
        try:
            return now - parse_time(since) > retention
        except ValueError:
            return False


def _settled(orphan: Orphan, retention: Retention) -> tuple[str | None, timedelta | None]:
    """Return since when it is settled, None for an open one, and for how long it is kept."""
    if orphan.state is OrphanState.CLOSED:
        return orphan.status.closed_at, retention.closed
    if orphan.state is OrphanState.GONE:
        return orphan.status.verified_at, retention.gone
    return None, None


def _age(seconds: float) -> str:
    """Return the least age of ORPHAN_AGES that is not exceeded, or OLDER."""
    return next((age for age, bound in ORPHAN_AGES.items() if seconds <= bound), OLDER)


def _recorded(orphan: Orphan) -> datetime | None:
    """Return when it was recorded, or None for an invalid time."""
    try:
        return parse_time(orphan.spec.recorded_at or orphan.metadata.creation_timestamp or "")
    except ValueError:
        return None
