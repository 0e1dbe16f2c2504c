"""The keeper of the orphans: counts those of its own extension, deletes those settled long ago."""

from datetime import UTC, datetime, timedelta
from threading import Event, Thread
from types import SimpleNamespace

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from actuator import ExternalResource
from actuator.errors import Forbidden, LeaseLost, NotFound, TooManyRequests
from actuator.meta import Raw, format_time
from actuator.v1alpha1 import Worker
from generic.kube.client import HttpClient, connect, each
from generic.manager.manager import Manager
from generic.manager.options import Options
from generic.manager.orphans.keeper import RETENTION, Keeper, Retention
from generic.manager.orphans.ledger import stored_records
from generic.manager.rbac import role_binding
from generic.reconciler.orphans import ORPHANS, RECORD_KINDS, Orphan, OrphanedFrom, OrphanReason
from generic.reconciler.orphans.record import record
from generic.serving.metrics.exposition import MANY, TOO_MANY
from generic.testing.seed import install
from tests.support.cluster.clocks import Hands
from tests.support.cluster.harness import BINDINGS, PATIENCE, ROLES, Script, eventually

NOW = datetime.now(UTC)
UID = "0b9e6b1c-58a5-4b0a-9a53-8c1d2f3e4a5b"


@pytest.fixture
def added(namespace):
    """Registrations of Infrastructures and Workers whose type is named like the namespace."""
    manager = Manager(Options())
    manager.add(Script(), type=namespace)
    manager.add(Script(Worker), type=namespace)
    return manager.registrations


@pytest.fixture
def keep(environment, admin, namespace):
    """Records orphans, with a state reached so many days ago."""
    install(environment, [*RECORD_KINDS])
    names = []

    def keep(id, state="", *, kind="Infrastructure", type=namespace, of="VPC", days=0):
        release = OrphanedFrom(
            api_version="extensions.gardener.cloud/v1alpha1",
            kind=kind,
            namespace=namespace,
            name="infra",
            uid=UID,
            type=type,
        )
        resource = ExternalResource(type=of, id=f"{namespace}-{id}")
        reason = OrphanReason.FORCED
        name = record(admin, release, resource, reason, "", NOW).metadata.name
        names.append(name)
        if state:
            since = format_time(NOW - timedelta(days=days))
            field = "closedAt" if state == "Closed" else "verifiedAt"
            patch = [{"op": "add", "path": "/status", "value": {"state": state, field: since}}]
            admin.patch(ORPHANS, name, "", patch, subresource="status")
        return name

    yield keep
    for name in names:
        try:
            admin.delete(ORPHANS, name)
        except NotFound:
            pass


@pytest.fixture
def registry():
    return CollectorRegistry(auto_describe=True)


@pytest.fixture
def keeper(added, registry):
    return Keeper(added, registry)


def series(registry):
    """kind, resource type and state, with the number."""
    return {
        tuple(sample.labels[name] for name in ("kind", "resource_type", "state")): sample.value
        for family in registry.collect()
        if family.name == "actuator_orphans"
        for sample in family.samples
    }


def is_there(admin, name):
    try:
        admin.get(ORPHANS, name)
    except NotFound:
        return False
    return True


def test_they_are_counted_by_kind_resource_type_and_state(keep, keeper, registry, admin):
    keep("1")
    keep("2")
    keep("3", "Exists")
    keep("4", of="Subnet")
    keep("5", kind="Worker", of="Instance")
    assert series(registry) == {}
    keeper.look(admin)
    assert series(registry) == {
        ("Infrastructure", "VPC", "Unverified"): 2,
        ("Infrastructure", "VPC", "Exists"): 1,
        ("Infrastructure", "Subnet", "Unverified"): 1,
        ("Worker", "Instance", "Unverified"): 1,
    }
    exposed = generate_latest(registry).decode()
    assert 'actuator_orphans{kind="Worker",resource_type="Instance",state="Unverified"} 1.0' in (
        exposed
    )


