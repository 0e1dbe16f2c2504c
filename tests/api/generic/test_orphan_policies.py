"""Records on an API server with the policies of a chart: closing, changing and deleting them."""

from contextlib import suppress
from datetime import timedelta
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from actuator import ExternalResource
from actuator.errors import AlreadyExists, ApiError, Forbidden, NotFound
from actuator.interface import Resource
from actuator.meta import Raw
from actuator.v1alpha1 import Infrastructure
from generic.kube.client import HttpClient, connect, path_of
from generic.kube.clock import SystemClock
from generic.kube.crds import crd
from generic.library.webhooks.policies import BINDINGS, POLICIES
from generic.manager.orphans.closer import closer
from generic.manager.orphans.keeper import Keeper, Retention
from generic.manager.orphans.ledger import Closer, close, read_orphans, reopen
from generic.manager.orphans.policies import policies
from generic.manager.rbac import role_binding
from generic.reconciler.origin import DeletionOrigin
from generic.reconciler.orphans import (
    FORCE_DELETIONS,
    ORPHANS,
    RECORD_KINDS,
    ForceDeletionRecord,
    Orphan,
    OrphanedFrom,
    OrphanReason,
    mark_gone,
)
from generic.reconciler.orphans.kind import KIND_LABEL, TYPE_LABEL
from generic.reconciler.orphans.record import record
from generic.testing.envtest import Environment
from generic.testing.seed import CRDS, install
from tests.support.cluster.harness import BINDINGS as ROLE_BINDINGS
from tests.support.cluster.harness import ROLES, eventually

CONFIRMATION = "confirmation.gardener.cloud/deletion"
VPC = ExternalResource(type="VPC", id="vpc-1", region="eu")
NOW = SystemClock().now()
PATH = path_of(ORPHANS)
EXTENSION = "system:serviceaccount:garden:extension"
SERVED: Any = [SimpleNamespace(kind=Infrastructure.KIND, types=("mine",))]
RECORDS = path_of(FORCE_DELETIONS)
EVERYTHING: Raw = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}


@pytest.fixture(scope="module")
def environment(clusters):
    """A borrowed cluster: the policies are about the Orphans of all tests of a cluster."""
    with pytest.MonkeyPatch.context() as patch:
        clusters.patch(patch)
        with Environment() as running:
            yield running


@pytest.fixture(scope="module")
def admin(environment):
    install(environment, RECORD_KINDS)
    return connect(environment.kubeconfig)


@pytest.fixture(scope="module")
def policed(environment, admin):
    """The cluster with the policies, once they are in effect; without them afterwards."""
    made = [*policies("test", EXTENSION, SERVED)]
    for obj in made:
        admin.create(BINDINGS if obj["kind"].endswith("Binding") else POLICIES, obj)
    wait_for_policies(admin)
    yield admin
    for obj in made:
        place = BINDINGS if obj["kind"].endswith("Binding") else POLICIES
        admin.delete(place, obj["metadata"]["name"])
    probe = f"{PATH}/{recorded(admin, 'probe').metadata.name}"
    record = f"{RECORDS}/{forced(admin, 'probe')}"
    for path in (probe, record, f"{path_of(CRDS)}/{ORPHANS}"):  # the next test may use this cluster
        eventually(lambda path=path: not is_refused(lambda: ask_to_delete(admin, path)))
    for orphan in admin.list(ORPHANS):
        name = orphan["metadata"]["name"]
        admin.patch(ORPHANS, name, "", {"metadata": {"annotations": {CONFIRMATION: "true"}}})
        admin.delete(ORPHANS, name)


@pytest.fixture
def alice(environment, policed):
    """A user who may do everything."""
    return user(environment, policed, "alice", EVERYTHING)


DELETION: Raw = {
    "apiGroups": [FORCE_DELETIONS.group],
    "resources": [FORCE_DELETIONS.plural],
    "verbs": ["delete", "deletecollection"],
}


@pytest.fixture
def deleter(environment, policed):
    """A user who may delete ForceDeletionRecords, and nothing else."""
    return user(environment, policed, "deleter", DELETION)


