"""Upgrade and rollback: objects in every operation, as another version of the framework left them.

`python tests/support/programs/upgrade.py tests/recorded/VERSION.json` records those of a version.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from actuator import Client
from actuator.errors import NotFound
from actuator.meta import Raw
from actuator.v1alpha1 import KINDS, Cluster, Infrastructure
from generic.kube.client import HttpClient, connect
from generic.kube.clusters import CLUSTERS
from generic.reconciler.orphans import FORCE_DELETIONS, ORPHANS, RECORD_KINDS
from generic.testing.envtest import Environment
from generic.testing.seed import CRDS, install
from tests.support.cluster.harness import OPERATION, eventually
from tests.support.objects.builders import infrastructure
from tests.support.objects.present import present
from tests.support.pages.installed_wheel import PROJECT
from tests.support.programs.upgrade import ENDS, GONE, INFRASTRUCTURES, LEASES, TYPE, World
from tests.support.programs.versioned_extension import Versioned

RECORDED = sorted(Path(__file__).parents[2].glob("recorded/*.json"))
KEPT = "x-kubernetes-preserve-unknown-fields"
FUTURE = {"since": "9.9"}
ANNOTATION = "actuator.extensions.gardener.cloud/future"


@pytest.fixture
def environment(borrowed) -> Iterator[Environment]:
    """No cluster of other tests: while a CRD changes, requests for its objects fail."""
    with Environment() as started:
        yield started


@pytest.fixture
def admin(environment) -> HttpClient:
    install(environment, [*KINDS, Cluster, *RECORD_KINDS])
    return connect(environment.kubeconfig)


@pytest.fixture
def world(admin, namespace, tmp_path) -> Iterator[World]:
    found = World(admin, namespace, tmp_path)
    found.take_over()
    yield found
    for state in ENDS:
        with suppress(NotFound):
            admin.delete(CLUSTERS, found.namespace(state))
    for resource in (ORPHANS, FORCE_DELETIONS):
        for record in admin.list(resource):
            if record["spec"]["object"].get("type") == namespace:
                admin.delete(resource, record["metadata"]["name"])


def records_of(path: Path, world: World) -> dict[str, list[Raw]]:
    return json.loads(path.read_text().replace(TYPE, world.type))


def test_this_version_is_recorded():
    assert PROJECT["version"] in [path.stem for path in RECORDED]


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_objects_of_an_earlier_version_come_to_their_end(path, world, start):
    records = records_of(path, world)
    world.restore(records)
    restore_lease(world, *records["leases"])
    start(Versioned(world.type, world.folder), leader_election=True)
    check_ends(world)
    check_record(world, records)
    world.annotate("ready", "reconcile")
    eventually(lambda: world.last_operation("ready") == ("Reconcile", "Succeeded"))


def restore_lease(world: World, lease: Raw) -> None:
    """The Lease of a killed manager, which ends in a second."""
    metadata = {"name": lease["metadata"]["name"], "namespace": world.type}
    assert lease["spec"]["holderIdentity"]
    spec = {**lease["spec"], "leaseDurationSeconds": 1}
    world.client.create(LEASES, {**lease, "metadata": metadata, "spec": spec})


def check_ends(world: World) -> None:
    eventually(lambda: not world.unfinished())
    vpcs = {state: f"vpc-{world.namespace(state)}" for state in ("forced", "force-deleting")}
    assert world.orphans() == vpcs
    assert states_seen(world)["restoring"].items() >= world.record("restoring").items()
    for state in ENDS.keys() - GONE:
        status = present(world.get(state))["status"]
        assert "lastError" not in status
        assert status["state"].items() >= world.record(state).items()
    assert present(world.get("waiting"))["metadata"]["annotations"][OPERATION] == "wait-for-state"


def check_record(world: World, records: dict[str, list[Raw]]) -> None:
    """The former version's record stays as it is; an object that is forced later has its own."""
    (record,) = records[FORCE_DELETIONS.plural]
    found = world.force_deletions()
    assert found.keys() == {"forced", "force-deleting"}
    assert found["forced"] == record["spec"]
    assert found["force-deleting"]["outcome"] == "orphaned"


def states_seen(world: World) -> dict[str, Any]:
    """The status.state that each call saw."""
    lines = [line.split(" ", 2) for line in (world.folder / "calls").read_text().splitlines()]
    return {state: json.loads(seen) for _, state, seen in lines}


