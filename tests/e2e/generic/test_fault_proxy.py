"""Faults to order, on real servers: each has its effect, and a manager survives all of them."""

import json
import stat
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any

import attrs
import pytest

from actuator import Resource
from actuator.errors import (
    ApiError,
    Conflict,
    Forbidden,
    Gone,
    NotFound,
    TooManyRequests,
    Unavailable,
)
from actuator.v1alpha1 import KINDS, Cluster
from generic.kube.client import Silence, connect, path_of
from generic.kube.clusters import CLUSTERS
from generic.kube.headers import EventType, header
from generic.kube.informer import Informer
from generic.kube.store import Store
from generic.testing.envtest import Environment
from generic.testing.seed import install
from hack import faults
from hack.faults import (
    Effect,
    Fault,
    FaultProxy,
    FaultyActuator,
    KillableServer,
    Revocation,
    Revoked,
)
from tests.soak.script import random_script
from tests.support.cluster.harness import (
    PATIENCE,
    ROLES,
    Script,
    Seed,
    eventually,
    is_allowed,
    running,
)
from tests.support.objects.builders import cluster, infrastructure

CONFIG_MAPS = Resource("v1", "configmaps")
NAMESPACES = Resource("v1", "namespaces", namespaced=False)
OBJECTS = 5


@pytest.fixture
def proxy(environment, tmp_path):
    with FaultProxy(environment.kubeconfig, tmp_path) as proxy:
        yield proxy


@pytest.fixture
def far(proxy, admin):
    """A client behind the proxy."""
    return connect(proxy.kubeconfig)


def config_map(namespace, name):
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace},
    }


def names(client, namespace):
    found = {obj["metadata"]["name"] for obj in client.list(CONFIG_MAPS, namespace)}
    return found - {"kube-root-ca.crt"}


# --- the way there


def test_without_a_fault_everything_passes_as_it_is(far, namespace):
    far.create(CONFIG_MAPS, config_map(namespace, "a"))
    far.patch(CONFIG_MAPS, "a", namespace, {"data": {"key": "x" * 100_000}})
    assert far.get(CONFIG_MAPS, "a", namespace)["data"] == {"key": "x" * 100_000}
    with pytest.raises(Conflict, match="already exists"):
        far.create(CONFIG_MAPS, config_map(namespace, "a"))
    far.delete(CONFIG_MAPS, "a", namespace)
    with pytest.raises(NotFound):
        far.get(CONFIG_MAPS, "a", namespace)


def test_many_requests_at_once_pass(far, namespace):
    with ThreadPoolExecutor(16) as pool:
        made = pool.map(
            lambda n: far.create(CONFIG_MAPS, config_map(namespace, f"c-{n}")), range(100)
        )
        assert len(list(made)) == 100
    assert len(names(far, namespace)) == 100


def test_a_user_behind_the_proxy_is_the_user_of_its_kubeconfig(environment, tmp_path, namespace):
    denied = pytest.raises(Forbidden, match='User "nobody" cannot list resource "configmaps"')
    with FaultProxy(environment.user_kubeconfig("nobody"), tmp_path) as proxy, denied:
        connect(proxy.kubeconfig).list(CONFIG_MAPS, namespace)


def test_the_proxys_kubeconfig_is_private_and_has_no_credentials_of_the_cluster(proxy, environment):
    assert stat.S_IMODE(proxy.kubeconfig.stat().st_mode) == 0o600
    assert environment.admin_token not in proxy.kubeconfig.read_text()


def test_a_client_without_the_proxys_kubeconfig_is_refused(environment, proxy, tmp_path):
    with FaultProxy(environment.kubeconfig, tmp_path) as other:
        stranger = connect(other.kubeconfig, server=proxy.url)
        with pytest.raises(Unavailable):
            stranger.list(NAMESPACES)


def test_an_api_server_of_another_authority_is_not_trusted(environment, proxy, tmp_path):
    config = json.loads(environment.kubeconfig.read_text())
    ours = json.loads(proxy.kubeconfig.read_text())
    authority = ours["clusters"][0]["cluster"]["certificate-authority-data"]
    config["clusters"][0]["cluster"]["certificate-authority-data"] = authority
    (tmp_path / "wrong").write_text(json.dumps(config))
    with FaultProxy(tmp_path / "wrong", tmp_path) as deceived, pytest.raises(Unavailable):
        connect(deceived.kubeconfig).list(NAMESPACES)


# --- requests


