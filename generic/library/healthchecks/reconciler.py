"""HealthReconciler: runs the checks of one object, and writes their results as its conditions.

Flow: request → object from the store → checks in parallel → conditions → one patch.

Guarantees:
- Only conditions of the registered types are changed, by a JSON patch that tests the object's uid
  and resourceVersion as read. Go's library writes the whole status with Update, and so conflicts
  with the reconciler of the same object; here neither loses the writes of the other.
- Nothing is written without a change. Times alone are no change: gardenlet detects stale reports
  by the heartbeat Lease, not by a condition's lastUpdateTime.
- Deleting and migrating objects are skipped, and their conditions stay.
- The worker is free after one sync period at the latest, plus the time of a patch.
"""

import json
import logging
from collections.abc import Sequence
from functools import partial
from typing import Any

from actuator.cluster import ClusterState
from actuator.codec import decode_json, encode
from actuator.conditions import find_condition, set_condition
from actuator.errors import ApiError, DecodeError, LeaseLost
from actuator.interface import Client, Clock
from actuator.meta import Condition, Raw
from generic.controller.controller import Again, Done, Failed, Result
from generic.controller.predicates import OPERATION
from generic.kube.clusters import Clusters
from generic.kube.finalizers import Stale
from generic.kube.headers import Event, Header, Request, as_dict
from generic.kube.patches import add, test, test_version
from generic.kube.remote import Remote
from generic.kube.store import StoredObject
from generic.kube.writer import ObjectGone, Writer
from generic.library.healthchecks import aggregate
from generic.library.healthchecks.model import HealthChecks, HealthContext
from generic.library.healthchecks.runs import Runs
from generic.serving import logs

logger = logging.getLogger(__name__)

_SHOOT_SECONDS = 10.0
"""Maximum seconds of a request to a shoot: the worker of the checks waits for them."""
_MAX_ROUNDS = 10  # of reading and patching again, before the queue's backoff applies
_UNKNOWN_CLUSTERS = (ClusterState.MISSING, ClusterState.UNREADABLE, ClusterState.WITHOUT_SHOOT)


def wants_check(event: Event[Header]) -> bool:
    """Accept new objects, changed specs, and objects that were skipped until now."""
    old = event.old
    new = event.new
    if new is None or _rests(new):
        return False
    return old is None or old.generation != new.generation or _rests(old)


class HealthReconciler:
    """Checks the objects of one kind; called for events that `wants_check` accepts."""

    def __init__(
        self, checks: HealthChecks, writer: Writer, clusters: Clusters, client: Client, clock: Clock
    ) -> None:
        self._checks = checks
        self._writer = writer
        self._clusters = clusters
        self._client = client
        self._clock = clock
        self._shoots = Remote(client)
        self._runs = Runs()

    def reconcile(self, request: Request, _failures: int = 0) -> Result:
        """Run the checks and write the conditions; raises no exception on purpose."""
        entry = self._writer.store.get(request)
        if entry is None or _rests(entry.header):
            self._shoots.forget(request.namespace)
            return Done()
        log = logs.bind(logger, kind=self._checks.cls.KIND.name, object=str(request))
        try:
            self._write(request, entry.header.uid, self._look(request, entry), log)
        except (ObjectGone, LeaseLost):
            return Done()
        except DecodeError as error:  # the other reconciler reports it in the status
            log.warning(
                "health check skipped: cannot read the object",
                extra={"fields": {"error": str(error)}},
            )
        except (ApiError, Stale) as error:
            fields = {"error": str(error)}
            log.warning("condition update failed", extra={"fields": fields})
            return Failed(cap=self._checks.sync_period)
        return Again(self._checks.sync_period)

    def _look(self, request: Request, entry: StoredObject[Header]) -> list[Condition]:
        """Return the wanted conditions, without times. Raises DecodeError."""
        types = self._checks.condition_types
        kind = self._checks.cls.KIND
        obj: Any = decode_json(self._checks.cls, entry.raw)
        cluster = self._clusters.cluster(request.namespace)
        if (entry.header.class_ or "shoot") == "shoot":
            if self._clusters.resolve(kind, request.namespace).state in _UNKNOWN_CLUSTERS:
                why = f"cannot read Cluster {request.namespace}"
                return [aggregate.not_executed(type, why) for type in types]
            if cluster.hibernation_enabled:
                # Requeued anyway: it costs no request, and the end of hibernation is noticed.
                return [aggregate.hibernated(type) for type in types]
        connect = lambda: self._shoots.shoot(request.namespace).within(_SHOOT_SECONDS)  # noqa: E731
        ctx = HealthContext(obj, cluster, self._client, connect)
        return self._run(entry.header.uid, ctx)

    def _run(self, uid: str, ctx: HealthContext) -> list[Condition]:
        checks = self._checks.checks
        tasks = [partial(check.run, ctx) for check in checks]
        findings = self._runs.run(uid, tasks, self._checks.sync_period)
        found = list(zip(checks, findings, strict=True))
        before: list[Condition] = ctx.obj.status.conditions
        now = self._clock.now()
        return [
            aggregate.condition(
                type,
                [finding for check, finding in found if check.condition_type == type],
                find_condition(before, type),
                now,
            )
            for type in self._checks.condition_types
        ]

    def _write(
        self, request: Request, uid: str, wanted: Sequence[Condition], log: logs.Log
    ) -> None:
        """Patch the conditions. Raises Stale if other clients change them faster, or ApiError."""
        for attempt in range(_MAX_ROUNDS):
            entry = self._writer.latest(request, uid)
            if _rests(entry.header):
                return  # deleted, or migrated, meanwhile
            patch = self._patch(entry, wanted)
            if not patch:
                return
            try:
                self._writer.patch(request, uid, patch, subresource="status")
            except Stale:
                if attempt == _MAX_ROUNDS - 1:
                    raise
                continue
            fields = {condition.type: condition.status for condition in wanted}
            log.info("conditions updated", extra={"fields": fields})
            return

    def _patch(self, entry: StoredObject[Header], wanted: Sequence[Condition]) -> list[Raw]:
        """Return the patch to the wanted conditions; empty if they are equal."""
        obj: Any = decode_json(self._checks.cls, entry.raw)
        before: list[Condition] = obj.status.conditions
        after = before
        for condition in wanted:
            after = set_condition(after, condition, self._clock.now())
        after = [item for item in after if item.type not in self._checks.stale_conditions]
        if after == before:
            return []
        raw = json.loads(entry.raw)
        status = as_dict(raw.get("status"))
        read: list[Raw] = status.get("conditions") or []  # others' conditions stay as they are
        conditions = [
            read[before.index(item)] if item in before else encode(item) for item in after
        ]
        change = add("/status/conditions", conditions)
        if not status:
            change = add("/status", {"conditions": conditions})
        return [test("/metadata/uid", entry.header.uid), test_version(raw), change]


def _rests(header: Header) -> bool:
    """Whether the object is deleting or migrating: its health is not checked."""
    migrating = header.annotations.get(OPERATION) == "migrate"
    migrated = header.last_operation is not None and header.last_operation[0] == "Migrate"
    return header.deletion_timestamp is not None or migrating or migrated