def user(environment, admin, name: str, rule: Raw) -> HttpClient:
    head = {"apiVersion": "rbac.authorization.k8s.io/v1"}
    metadata = {"name": name.replace(":", "-")}
    role = {**head, "kind": "ClusterRole", "metadata": metadata, "rules": [rule]}
    admin.apply(ROLES, role)
    admin.apply(ROLE_BINDINGS, role_binding(role, name))
    client = connect(environment.user_kubeconfig(name))
    eventually(lambda: is_allowed_to_delete(client, f"{RECORDS}/absent"))
    return client


def is_allowed_to_delete(client: HttpClient, path: str) -> bool:
    try:
        ask_to_delete(client, path)
    except NotFound:
        return True
    except Forbidden:
        return False
    return True


def wait_for_policies(admin) -> None:
    """Wait until the API server evaluates all of them."""
    name = recorded(admin, "probe").metadata.name
    eventually(lambda: is_refused(lambda: ask_to_delete(admin, f"{PATH}/{name}")))
    eventually(lambda: closer(admin, current(admin, name)).verified)
    eventually(lambda: is_refused(lambda: remove_definition(admin)))
    eventually(lambda: is_refused(lambda: ask_to_delete(admin, f"{RECORDS}/{forced(admin, 'p')}")))


def ask_to_delete(client: HttpClient, path: str) -> None:
    """Send the request without its effect."""
    client.send("DELETE", path, query={"dryRun": "All"})


def is_refused(request) -> bool:
    try:
        request()
    except NotFound:
        raise
    except ApiError as error:
        return "ValidatingAdmissionPolicy" in error.message
    return False


def remove_definition(client: HttpClient, of: Resource = ORPHANS) -> None:
    """Ask to delete the definition, without its effect."""
    ask_to_delete(client, f"{path_of(CRDS)}/{of}")


def recorded(client, uid: str) -> Orphan:
    """A new open Orphan, as the API server has it."""
    former = OrphanedFrom(
        api_version="v1",
        kind="X",
        namespace="shoot",
        name="x",
        uid=uid,
        origin=DeletionOrigin(account="1"),
    )
    name = record(client, former, VPC, OrphanReason.FORCED, "", NOW).metadata.name
    return current(client, name)


def forced(client, name: str, *, type_: str = "mine", kind: str = "Infrastructure") -> str:
    """A ForceDeletionRecord; return its name."""
    version = Infrastructure.KIND.api_version
    former = {"apiVersion": version, "kind": kind, "name": "x", "uid": name, "type": type_}
    spec = {"outcome": "orphaned", "reason": "ForceDeleted", "finishedAt": "2026-01-01T00:00:00Z"}
    head = {"apiVersion": ForceDeletionRecord.KIND.api_version, "kind": "ForceDeletionRecord"}
    record = {**head, "metadata": {"name": name}, "spec": {"object": former, **spec}}
    with suppress(AlreadyExists):
        client.create(FORCE_DELETIONS, record)
    return name


def current(client, name: str) -> Orphan:
    return next(orphan for orphan in read_orphans(client) if orphan.metadata.name == name)


def closed(client, uid: str) -> Orphan:
    orphan = recorded(client, uid)
    assert close(client, orphan, NOW, closer(client, orphan), note="by hand", existing=False)
    return current(client, orphan.metadata.name)


def write(client, orphan: Orphan, **status: object) -> None:
    client.patch(ORPHANS, orphan.metadata.name, "", {"status": status}, subresource="status")


def test_the_name_of_the_user_who_closes_is_that_of_the_api_server_and_verified(alice, policed):
    orphan = closed(alice, "named")
    assert (orphan.status.closed_by, orphan.status.closed_by_verified) == ("alice", True)
    assert str(Closer("alice", verified=True)) == "alice"


@pytest.mark.parametrize(
    "status",
    [
        {"state": "Closed", "closedBy": "bob"},
        {"state": "Closed"},
        {"state": "Closed", "closedBy": ""},
        {"state": "Gone", "closedBy": "alice"},
    ],
    ids=str,
)
def test_another_name_or_none_is_refused(alice, status):
    orphan = recorded(alice, "refused")
    assert is_refused(lambda: write(alice, orphan, **status))
    assert current(alice, orphan.metadata.name).is_open