def test_a_request_that_is_cut_never_arrives(proxy, far, admin, namespace):
    injection = proxy.inject(Fault(effect=Effect.CUT, verbs=["create"], times=1))
    with pytest.raises(Unavailable):
        far.create(CONFIG_MAPS, config_map(namespace, "a"))
    assert injection.hits == 1
    assert not names(admin, namespace)
    far.create(CONFIG_MAPS, config_map(namespace, "a"))
    assert names(admin, namespace) == {"a"}


def test_a_request_whose_answer_is_dropped_was_carried_out(proxy, far, admin, namespace):
    proxy.inject(Fault(effect=Effect.DROP_ANSWER, verbs=["create"], times=1))
    with pytest.raises(Unavailable):
        far.create(CONFIG_MAPS, config_map(namespace, "a"))
    assert names(admin, namespace) == {"a"}


def test_a_delayed_request_arrives_even_if_its_client_stopped_waiting(proxy, far, admin, namespace):
    injection = proxy.inject(Fault(effect=Effect.DELAY, seconds=0.6, verbs=["create"]))
    start = time.monotonic()
    far.create(CONFIG_MAPS, config_map(namespace, "a"))
    assert time.monotonic() - start >= 0.6
    injection.remove()
    injection = proxy.inject(Fault(effect=Effect.DELAY, seconds=300, verbs=["create"]))
    with pytest.raises(Silence):
        far.within(0.2).create(CONFIG_MAPS, config_map(namespace, "b"))
    assert names(admin, namespace) == {"a"}
    injection.remove()  # as if its time were over
    eventually(lambda: names(admin, namespace) == {"a", "b"})


def test_a_stalled_request_is_never_answered(proxy, far, admin, namespace):
    injection = proxy.inject(Fault(effect=Effect.STALL, resource="configmaps"))
    with pytest.raises(Silence):
        far.within(0.5).create(CONFIG_MAPS, config_map(namespace, "a"))
    assert far.list(NAMESPACES)
    injection.remove()
    assert not names(far, namespace)


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (403, Forbidden),
        (409, Conflict),
        (410, Gone),
        (429, TooManyRequests),
        (500, Unavailable),
        (503, Unavailable),
    ],
)
def test_an_injected_answer_has_the_form_of_the_api_server(
    proxy, far, admin, namespace, status, error
):
    fault = Fault(effect=Effect.ANSWER, status=status, retry_after=7, name="a", times=1)
    proxy.inject(fault)
    with pytest.raises(error) as caught:
        far.get(CONFIG_MAPS, "a", namespace)
    assert (caught.value.status, caught.value.retry_after) == (status, 7)
    assert caught.value.reason
    with pytest.raises(NotFound):
        far.get(CONFIG_MAPS, "a", namespace)


def test_a_server_that_is_down_refuses_connections_until_it_is_back(proxy, far):
    assert far.list(NAMESPACES)
    proxy.go_down()
    with pytest.raises(Unavailable, match="refused"):
        far.list(NAMESPACES)
    proxy.come_back()
    assert far.list(NAMESPACES)


# --- watches


@contextmanager
def watching(client, namespace, **options):
    """An informer at work, the reasons of its lists in `lists`."""
    store = Store(CONFIG_MAPS, header)
    lists = []

    def relisted(_kind, reason):
        lists.append(reason)

    events: list[Any] = []
    informer = Informer(
        client, store, events.append, namespace=namespace, relisted=relisted, **options
    )
    stop = threading.Event()
    threading.Thread(target=informer.run, args=(stop,), daemon=True).start()
    try:
        assert informer.settled.wait(PATIENCE), informer.problem
        yield informer, events, lists
    finally:
        stop.set()


def told(events, name):
    return [event.type for event in events if event.request.name == name]


def test_lines_of_a_watch_come_one_by_one(far, admin, namespace):
    with watching(far, namespace) as (_, events, lists):
        for name in ("a", "b"):
            admin.create(CONFIG_MAPS, config_map(namespace, name))
            eventually(lambda name=name: told(events, name) == [EventType.ADDED])
        assert lists == ["initial"]


def test_a_410_inside_a_watch_leads_to_a_new_list_and_nothing_is_missed(
    proxy, far, admin, namespace
):
    with watching(far, namespace) as (_, events, lists):
        proxy.inject(Fault(effect=Effect.STREAM_ERROR, status=410, namespace=namespace, times=1))
        admin.create(CONFIG_MAPS, config_map(namespace, "a"))
        eventually(lambda: told(events, "a") == [EventType.ADDED])
        assert lists == ["initial", "expired"]


