"""LeaderElector: at most one of the replicas that share a Lease acts.

Flow: `run` waits for the Lease → `on_started` → renewals → `release`, or lost: `on_lost`.

Guarantees:
- `check` raises LeaseLost unless an acknowledged renewal was sent less than `renew_deadline` ago.
  It needs no thread, no answer and no clock of another machine.
- An elector that lost the lease never leads again.
- Two electors never lead at the same time: others wait a full lease duration, by their own
  clocks, after the last change of the record that they saw; the holder stops earlier than that.
- After `release`, a waiting replica leads within one retry period.
- `on_lost` is called once, at the renew deadline at the latest, also while a request hangs.

Assumptions: monotonic clocks run at the same speed, also while a machine sleeps. No other client
edits the Lease. The client's requests are not fenced by this elector.
Caveats: a write sent just before the deadline may arrive after it; it has
`lease_duration - renew_deadline` until another replica can lead. Waiting ends with `stop`;
leading does not: running operations need the lease until `release`.
Errors: errors and missing answers of the API server are logged and retried; none is raised.

The official package's leader election is not suitable: it compares wall clocks of other machines,
cannot be stopped, does not release, and has no jitter.
"""

import logging
import math
import random
import socket
import threading
import uuid
from collections.abc import Callable
from datetime import datetime
from typing import Any

from msgspec import Struct

from actuator.errors import Conflict, LeaseLost, NotFound
from actuator.interface import Client, Clock, Resource
from actuator.meta import Raw
from generic.serving.metrics import Metrics

logger = logging.getLogger(__name__)

LEASES = Resource("coordination.k8s.io/v1", "leases")
SERVES = "actuator.extensions.gardener.cloud/serves"
"""Annotation of a Lease: the kinds and types that its holder serves."""
JITTER = 0.2
"""The maximum share by which a pause is randomly shortened."""


class Timing(Struct, frozen=True, kw_only=True):
    """Seconds; the defaults are controller-runtime's. Raises ValueError if inconsistent."""

    lease_duration: float = 15.0
    """How long other replicas wait after the last renewal that they saw."""
    renew_deadline: float = 10.0
    """How long the holder acts after a renewal."""
    retry_period: float = 2.0
    """The maximum pause between two attempts to get or renew the Lease."""

    def __post_init__(self) -> None:
        if not 0 < self.retry_period < self.renew_deadline < self.lease_duration:
            raise ValueError(
                "leader election requires retry period < renew deadline < lease duration"
            )