@pytest.mark.parametrize(
    "status",
    [{"closedBy": "admin"}, {"closedBy": None}, {"note": "another reason"}],
    ids=str,
)
def test_the_name_and_the_reason_are_not_changed_by_another_user(alice, policed, status):
    orphan = closed(alice, "kept")
    assert is_refused(lambda: write(policed, orphan, **status))
    reopen(policed, orphan, note="")
    assert current(policed, orphan.metadata.name).status.closed_by == ""


def test_the_user_who_closed_it_may_change_the_note(alice):
    orphan = closed(alice, "noted")
    write(alice, orphan, note="a better reason")
    assert current(alice, orphan.metadata.name).status.note == "a better reason"


def test_a_late_cleanup_of_a_closed_orphan_is_admitted(alice, policed):
    orphan = closed(alice, "late")
    mark_gone(policed, orphan, NOW)
    assert current(policed, orphan.metadata.name).state == "Gone"


def test_an_open_orphan_is_deleted_only_with_the_confirmation(policed):
    orphan = recorded(policed, "open")
    name = orphan.metadata.name
    for value in (None, "false", "True"):
        policed.patch(ORPHANS, name, "", {"metadata": {"annotations": {CONFIRMATION: value}}})
        assert is_refused(lambda: policed.delete(ORPHANS, name))
    write(policed, orphan, state="Exists")
    assert is_refused(lambda: policed.delete(ORPHANS, name))
    assert is_refused(lambda: policed.send("DELETE", PATH))
    policed.patch(ORPHANS, name, "", {"metadata": {"annotations": {CONFIRMATION: "true"}}})
    policed.delete(ORPHANS, name)


@pytest.mark.parametrize("state", ["Gone", "Closed"])
def test_a_settled_orphan_is_deleted_as_before(policed, state):
    orphan = closed(policed, f"settled-{state.lower()}")
    if state == "Gone":
        mark_gone(policed, orphan, NOW)
    policed.delete(ORPHANS, orphan.metadata.name)


def test_a_record_of_a_force_deletion_is_deleted_only_with_the_confirmation(policed, deleter):
    name = forced(policed, "kept")
    assert is_refused(lambda: deleter.delete(FORCE_DELETIONS, name))
    assert is_refused(lambda: deleter.send("DELETE", RECORDS))
    assert is_refused(lambda: policed.delete(FORCE_DELETIONS, name))
    with pytest.raises(Forbidden):  # only who may change a record can confirm
        deleter.patch(FORCE_DELETIONS, name, "", {"metadata": {"annotations": {CONFIRMATION: ""}}})
    for value in ("false", "True"):
        confirmed = {"metadata": {"annotations": {CONFIRMATION: value}}}
        policed.patch(FORCE_DELETIONS, name, "", confirmed)
        assert is_refused(lambda: deleter.delete(FORCE_DELETIONS, name))
    confirmed = {"metadata": {"annotations": {CONFIRMATION: "true"}}}
    policed.patch(FORCE_DELETIONS, name, "", confirmed)
    deleter.delete(FORCE_DELETIONS, name)


def test_the_extension_deletes_records_of_its_objects(environment, policed):
    extension = user(environment, policed, EXTENSION, DELETION)
    extension.delete(FORCE_DELETIONS, forced(policed, "expired"))


def test_a_manager_outside_its_chart_reports_once_that_a_policy_keeps_expired_records(
    policed, caplog
):
    names = [forced(policed, "kept-1"), forced(policed, "kept-2")]
    labels = {KIND_LABEL: "Infrastructure", TYPE_LABEL: "mine"}
    for name in names:
        policed.patch(FORCE_DELETIONS, name, "", {"metadata": {"labels": labels}})
    hours = count(step=7200)  # each look at the time is hours later
    now = NOW + timedelta(days=1)
    time: Any = SimpleNamespace(now=lambda: now, monotonic=lambda: next(hours))
    retention = Retention(closed=None, gone=None, force_deletions=timedelta())
    keeper = Keeper(SERVED, CollectorRegistry(), retention=retention, clock=time)
    for _ in range(2):
        keeper.look(policed)
    warnings = [line for line in caplog.records if line.levelname == "WARNING"]
    (error,) = [
        line.__dict__["fields"]["error"]
        for line in warnings
        if line.message == "old records are kept: deletion refused"
    ]
    assert len(warnings) == 1
    assert "'test-force-deletion-records'" in error
    assert "ServiceAccount of its chart, or set --force-deletion-retention-days to none" in error
    assert {policed.get(FORCE_DELETIONS, name)["metadata"]["name"] for name in names} == {*names}