def test_a_page_of_records_is_held_at_a_time(keep, admin, monkeypatch):
    """Thousands of records took some 5 KB of memory each in a manager that started."""
    names = {keep(str(number)) for number in range(5)}
    monkeypatch.setattr("generic.kube.client._PAGE", 2)
    requests: list[str] = []

    def send(self, method, path, **more):
        requests.append(path)
        return whole(self, method, path, **more)

    whole = HttpClient.send
    monkeypatch.setattr(HttpClient, "send", send)
    for read in (each(admin, ORPHANS, metadata_only=True), stored_records(admin, Orphan)):
        requests.clear()
        first = next(read)
        assert len(requests) == 1
        assert names <= {item["metadata"]["name"] for item in (first, *read)}
        assert len(requests) >= 3


def test_series_end_with_their_objects(keep, keeper, registry, admin):
    name = keep("1")
    keep("2", of="Subnet")
    keeper.look(admin)
    admin.delete(ORPHANS, name)
    keeper.look(admin)
    assert series(registry) == {("Infrastructure", "Subnet", "Unverified"): 1}


def test_orphans_of_other_extensions_are_neither_counted_nor_deleted(
    keep, keeper, registry, admin, namespace
):
    others = [
        keep("1", "Closed", type="another", days=500),
        keep("2", "Closed", kind="Network", days=500),
    ]
    keeper.look(admin)
    assert series(registry) == {}
    assert all(is_there(admin, name) for name in others)


def test_there_are_no_more_than_so_many_resource_types(keep, keeper, registry, admin):
    for number in range(MANY):
        keep("1", of=f"type-{number:02}")
    keeper.look(admin)
    first = {key[1] for key in series(registry)}
    assert len(first) == MANY
    assert TOO_MANY not in first
    keep("1", of="a-new-one")
    keep("1", of="another-new-one")
    keeper.look(admin)
    assert {key[1] for key in series(registry)} == first | {TOO_MANY}
    assert series(registry)["Infrastructure", TOO_MANY, "Unverified"] == 2


def test_open_orphans_are_counted_by_age_and_settled_ones_are_not(keep, added, registry, admin):
    keep("1")
    keep("2", "Exists")
    keep("3", "Gone")
    keep("4", "Closed")
    clock = Hands()
    keeper = Keeper(added, registry, clock=clock)
    ages = {}
    for days in (0.5, 8, 33):
        clock.ahead = (NOW - clock.now()).total_seconds() + clock.ahead + days * 86400
        keeper.look(admin)
        ages[days] = {
            sample.labels["age"]: sample.value
            for family in registry.collect()
            if family.name == "actuator_open_orphans"
            for sample in family.samples
        }
    assert ages[0.5] == {"1d": 2, "7d": 0, "30d": 0, "older": 0}
    assert ages[8] == {"1d": 0, "7d": 0, "30d": 2, "older": 0}
    assert ages[33] == {"1d": 0, "7d": 0, "30d": 0, "older": 2}


def test_orphans_settled_for_longer_than_the_retention_are_deleted(keep, keeper, registry, admin):
    over = RETENTION.days + 1
    old = [keep("1", "Closed", days=over), keep("2", "Gone", days=over)]
    young = [keep("3", "Closed", days=over - 2), keep("4", "Gone", days=over - 2)]
    still_open = [keep("5"), keep("6", "Exists", days=over), keep("7", "Unverified", days=over)]
    keeper.look(admin)
    assert not any(is_there(admin, name) for name in old)
    assert all(is_there(admin, name) for name in (*young, *still_open))
    assert sum(series(registry).values()) == len(young) + len(still_open)


def test_an_orphan_settled_at_an_unknown_time_stays(keep, keeper, admin):
    name = keep("1", "Closed")
    patch = [{"op": "remove", "path": "/status/closedAt"}]
    admin.patch(ORPHANS, name, "", patch, subresource="status")
    keeper.look(admin)
    assert is_there(admin, name)


def test_without_a_retention_they_are_kept_permanently(keep, added, registry, admin):
    name = keep("1", "Closed", days=10_000)
    Keeper(added, registry, retention=Retention(closed=None)).look(admin)
    assert is_there(admin, name)
    assert series(registry) == {("Infrastructure", "VPC", "Closed"): 1}