class LeaderElector:
    """One candidate for one Lease; see the module. Used once: `run`, then `release`."""

    def __init__(
        self,
        client: Client,
        namespace: str,
        name: str,
        *,
        on_started: Callable[[], None],
        on_lost: Callable[[], None],
        clock: Clock,
        metrics: Metrics,
        timing: Timing | None = None,
        serves: str = "",
    ) -> None:
        """`serves` names the kinds and types of the manager; it becomes an annotation."""
        self.identity = f"{socket.gethostname()}_{uuid.uuid4()}"
        self._client = client
        self._namespace = namespace
        self._name = name
        self._on_started = on_started
        self._on_lost = on_lost
        self._clock = clock
        self._metrics = metrics
        self._timing = timing or Timing()
        self._annotations = {SERVES: serves} if serves else {}
        self._requests = threading.Lock()  # held during an attempt: one at a time
        self._ending = threading.Lock()
        self._over = threading.Event()
        self._stop = self._over  # that of `run`
        self._renewed: float | None = None  # when the last successful renewal was sent
        self._lease: Raw | None = None  # as our last write returned it
        self._seen: Any = None  # the holder's record, and since when it is unchanged
        self._seen_since = 0.0
        self._holder = ""
        self._trouble = ""
        metrics.leader(name, False)

    def is_leading(self) -> bool:
        """Whether this process may act at the moment."""
        renewed = self._renewed
        return renewed is not None and not self._over.is_set() and self._left(renewed) > 0

    def check(self) -> None:
        """Raise LeaseLost unless this process may act at the moment."""
        if not self.is_leading():
            raise LeaseLost(f"this process does not hold the lease {self._namespace}/{self._name}")

    def run(self, stop: threading.Event) -> None:
        """Wait for the Lease until `stop` is set, then lead until `release` or loss.

        `on_started` runs in a thread of its own.
        """
        self._stop = stop
        while not stop.is_set() and not self._over.is_set():
            if self._try():
                break
            stop.wait(self._pause())
        if not stop.is_set() and self.is_leading():
            self._lead()

    def release(self) -> None:
        """Stop leading and release the Lease, so that a successor can take over at once.

        If the API server does not accept the release, the lease expires.
        """
        if not self._end():
            return
        if not self._requests.acquire(timeout=self._timing.renew_deadline):
            return  # a renewal hangs; a second write would hang too
        try:
            if self._renewed is not None:
                self._give_back()
        except Exception as error:  # any error: the shutdown continues
            logger.info("lease not released, it expires", extra=self._fields(error=str(error)))
        finally:
            self._requests.release()

    def _lead(self) -> None:
        logger.info("leading", extra=self._fields(identity=self.identity))
        self._metrics.leader(self._name, True)
        for target in (self._start, self._keep_renewing):
            threading.Thread(target=target, name=f"lease-{self._name}", daemon=True).start()
        while self.is_leading():
            self._over.wait(self._left(self._renewed or 0))
        self._lose()

    def _start(self) -> None:
        try:
            self._on_started()
        except Exception:  # a leader that cannot start must yield to one that works
            logger.exception("starting to lead failed", extra=self._fields())
            self._lose()

    def _keep_renewing(self) -> None:
        while not self._over.wait(self._pause()):
            self._try()

    def _lose(self) -> None:
        if self._end():
            logger.error("lease lost", extra=self._fields())
            self._on_lost()

    def _end(self) -> bool:
        """End the election; return False if it had ended before."""
        with self._ending:
            if self._over.is_set():
                return False
            self._over.set()
        self._metrics.leader(self._name, False)
        return True

    def _try(self) -> bool:
        """Attempt once to get or renew the Lease; return whether it succeeded."""
        with self._requests:
            if self._over.is_set():
                return False
            sent = self._clock.monotonic()
            try:
                mine = self._write()
                self._trouble = ""
            except Exception as error:  # no answer of an API server may end the process
                self._lease = None
                self._report(error)
                return False
            if mine:
                return self._extend(sent)
        if self._renewed is not None:  # another holder: no reason to wait for the deadline
            self._lose()
        return False

    def _extend(self, sent: float) -> bool:
        """Count a renewal, unless the previous one had already expired."""
        before = sent if self._renewed is None else self._renewed
        if self._left(before) <= 0:
            return False
        self._renewed = sent
        return True

    def _write(self) -> bool:
        """Write our name into the Lease if allowed; return False if another replica holds it."""
        lease = self._lease or self._read()
        if lease is None:
            meta: Raw = {"name": self._name, "namespace": self._namespace}
            meta["annotations"] = self._annotations
            head = {"apiVersion": LEASES.api_version, "kind": "Lease", "metadata": meta}
            self._lease = self._client.create(LEASES, {**head, "spec": self._record({})})
            return True
        if self._is_held_by_another(lease["spec"]):
            return False
        self._lease = self._patch(lease, self._record(lease["spec"]))
        return True

    def _read(self) -> Raw | None:
        try:
            lease = self._client.get(LEASES, self._name, self._namespace)
        except NotFound:
            return None
        lease.setdefault("spec", {})
        if lease["spec"] != self._seen:
            self._seen = lease["spec"]
            self._seen_since = self._clock.monotonic()
        holder = lease["spec"].get("holderIdentity") or ""
        if holder != self._holder:
            self._holder = holder
            logger.info("leader changed", extra=self._fields(holder=holder))
        return lease

    def _is_held_by_another(self, record: Raw) -> bool:
        """Whether another replica holds it: judged by local time, not by the record's times."""
        holder = record.get("holderIdentity") or ""
        if holder in ("", self.identity):
            return False
        promised = record.get("leaseDurationSeconds") or self._timing.lease_duration
        return self._clock.monotonic() < self._seen_since + promised

    def _patch(self, lease: Raw, record: Raw) -> Raw:
        """Write the record. Raises Conflict if another client wrote the Lease since it was read."""
        version = lease["metadata"]["resourceVersion"]
        meta: Raw = {"resourceVersion": version, "annotations": self._annotations}
        return self._client.patch(
            LEASES, self._name, self._namespace, {"metadata": meta, "spec": record}
        )

    def _record(self, before: Raw) -> Raw:
        now = micro_time(self._clock.now())
        record: Raw = {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": math.ceil(self._timing.lease_duration),
            "renewTime": now,
        }
        if before.get("holderIdentity") != self.identity:
            record["acquireTime"] = now
            record["leaseTransitions"] = before.get("leaseTransitions", -1) + 1
        return record

    def _give_back(self) -> None:
        released = {"holderIdentity": "", "leaseDurationSeconds": 1}
        for lease in (self._lease, None):  # again if another client changed it, such as its labels
            current = lease or self._read()
            if current is None or current["spec"].get("holderIdentity") != self.identity:
                return
            try:
                now = micro_time(self._clock.now())
                self._patch(current, {**released, "renewTime": now})
            except Conflict:
                continue
            logger.info("lease released", extra=self._fields())
            return

    def _left(self, renewed: float) -> float:
        return renewed + self._timing.renew_deadline - self._clock.monotonic()

    def _pause(self) -> float:
        return self._timing.retry_period * (1 - random.random() * JITTER)

    def _report(self, error: Exception) -> None:
        """Log an error once, until a different one occurs; a leader's if it may lose the lease."""
        if isinstance(error, Conflict):
            return  # another replica was faster, as expected in an election
        text = str(error)
        half = self._timing.renew_deadline / 2
        passing = self._stop.is_set() or self._left(self._renewed or -math.inf) > half
        level = logging.DEBUG if passing or text == self._trouble else logging.WARNING
        self._trouble = "" if passing else text
        logger.log(level, "lease update failed", extra=self._fields(error=text))

    def _fields(self, **more: str) -> dict[str, Any]:
        return {"fields": {"lease": f"{self._namespace}/{self._name}", **more}}


def micro_time(time: datetime) -> str:
    """Return the time as Leases have it, in microseconds; `time` is in UTC."""
    return time.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