@pytest.mark.parametrize(
    "other", [{"type_": "another"}, {"type_": ""}, {"kind": "Worker"}], ids=str
)
def test_records_of_other_extensions_are_those_of_their_policies(policed, deleter, other):
    deleter.delete(FORCE_DELETIONS, forced(policed, "others", **other))


@pytest.mark.parametrize(
    "spec",
    [
        None,
        {"outcome": "force_deleted"},
        {"reason": "BudgetExceeded"},
        {"deletionRequestedAt": "2026-01-01T00:00:00Z"},
        {"finishedAt": "2026-01-01T00:00:01Z"},
        {"object": {"type": None}},
        {"object": {"origin": {"account": "2"}}},
        {"object": {"origin": {"confirmedBy": "bob"}}},
        {"errors": [{"text": "none"}]},
        {"orphans": ["another"], "orphanCount": 0},
    ],
    ids=str,
)
def test_no_fact_of_a_record_can_be_changed_also_without_policies(admin, spec):
    name = forced(admin, "immutable")
    before = admin.get(FORCE_DELETIONS, name)["spec"]
    with pytest.raises(ApiError, match=r"immutable|spec: Required"):
        admin.patch(FORCE_DELETIONS, name, "", {"spec": spec})
    assert admin.get(FORCE_DELETIONS, name)["spec"] == before


@pytest.mark.parametrize("definition", [ORPHANS, FORCE_DELETIONS], ids=str)
def test_the_definition_is_deleted_only_with_the_confirmation(policed, definition):
    assert is_refused(lambda: remove_definition(policed, definition))
    confirmed = {"metadata": {"annotations": {CONFIRMATION: "true"}}}
    policed.patch(CRDS, str(definition), "", confirmed)
    remove_definition(policed, definition)
    policed.patch(CRDS, str(definition), "", {"metadata": {"annotations": {CONFIRMATION: None}}})


def test_the_deletion_of_a_namespace_deletes_no_orphan(policed):
    """It is cluster-scoped, and has no owner: nothing collects it."""
    orphan = recorded(policed, "outlives")
    assert crd(Orphan)["spec"]["scope"] == "Cluster"
    assert not orphan.metadata.owner_references


@pytest.mark.parametrize(
    "spec",
    [
        {"resourceType": "Subnet"},
        {"id": "vpc-2"},
        {"id": None},
        {"object": {"origin": {"account": "2"}}},
        {"object": {"origin": {"account": None}}},
        {"object": {"origin": None}},
    ],
    ids=str,
)
def test_type_id_and_account_are_immutable_also_without_policies(admin, spec):
    orphan = recorded(admin, "immutable")
    with pytest.raises(ApiError, match="immutable"):
        admin.patch(ORPHANS, orphan.metadata.name, "", {"spec": spec})
    admin.patch(ORPHANS, orphan.metadata.name, "", {"spec": {"message": "more is known"}})


def test_without_the_bindings_all_is_admitted_and_no_name_is_verified(alice, policed):
    """So the policies refuse the requests of the tests above, and nothing else does."""
    bindings = [
        obj for obj in policies("test", EXTENSION, SERVED) if obj["kind"].endswith("Binding")
    ]
    for obj in bindings:
        policed.delete(BINDINGS, obj["metadata"]["name"])
    orphan = recorded(policed, "unbound")
    eventually(lambda: not closer(alice, orphan).verified)
    eventually(lambda: not is_refused(lambda: remove_definition(policed)))
    found = closed(alice, "unverified")
    assert (found.status.closed_by, found.status.closed_by_verified) == ("alice", False)
    assert str(closer(alice, orphan)) == "alice (not verified)"
    write(alice, orphan, state="Closed", closedBy="bob")
    write(alice, orphan, state="Exists")
    eventually(lambda: not is_refused(lambda: policed.delete(ORPHANS, orphan.metadata.name)))
    for obj in bindings:
        policed.create(BINDINGS, obj)
    wait_for_policies(policed)