def test_it_works_with_its_permissions_and_nothing_more(keep, keeper, registry, admin, environment):
    gone = keep("1", "Gone", days=500)
    user = f"keeper-{NOW.timestamp()}"
    keep("2")
    verbs = [*keeper.permissions[0].verbs]
    assert {permission.verbs for permission in keeper.permissions} == {tuple(verbs)}
    plurals = [permission.resource.plural for permission in keeper.permissions]
    rule = {"apiGroups": [ORPHANS.group], "resources": plurals}
    manifest: Raw = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"}
    manifest |= {"metadata": {"name": user}, "rules": [rule | {"verbs": verbs}]}
    client = connect(environment.user_kubeconfig(user))
    with pytest.raises(Forbidden):
        keeper.look(client)
    admin.create(ROLES, manifest)
    admin.create(BINDINGS, role_binding(manifest, user))
    try:
        eventually(lambda: not isinstance(attempt(keeper, client), Forbidden))
        assert not is_there(admin, gone)
        assert series(registry) == {("Infrastructure", "VPC", "Unverified"): 1}
    finally:
        admin.delete(BINDINGS, user)
        admin.delete(ROLES, user)


def attempt(keeper, client):
    try:
        keeper.look(client)
    except Forbidden as error:
        return error
    return None


def test_it_goes_on_after_an_error_and_shows_nothing_once_it_stopped(keep, added, registry, admin):
    keep("1")
    keeper = Keeper(added, registry, interval_seconds=0.05)
    failing = [True]
    stop = Event()

    def list_(*given, **more):
        if failing:
            failing.pop()
            raise RuntimeError("the first look fails")
        return admin.list(*given, **more)

    client = SimpleNamespace(list=list_, delete=admin.delete)
    thread = Thread(target=keeper.run, args=(client, stop), daemon=True)
    thread.start()
    eventually(lambda: series(registry))
    stop.set()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert series(registry) == {}, "whoever leads next counts them"


@pytest.mark.parametrize(("refused", "warnings"), [(1, 0), (2, 1)])
def test_a_list_that_is_refused_for_a_moment_is_no_warning(
    keep, added, registry, admin, caplog, refused, warnings
):
    keep("1")
    answers = [TooManyRequests(429, "storage is (re)initializing")] * refused
    stop = Event()

    def list_(*given, **more):
        if answers:
            raise answers.pop()
        return admin.list(*given, **more)

    client = SimpleNamespace(list=list_, delete=admin.delete)
    interval = 300.0 if refused == 1 else 0.05
    keeper = Keeper(added, registry, interval_seconds=interval)
    thread = Thread(target=keeper.run, args=(client, stop), daemon=True)
    thread.start()
    eventually(lambda: series(registry))
    stop.set()
    thread.join(PATIENCE)
    assert [item.levelname for item in caplog.records] == ["WARNING"] * warnings


def test_it_ends_when_this_process_no_longer_leads(keep, added, registry, admin):
    keep("1", "Closed", days=500)

    def delete(*given, **more):
        raise LeaseLost("another leads")

    client = SimpleNamespace(list=admin.list, delete=delete)
    Keeper(added, registry).run(client, Event())
    assert series(registry) == {}


def test_one_that_cannot_be_deleted_is_counted_and_the_others_are_deleted(
    keep, keeper, registry, admin
):
    held = keep("1", "Closed", days=500)
    gone = keep("2", "Closed", days=500)

    def delete(resource, name, **more):
        if name == held:
            raise Forbidden(403, "no")
        admin.delete(resource, name, **more)

    keeper.look(SimpleNamespace(list=admin.list, delete=delete))
    assert is_there(admin, held)
    assert not is_there(admin, gone)
    assert series(registry) == {("Infrastructure", "VPC", "Closed"): 1}


def test_each_state_has_a_retention_of_its_own(keep, added, registry, admin):
    closed = keep("1", "Closed", days=10)
    gone = keep("2", "Gone", days=10)
    Keeper(added, registry, retention=Retention.of_days(closed=5, gone=None)).look(admin)
    assert (is_there(admin, closed), is_there(admin, gone)) == (False, True)


def test_an_impossible_interval_is_refused(added, registry):
    with pytest.raises(ValueError, match="interval"):
        Keeper(added, registry, interval_seconds=0)


@pytest.mark.parametrize("state", ["closed", "gone", "force_deletions"])
def test_a_negative_retention_is_refused(state):
    with pytest.raises(ValueError, match=f"retention of {state}"):
        Retention.of_days(**{state: -1})