def test_a_watch_is_cut_after_as_many_lines_as_the_fault_says(proxy, far, admin, namespace):
    """Of one object, and without bookmarks: controllers write to a new namespace, too."""
    injection = proxy.inject(Fault(effect=Effect.CUT_STREAM, namespace=namespace, after=1, times=1))
    version = admin.create(CONFIG_MAPS, config_map(namespace, "a"))["metadata"]["resourceVersion"]
    query = {"watch": "true", "resourceVersion": version, "fieldSelector": "metadata.name=b"}
    with far.stream(path_of(CONFIG_MAPS, namespace), query, read_timeout=PATIENCE) as lines:
        admin.create(CONFIG_MAPS, config_map(namespace, "b"))
        assert json.loads(next(lines))["object"]["metadata"]["name"] == "b"
        assert injection.hits == 0
        admin.delete(CONFIG_MAPS, "b", namespace)
        with pytest.raises(Unavailable):
            next(lines)
        assert injection.hits == 1


def test_a_watch_that_is_cut_goes_on_from_where_it_was(proxy, far, admin, namespace):
    with watching(far, namespace) as (_, events, lists):
        injection = proxy.inject(
            Fault(effect=Effect.CUT_STREAM, namespace=namespace, after=1, times=1)
        )
        admin.create(CONFIG_MAPS, config_map(namespace, "a"))
        eventually(lambda: told(events, "a"))  # the first line, or the one after a bookmark
        admin.delete(CONFIG_MAPS, "a", namespace)
        eventually(lambda: told(events, "a") == [EventType.ADDED, EventType.DELETED])
        assert injection.hits == 1
        assert lists == ["initial"]


def test_a_watch_that_fell_silent_is_found_out(proxy, far, admin, namespace):
    with watching(far, namespace, idle_timeout=1.5) as (informer, events, _):
        again = proxy.inject(Fault(effect=Effect.DELAY, verbs=["watch"], namespace=namespace))
        injection = proxy.inject(Fault(effect=Effect.SILENCE, namespace=namespace, times=1))
        admin.create(CONFIG_MAPS, config_map(namespace, "a"))
        eventually(lambda: told(events, "a") == [EventType.ADDED])
        assert injection.hits == 1
        assert again.hits, "only another watch could tell of it"
        assert informer.synced


def test_a_late_line_is_late(proxy, far, admin, namespace):
    with watching(far, namespace) as (_, events, _):
        proxy.inject(Fault(effect=Effect.DELAY_LINE, seconds=0.7, namespace=namespace, times=1))
        start = time.monotonic()
        admin.create(CONFIG_MAPS, config_map(namespace, "a"))
        eventually(lambda: told(events, "a"))
        assert time.monotonic() - start >= 0.7


def test_watches_that_clients_leave_leave_no_thread(proxy, far, namespace):
    before = threading.active_count()
    for _ in range(5):
        path = path_of(CONFIG_MAPS, namespace)
        with far.stream(path, {"watch": "true"}, read_timeout=5):
            pass
    eventually(lambda: threading.active_count() <= before + 1)


# --- a manager


class Through:
    """A cluster whose users all go through a proxy."""

    def __init__(self, environment, directory, stack):
        self.environment = environment
        self.directory = directory
        self.stack = stack

    def user_kubeconfig(self, user):
        kubeconfig = self.environment.user_kubeconfig(user)
        self.role = user
        self.proxy = self.stack.enter_context(FaultProxy(kubeconfig, self.directory))
        return self.proxy.kubeconfig


@contextmanager
def managed(environment, admin, namespace, directory):
    """A manager behind a proxy; of its actuator everything can be asked too."""
    actuator = FaultyActuator(Script())
    with ExitStack() as stack:
        way = Through(environment, directory, stack)
        with running(way, admin, namespace, actuator) as manager:
            yield (
                faults.FaultStage(
                    proxy=way.proxy, actuators=[actuator], admin=admin, role=way.role
                ),
                manager,
            )


def lives(seed, batch, during=lambda: None):
    """Objects that are made, become ready, are deleted and go."""
    made = [f"{batch}-{n}" for n in range(OBJECTS)]
    for name in made:
        seed.create(infrastructure(seed.namespace, seed.namespace, name))
    during()
    for name in made:
        eventually(lambda name=name: seed.is_ready(name))
    for name in made:
        seed.delete(name)
    for name in made:
        eventually(lambda name=name: seed.is_gone(name))


SURVIVED = [
    Fault(effect=Effect.CUT, verbs=["patch"], times=4),
    Fault(effect=Effect.DROP_ANSWER, verbs=["patch"], probability=0.5, seed=1),
    Fault(effect=Effect.DELAY, seconds=0.3),
    Fault(effect=Effect.ANSWER, status=409, verbs=["patch"], times=4),
    Fault(effect=Effect.ANSWER, status=500, verbs=["patch"], probability=0.5, seed=2),
    Fault(effect=Effect.ANSWER, status=429, retry_after=1, times=4),
    Fault(effect=Effect.CUT_STREAM, probability=0.3, seed=3, times=4),
    Fault(effect=Effect.STREAM_ERROR, status=410, probability=0.2, seed=4, times=5),
]