def lenient(schema: Any) -> Any:
    """The schema of a later version: each object has fields that this version does not know."""
    if isinstance(schema, list):
        return [lenient(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    more = {KEPT: True} if schema.get("type") == "object" and "properties" in schema else {}
    return {name: lenient(value) for name, value in schema.items()} | more


@pytest.fixture
def later_crds(admin, world) -> Iterator[None]:
    """CRDs of a later version, as they stay in the cluster after a rollback."""
    before = {}
    for kind in (Infrastructure.KIND, *(cls.KIND for cls in RECORD_KINDS)):
        name = f"{kind.plural}.{kind.group}"
        versions = before[name] = admin.get(CRDS, name)["spec"]["versions"]
        (version,) = versions
        later = {"openAPIV3Schema": lenient(version["schema"]["openAPIV3Schema"])}
        admin.patch(CRDS, name, "", {"spec": {"versions": [{**version, "schema": later}]}})
    admin.create(INFRASTRUCTURES, infrastructure(world.type, "other", "probe"))
    eventually(lambda: keeps_unknown(admin, world.type))
    yield
    for name, versions in before.items():
        admin.patch(CRDS, name, "", {"spec": {"versions": versions}})
    eventually(lambda: not keeps_unknown(admin, world.type))


def keeps_unknown(admin: Client, namespace: str) -> bool:
    patch = {"spec": {"future": time.monotonic()}}
    return "future" in admin.patch(INFRASTRUCTURES, "probe", namespace, patch)["spec"]


def from_the_future(records: dict[str, list[Raw]]) -> None:
    """Add fields and values that a later version may write."""
    kinds = ("infrastructures", "orphans", FORCE_DELETIONS.plural, "leases")
    for obj in chain.from_iterable(records[kind] for kind in kinds):
        obj["metadata"].setdefault("annotations", {})[ANNOTATION] = "kept"
    for item in records["infrastructures"]:
        status = item["status"]
        status["future"] = FUTURE
        for record in filter(None, (status.get("providerStatus"), status.get("state"))):
            record["future"] = FUTURE
        for part in filter(None, (status.get("lastOperation"), status.get("lastError"))):
            part["future"] = FUTURE
        if "lastError" in status:
            status["lastError"]["codes"] = [*status["lastError"].get("codes", []), "ERR_FUTURE"]
        times = dict.fromkeys(("lastTransitionTime", "lastUpdateTime"), "2026-11-22T10:00:00Z")
        condition = {"type": "Future", "status": "Perhaps", "reason": "x", "message": "y", **times}
        status.setdefault("conditions", []).append({**condition, "future": FUTURE})
    for orphan in records["orphans"]:
        orphan["spec"] |= {"future": FUTURE, "reason": "Negotiated"}
        orphan["spec"]["object"]["future"] = FUTURE
        orphan["status"] = {"state": "Disputed", "future": FUTURE}
    for record in records[FORCE_DELETIONS.plural]:
        record["spec"] |= {"future": FUTURE, "outcome": "negotiated"}
        record["spec"]["object"]["future"] = FUTURE


def test_records_of_a_later_version_are_read_and_their_fields_are_kept(
    world, start, later_crds, command, environment
):
    records = records_of(RECORDED[-1], world)
    from_the_future(records)
    world.restore(records)
    restore_lease(world, *records["leases"])
    start(Versioned(world.type, world.folder), leader_election=True)
    check_ends(world)
    check_record(world, records)
    options = ["--kubeconfig", environment.kubeconfig]
    page = command("record", "summary", "--since", "2026-01-01", *options)
    assert "negotiated (ForceDeleted)" in page.stdout
    for state in ENDS.keys() - GONE:
        found = world.get(state)
        assert found["metadata"]["annotations"][ANNOTATION] == "kept"
        assert found["status"]["future"] == FUTURE
        if state != "creating":  # nothing was recorded
            assert found["status"]["state"]["future"] == FUTURE
        assert "Future" in {condition["type"] for condition in found["status"]["conditions"]}
    (name,) = [orphan["metadata"]["name"] for orphan in records["orphans"]]
    listed = command("orphans", "list", "--shoot", world.namespace("forced"), *options)
    assert "vpc" in listed.stdout, "an unknown state is open"
    command("orphans", "close", name, "--note", "done", *options)
    orphan = world.client.get(ORPHANS, name)
    assert orphan["spec"] == records["orphans"][0]["spec"]
    assert orphan["status"]["future"] == FUTURE
    assert orphan["status"]["state"] == "Closed"
    assert orphan["metadata"]["annotations"][ANNOTATION] == "kept"
