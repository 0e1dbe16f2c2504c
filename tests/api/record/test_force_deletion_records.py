"""Every forced object leaves a ForceDeletionRecord, also when nothing remains."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from actuator import ActuatorError, ErrorCode, ExternalResource, SeedObjects
from actuator.codec import decode
from actuator.errors import Forbidden, Invalid, NotFound, Unavailable
from actuator.interface import Client, Resource
from actuator.meta import Raw, parse_time
from generic.kube.client import HttpClient
from generic.kube.delegating import DelegatingClient
from generic.library.machines import MACHINE_KINDS, MACHINES
from generic.manager.manager import Manager
from generic.manager.options import Options
from generic.manager.orphans.keeper import Keeper, Retention
from generic.reconciler import budget
from generic.reconciler.orphans import (
    FORCE_DELETIONS,
    ORPHANS,
    SHOOT_LABEL,
    ForceDeletionRecord,
    OrphanedFrom,
    OrphanReason,
)
from generic.reconciler.orphans.forced import ForceDeletionSpec
from generic.reconciler.orphans.record import record
from generic.testing.seed import install_crds
from tests.support.cluster.harness import Script, Seed, eventually, remove_namespace, samples
from tests.support.objects.builders import cluster, infrastructure

Start = Callable[..., Manager]
REMOVED = "actuator_finalizers_removed_externally_total"
LOST = "actuator_force_deletions_not_recorded_total"


class Counting(DelegatingClient):
    """Counts requests by verb and resource, and refuses those of a test."""

    def __init__(self, inner: Client, refuses: Callable[[], None] = lambda: None) -> None:
        super().__init__(inner)
        self.counts: Counter[str] = Counter()
        self.refuses = refuses

    def create(self, resource: Resource, obj: Raw) -> Raw:
        self.counts[f"create {resource}"] += 1
        if resource == FORCE_DELETIONS:
            self.refuses()
        return self._inner.create(resource, obj)

    def patch(self, resource: Resource, *given: Any, **named: Any) -> Raw:
        self.counts[f"patch {resource}"] += 1
        return self._inner.patch(resource, *given, **named)


def counting(clients: list[Counting]) -> Callable[[Client], Counting]:
    """Return an interceptor whose clients are added to the list."""

    def intercept(client: Client) -> Counting:
        clients.append(Counting(client))
        return clients[-1]

    return intercept


def records(seed: Seed) -> list[Raw]:
    selector = f"{SHOOT_LABEL}={seed.namespace}"
    return seed.client.list(FORCE_DELETIONS, label_selector=selector)


def spec_of(seed: Seed) -> ForceDeletionSpec:
    (found,) = records(seed)
    return decode(ForceDeletionRecord, found).spec


def force(seed: Seed) -> str:
    """Force the deletion of the object; return its UID once it is deleted."""
    uid: str = seed.get()["metadata"]["uid"]
    seed.update_cluster(cluster(seed.namespace, force="true"))
    seed.delete()
    eventually(seed.is_gone)
    return uid


def ready(seed: Seed, start: Start, actuator: Script, **options: Any) -> Manager:
    manager = start(actuator, **options)
    seed.create(infrastructure(seed.namespace, seed.namespace))
    eventually(seed.is_ready)
    return manager


def test_an_object_that_leaves_nothing_leaves_a_record_for_one_more_request(
    seed: Seed, start: Start
) -> None:
    clients: list[Counting] = []
    before = datetime.now(UTC) - timedelta(seconds=2)
    ready(seed, start, Script(), intercept=counting(clients))
    uid = force(seed)
    spec = spec_of(seed)
    assert records(seed)[0]["metadata"]["name"] == uid
    assert (spec.outcome, spec.reason) == ("force_deleted", "ForceDeleted")
    assert (spec.object.uid, spec.object.kind, spec.object.name) == (uid, "Infrastructure", "infra")
    times = [parse_time(at or "") for at in (spec.forced_at, spec.finished_at)]
    assert before <= times[0] <= times[1] <= datetime.now(UTC)
    assert spec.deletion_requested_at is not None
    assert (spec.budget_seconds, spec.errors, spec.orphans) == (90.0, [], [])
    assert 0 <= spec.used_seconds < 90
    counts = clients[0].counts
    written = {key: n for key, n in counts.items() if "events" not in key and "leases" not in key}
    assert written == {f"patch {seed.resource}": 3, f"create {FORCE_DELETIONS}": 1}


def test_an_object_that_is_not_forced_leaves_none(seed: Seed, start: Start) -> None:
    ready(seed, start, Script())
    seed.delete()
    eventually(seed.is_gone)
    assert records(seed) == []


def test_the_record_names_errors_stripped_finalizers_and_orphans(
    seed: Seed, start: Start, admin: HttpClient
) -> None:
    install_crds(admin, MACHINE_KINDS)
    finalizer = "machine.sapcloud.io/machine-controller-manager"

    class Stubborn(Script):
        seed_objects = (SeedObjects(MACHINES, finalizers=[finalizer]),)

        def force_delete(self, ctx: Any, obj: Any, cluster: Any) -> None:
            super().force_delete(ctx, obj, cluster)
            ctx.delete_seed_objects(self.seed_objects)
            if self.operations().count("force_delete") < 3:
                raise ActuatorError("no\x1b[2J", codes=[ErrorCode.ERR_INFRA_UNAUTHENTICATED])

        def external_resources(self, obj: Any) -> Iterator[ExternalResource]:
            yield ExternalResource(type="VPC", id="vpc-1")

    ready(seed, start, Stubborn())
    machine = {"metadata": {"name": "m", "namespace": seed.namespace, "finalizers": [finalizer]}}
    kind = next(cls.KIND for cls in MACHINE_KINDS if cls.KIND.plural == "machines")
    admin.create(MACHINES, {"apiVersion": kind.api_version, "kind": kind.name, **machine})
    force(seed)
    spec = spec_of(seed)
    assert (spec.outcome, spec.failed_attempts) == ("orphaned", 2)
    (error,) = spec.errors
    assert (error.count, error.codes) == (2, ["ERR_INFRA_UNAUTHENTICATED"])
    assert "no" in error.text
    (stripped,) = spec.stripped
    assert (stripped.name, stripped.finalizer, spec.stripped_count) == ("m", finalizer, 1)
    selector = f"{SHOOT_LABEL}={seed.namespace}"
    orphans = seed.client.list(ORPHANS, label_selector=selector)
    assert spec.orphans == [item["metadata"]["name"] for item in orphans]
    assert spec.orphan_count == 1


def test_the_record_outlives_the_namespace_and_cannot_be_changed(
    seed: Seed, start: Start, admin: HttpClient
) -> None:
    ready(seed, start, Script())
    name = force(seed)
    with pytest.raises(Invalid, match="immutable"):
        admin.patch(FORCE_DELETIONS, name, "", {"spec": {"outcome": "orphaned"}})
    remove_namespace(admin, seed.namespace)
    assert spec_of(seed).outcome == "force_deleted"


def strip_while_forced(seed: Seed, start: Start, **options: Any) -> Manager:
    """Force a deletion that fails, until another party removes the finalizer."""

    class Failing(Script):
        def external_resources(self, obj: Any) -> Iterator[ExternalResource]:
            yield ExternalResource(type="VPC", id="vpc-1")

        def force_delete(self, ctx: Any, obj: Any, cluster: Any) -> None:
            super().force_delete(ctx, obj, cluster)
            if not sum(samples(manager, REMOVED).values()):
                raise ActuatorError("the cloud says no")

    manager = ready(seed, start, Failing(), **options)
    seed.update_cluster(cluster(seed.namespace, force="true"))
    seed.delete()
    eventually(lambda: seed.last_operation() == ("Delete", "Error"))
    seed.patch({"metadata": {"finalizers": None}})
    eventually(seed.is_gone)
    return manager


def test_an_object_whose_finalizer_was_removed_externally_leaves_a_record_for_one_more_request(
    seed: Seed, start: Start
) -> None:
    clients: list[Counting] = []
    manager = strip_while_forced(seed, start, intercept=counting(clients))
    eventually(lambda: records(seed))
    spec = spec_of(seed)
    assert (spec.outcome, spec.reason) == ("orphaned", "FinalizerRemovedExternally")
    assert (spec.object.type, spec.object.name) == (seed.namespace, "infra")
    assert (spec.orphan_count, spec.budget_seconds) == (1, 90.0)
    (error,) = spec.errors
    assert error.text == "the cloud says no"
    assert spec.failed_attempts == error.count >= 1
    times = [spec.deletion_requested_at, spec.forced_at, spec.finished_at]
    assert all(times)
    assert spec.forced_at <= spec.finished_at  # type: ignore[operator]
    eventually(lambda: seed.events("CleanedUpLate"))
    assert clients[0].counts[f"create {FORCE_DELETIONS}"] == 1
    assert not sum(samples(manager, LOST).values())


def test_an_external_removal_leaves_no_record_if_the_deletion_was_not_forced(
    seed: Seed, start: Start
) -> None:
    def refuse(*_: Any) -> None:
        raise ActuatorError("the cloud says no")

    clients: list[Counting] = []
    ready(seed, start, Script(delete=refuse), intercept=counting(clients))
    seed.delete()
    eventually(lambda: seed.last_operation() == ("Delete", "Error"))
    seed.patch({"metadata": {"finalizers": None}})
    selector = f"{SHOOT_LABEL}={seed.namespace}"
    eventually(lambda: seed.client.list(ORPHANS, label_selector=selector))
    eventually(lambda: seed.events("FinalizerRemovedExternally"))
    assert clients[0].counts[f"create {FORCE_DELETIONS}"] == 0


@pytest.mark.parametrize("error", [Forbidden(403, "no"), Unavailable(503, "try later")])
def test_a_record_of_an_external_removal_that_cannot_be_written_is_logged_in_the_end(
    seed: Seed,
    start: Start,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
) -> None:
    def refuse() -> None:
        raise error

    monkeypatch.setattr("generic.reconciler.deletion.late_cleanup._MAX_ATTEMPTS", 3)
    intercept = lambda client: Counting(client, refuse)
    with caplog.at_level(logging.ERROR, logger="generic.reconciler.reporter"):
        manager = strip_while_forced(seed, start, intercept=intercept)
        eventually(lambda: sum(samples(manager, LOST).values()) == 1)
        eventually(lambda: seed.events("CleanedUpLate"))
    fields = [getattr(item, "fields", {}) for item in caplog.records]
    (logged,) = [json.loads(found["record"]) for found in fields if "record" in found]
    assert (logged["reason"], logged["outcome"]) == ("FinalizerRemovedExternally", "orphaned")


def test_a_record_of_an_external_removal_is_tried_again(seed: Seed, start: Start) -> None:
    left = [6]

    def refuse() -> None:
        left[0] -= 1
        if left[0] >= 0:
            raise Unavailable(503, "try later")

    manager = strip_while_forced(seed, start, intercept=lambda client: Counting(client, refuse))
    eventually(lambda: records(seed))
    assert not sum(samples(manager, LOST).values())


def test_a_record_that_a_former_process_wrote_stays_as_it_is(seed: Seed, start: Start) -> None:
    manager = ready(seed, start, Script())
    uid = seed.get()["metadata"]["uid"]
    former = {"apiVersion": "x/v1", "kind": "Infrastructure", "name": "infra", "uid": uid}
    times = {"finishedAt": "2026-01-01T00:00:00Z"}
    metadata = {"name": uid, "labels": {SHOOT_LABEL: seed.namespace}}
    manifest = {"apiVersion": ForceDeletionRecord.KIND.api_version, "kind": "ForceDeletionRecord"}
    spec = {"object": former, "outcome": "orphaned", "reason": "BudgetExceeded", **times}
    seed.client.create(FORCE_DELETIONS, {**manifest, "metadata": metadata, "spec": spec})
    before = records(seed)
    force(seed)
    assert records(seed) == before
    assert not sum(samples(manager, LOST).values())


@pytest.mark.parametrize("error", [Forbidden(403, "no"), Invalid(422, "no"), NotFound(404, "no")])
def test_a_refused_record_is_logged_counted_and_holds_nothing_up(
    seed: Seed, start: Start, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    def refuse() -> None:
        raise error

    manager = ready(seed, start, Script(), intercept=lambda client: Counting(client, refuse))
    with caplog.at_level(logging.ERROR, logger="generic.reconciler.reporter"):
        uid = force(seed)
    assert records(seed) == []
    eventually(lambda: seed.events("ForceDeletionNotRecorded"))
    assert sum(samples(manager, LOST).values()) == 1
    fields = [getattr(item, "fields", {}) for item in caplog.records]
    (logged,) = [json.loads(found["record"]) for found in fields if "record" in found]
    assert (logged["object"]["uid"], logged["outcome"]) == (uid, "force_deleted")


def test_a_record_is_tried_again_within_the_budget(seed: Seed, start: Start) -> None:
    left = [6]

    def refuse() -> None:
        left[0] -= 1
        if left[0] >= 0:
            raise Unavailable(503, "try later")

    manager = ready(seed, start, Script(), intercept=lambda client: Counting(client, refuse))
    force(seed)
    assert spec_of(seed).outcome == "force_deleted"
    assert not sum(samples(manager, LOST).values())


@pytest.mark.parametrize("seconds", [1.0, None], ids=["a budget", "no budget"])
def test_a_record_that_cannot_be_written_holds_nothing_up_without_end(
    seed: Seed, start: Start, monkeypatch: pytest.MonkeyPatch, seconds: float | None
) -> None:
    def refuse() -> None:
        raise Unavailable(503, "try later")

    monkeypatch.setattr(budget, "RECORD_SECONDS", 1.0)
    intercept = lambda client: Counting(client, refuse)
    manager = ready(seed, start, Script(), force_delete_budget=seconds, intercept=intercept)
    force(seed)
    assert records(seed) == []
    eventually(lambda: sum(samples(manager, LOST).values()) == 1)


class Days:
    """A clock that is so many days ahead."""

    def __init__(self, days: int) -> None:
        self.days = days

    def now(self) -> datetime:
        return datetime.now(UTC) + timedelta(days=self.days)

    trusted_now = now

    def monotonic(self) -> float:
        return self.days * 86_400.0


@pytest.fixture
def aged(seed: Seed, start: Start) -> Callable[..., bool]:
    """Whether the record is there after so many days, with a Keeper of these settings."""
    ready(seed, start, Script())
    name = force(seed)

    def is_kept(days: int, type_: str = seed.namespace, **retention: float | None) -> bool:
        manager = Manager(Options())
        manager.add(Script(), type=type_)
        kept = Retention.of_days(**retention)
        clock: Any = Days(days)
        registry = CollectorRegistry()
        Keeper(manager.registrations, registry, retention=kept, clock=clock).look(seed.client)
        with suppress(NotFound):
            return bool(seed.client.get(FORCE_DELETIONS, name))
        return False

    return is_kept


def test_a_record_is_kept_for_400_days(aged: Callable[..., bool]) -> None:
    assert aged(399)
    assert aged(401, type_="another")
    assert aged(401, force_deletions=None)
    assert aged(401, force_deletions=500)
    assert not aged(401)


def test_a_record_is_kept_while_an_orphan_of_its_object_is_open(
    seed: Seed, aged: Callable[..., bool]
) -> None:
    former: OrphanedFrom = spec_of(seed).object
    resource = ExternalResource(type="VPC", id="vpc-1")
    now = datetime.now(UTC)
    orphan = record(seed.client, former, resource, OrphanReason.FORCED, "", now)
    assert aged(10_000)
    closed = {"status": {"state": "Closed", "closedAt": "2026-01-01T00:00:00Z"}}
    seed.client.patch(ORPHANS, orphan.metadata.name, "", closed, subresource="status")
    assert not aged(10_000)