@pytest.mark.parametrize("fault", SURVIVED, ids=lambda fault: f"{fault.effect}-{fault.status}")
def test_a_manager_loses_no_object_to(environment, admin, seed, namespace, tmp_path, fault):
    with managed(environment, admin, namespace, tmp_path) as (stage, _):
        injection = stage.proxy.inject(fault)
        lives(seed, "during")
        assert injection.hits
        injection.remove()
        lives(seed, "after")


def test_a_manager_goes_on_after_connections_were_refused(
    environment, admin, seed, namespace, tmp_path
):
    with managed(environment, admin, namespace, tmp_path) as (stage, _):
        stage.proxy.go_down()

        def down():
            time.sleep(2)
            stage.proxy.come_back()

        lives(seed, "during", down)


def test_a_permission_that_is_revoked_is_missed_until_it_is_back(
    environment, admin, seed, namespace, tmp_path
):
    with managed(environment, admin, namespace, tmp_path) as (stage, _):
        before = admin.get(ROLES, stage.role)["rules"]
        revocation = Revocation(admin, stage.role, Revoked(resource="*/status", verbs=["patch"]))
        revocation.take()
        revocation.take()
        patch = ("patch", "infrastructures/status", "extensions.gardener.cloud")
        eventually(lambda: not is_allowed(admin, stage.role, *patch, namespace=namespace))
        seed.create(infrastructure(namespace, namespace, "infra"))
        eventually(lambda: seed.get()["metadata"].get("finalizers"))
        time.sleep(1)
        assert not seed.status()
        revocation.give_back()
        revocation.give_back()
        eventually(seed.is_ready)
        assert granted(admin.get(ROLES, stage.role)["rules"]) == granted(before)


def granted(rules):
    return {
        (group, resource, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


# --- servers of a cluster of their own


@pytest.fixture(scope="module")
def own():
    """An embedded cluster whose servers may be killed."""
    with Environment() as environment:
        install(environment, [*KINDS, Cluster])
        yield environment


@pytest.fixture
def shoot(own):
    """A shoot namespace in it."""
    client = connect(own.kubeconfig)
    name = f"shoot--x--{time.monotonic_ns():x}"
    client.create(NAMESPACES, {"metadata": {"name": name}})
    seed = Seed(client, name)
    seed.create(cluster(name))
    return seed


@pytest.mark.long  # as all that use this cluster, so that one worker starts it
@pytest.mark.parametrize("server", KillableServer)
def test_a_manager_goes_on_after_a_server_was_killed(own, shoot, tmp_path, server):
    with managed(own, shoot.client, shoot.namespace, tmp_path) as (_, _manager):
        shoot.create(infrastructure(shoot.namespace, shoot.namespace, "kept"))
        eventually(lambda: shoot.is_ready("kept"))
        own.kill(server)
        own.kill(server)
        with pytest.raises(ApiError):
            connect(own.kubeconfig).within(2).create(
                CONFIG_MAPS, config_map(shoot.namespace, "never")
            )
        own.restart(server)
        own.restart(server)
        assert shoot.is_ready("kept")
        lives(shoot, "after")
        shoot.delete("kept")
        eventually(lambda: shoot.is_gone("kept"))


@pytest.mark.long
def test_the_api_server_is_restarted_with_the_etcd_it_needs(own, shoot):
    own.kill(KillableServer.ETCD)
    own.kill(KillableServer.APISERVER)
    own.restart(KillableServer.APISERVER)
    assert connect(own.kubeconfig).get(CLUSTERS, shoot.namespace)


@pytest.mark.long
def test_after_a_random_script_every_object_is_where_it_should_be(own, shoot, tmp_path):
    with managed(own, shoot.client, shoot.namespace, tmp_path) as (stage, manager):
        role = shoot.client.get(ROLES, stage.role)["rules"]
        script = random_script(1, 10, pause=1.0)
        shoot.create(infrastructure(shoot.namespace, shoot.namespace, "old"))
        eventually(lambda: shoot.is_ready("old"))
        shoot.delete("old")
        faults.play(script, attrs.evolve(stage, environment=own), threading.Event())
        assert granted(shoot.client.get(ROLES, stage.role)["rules"]) == granted(role)
        eventually(lambda: shoot.is_gone("old"))
        lives(shoot, "after")
        checks = manager.check_ready()  # that of Orphans, once refused, asks again after minutes
        eventually(lambda: not any(checks[item]() for item in ("informers", "workers", "streams")))
