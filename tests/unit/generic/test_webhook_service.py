"""A replica keeps the shared certificates, and publishes their authorities, pass by pass."""

from __future__ import annotations

import base64
import copy
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import reduce
from typing import Any

import attrs
import pytest

from actuator.errors import AlreadyExists, Invalid, NotFound, Unavailable
from actuator.interface import SECRETS
from actuator.meta import Raw
from actuator.v1alpha1 import Network
from generic.kube.certificates import KeyPair
from generic.kube.clock import WatchedClock, trusted_now
from generic.kube.patches import tests_hold as holds
from generic.library.webhooks import WebhookTarget, mutates
from generic.library.webhooks.certificates import DEFAULTS, Step, from_secret, take
from generic.manager.options import Options
from generic.manager.registry import Registry
from generic.manager.webhooks import WebhookService, permissions, secret_name
from generic.serving.metrics import Metrics
from generic.testing.envtest.servers import free_port
from tests.support.cluster.clocks import Hands
from tests.support.objects.stand_ins import StandIn

START = datetime(2026, 1, 1, tzinfo=UTC)
NAMESPACE = "extension-a"


class Hand:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.time = START

    def now(self) -> datetime:
        return self.time

    def monotonic(self) -> float:
        return (self.time - START).total_seconds()


class Store(StandIn):
    """The objects of a cluster, in memory."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], Raw] = {}
        self.version = 0
        self.is_down = False
        """Whether configurations cannot be read."""
        self.first: Raw | None = None
        """Created by another replica just before the next create."""

    def get(self, resource: Any, name: str, namespace: str = "") -> Raw:
        if resource.plural == "namespaces":
            return {"metadata": {"name": name, "uid": f"uid-{name}"}}
        if self.is_down and resource.plural != "secrets":
            raise Unavailable(503, "the API server is down")
        try:
            return copy.deepcopy(self.objects[resource.plural, name])
        except KeyError:
            raise NotFound(404, name) from None

    def create(self, resource: Any, obj: Raw) -> Raw:
        if self.first is not None:
            obj = self.first
            self.first = None
            self._put(resource, obj)
            raise AlreadyExists(409, "exists")
        return self._put(resource, obj)

    def patch(self, resource: Any, name: str, namespace: str, patch: Any, **_: Any) -> Raw:
        found = self.get(resource, name)
        if not holds(patch, found):
            raise Invalid(422, "test failed")
        for change in patch:
            *steps, last = change["path"].split("/")[1:]
            if change["op"] == "add":
                reduce(dict.__getitem__, steps, found)[last] = change["value"]
        return self._put(resource, found)

    def _put(self, resource: Any, obj: Raw) -> Raw:
        self.version += 1
        stored = copy.deepcopy(obj)
        stored["metadata"] |= {"resourceVersion": str(self.version), "uid": "u"}
        self.objects[resource.plural, stored["metadata"]["name"]] = stored
        return copy.deepcopy(stored)

    def bundle(self) -> bytes:
        (config,) = (o for (kind, _), o in self.objects.items() if kind.startswith("mutating"))
        return base64.b64decode(config["webhooks"][0]["clientConfig"]["caBundle"])


class Once(threading.Event):
    """Ends a service after one pass."""

    def __init__(self) -> None:
        super().__init__()
        self.waited: float | None = 0.0

    def wait(self, timeout: float | None = None) -> bool:
        self.waited = timeout
        self.set()
        return True


@mutates(Network, failure_policy="Fail", namespace_labels={"a": "b"})
def mark(request: Any) -> None:
    pass


class World:
    """One cluster with replicas."""

    def __init__(self) -> None:
        self.store = Store()
        self.clock = Hand()
        self.services: list[WebhookService] = []

    def registry(self, **more: Any) -> Registry:
        given: dict[str, Any] = {
            "leader_election_id": "a-leader-election",
            "webhook_config_namespace": NAMESPACE,
            "webhook_config_server_port": free_port(),
        }
        registry = Registry(Options(**given | more))
        registry.add_webhooks(mark)
        return registry

    def replica(self, **more: Any) -> WebhookService:
        registry = self.registry(**more)
        service = WebhookService(registry, self.store, self.clock, Metrics(), DEFAULTS)
        self.services.append(service)
        return service

    def secret(self) -> Raw:
        return self.store.get(SECRETS, secret_name(self.registry().options))

    def serves(self, service: WebhookService) -> None:
        """A new connection is trusted by the configuration, for the name of the Service."""
        context = ssl.create_default_context(cadata=self.store.bundle().decode())
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        port = service.server.address.port
        with closing(socket.create_connection(("127.0.0.1", port), timeout=5)) as raw:
            name = f"gardener-extension-a.{NAMESPACE}.svc"
            context.check_hostname = True
            context.wrap_socket(raw, server_hostname=name).close()


def run(service: WebhookService) -> float | None:
    """One pass; return the seconds until the next one."""
    once = Once()
    service.run(once)
    return once.waited


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    world.clock.time = datetime.now(UTC)  # ssl has no other clock
    yield world
    for service in world.services:
        service.stop(0)


def test_replicas_share_one_secret(world):
    first = world.replica()
    second = world.replica()
    assert first.problem() == "no certificate yet"
    run(first)
    before = world.secret()
    run(second)
    assert world.secret() == before
    assert first.authorities == second.authorities == world.store.bundle()
    for service in (first, second):
        assert service.problem() is None
        world.serves(service)


def test_the_first_of_two_new_replicas_wins(world):
    service = world.replica()
    theirs = take(Step.START, None, ["x"], world.clock.now(), DEFAULTS)
    name = secret_name(world.registry().options)
    world.store.first = {"metadata": {"name": name}, "data": theirs.data()}
    run(service)
    assert service.authorities == theirs.bundle == world.store.bundle()
    world.serves(service)


@pytest.mark.parametrize("data", [None, {}, {"tls.crt": "Zm9v"}])
def test_a_garbled_secret_is_replaced_and_no_certificate_changes(world, data):
    """The other replicas serve the earlier certificate until their next pass."""
    service = world.replica()
    run(service)
    before = world.secret()
    world.store.objects["secrets", before["metadata"]["name"]]["data"] = data
    run(service)
    assert service.problem() is None
    assert world.secret()["data"] == before["data"]
    world.serves(service)


def test_a_new_replica_replaces_a_garbled_secret(world):
    service = world.replica()
    name = secret_name(world.registry().options)
    world.store.first = {"metadata": {"name": name}, "data": {"tls.crt": "Zm9v"}}
    run(service)
    assert service.problem() is None
    world.serves(service)


def test_a_deleted_secret_is_created_again_and_no_certificate_changes(world):
    service = world.replica()
    run(service)
    before = world.secret()
    del world.store.objects["secrets", before["metadata"]["name"]]
    run(service)
    assert world.secret()["data"] == before["data"]


def test_configurations_that_others_changed_are_restored(world):
    service = world.replica(webhook_config_owner_namespace="owner")
    run(service)
    (key,) = (key for key in world.store.objects if key[0].startswith("mutating"))
    owners = world.store.objects[key]["metadata"]["ownerReferences"]
    assert [(owner["kind"], owner["uid"]) for owner in owners] == [("Namespace", "uid-owner")]
    world.store.objects[key]["webhooks"] = []
    run(service)
    assert world.store.bundle() == service.authorities


def test_a_new_authority_signs_only_after_it_was_published(world):
    service = world.replica()
    run(service)
    for _ in range(2):
        world.clock.time += timedelta(days=8)
        run(service)  # renews the certificate
    world.clock.time += timedelta(days=7, hours=23)
    run(service)
    world.clock.time += timedelta(hours=1)
    world.store.is_down = True
    run(service)  # cannot even confirm the bundle of before
    world.store.is_down = False
    run(service)
    assert service.authorities.count(b"BEGIN") == 2
    added = world.secret()["data"]["tls.crt"]
    world.clock.time += timedelta(minutes=59)
    run(service)
    assert world.secret()["data"]["tls.crt"] == added
    world.clock.time += timedelta(minutes=1)
    run(service)
    assert world.secret()["data"]["tls.crt"] != added
    assert service.authorities.count(b"BEGIN") == 2
    world.clock.time += timedelta(hours=1)
    run(service)
    assert service.authorities.count(b"BEGIN") == 1


@pytest.fixture
def hands(world) -> Hands:
    """In place of the clock of the manager, which is steady from now on."""
    hands = Hands()
    world.clock = WatchedClock(hands)
    trusted_now(world.clock)
    hands.seconds += 61.0
    return hands


@pytest.mark.parametrize("days", [3, 9, 11, 4000, -3, -4000])
@pytest.mark.parametrize("is_new", [False, True])
def test_a_clock_that_is_wrong_for_a_moment_replaces_no_certificate(world, hands, days, is_new):
    service = world.replica()
    run(service)
    before = world.secret()
    if is_new:  # another process, in its first minute
        world.clock = WatchedClock(hands)
        service = world.replica()
    for ahead, wait in [(days * 86400.0, 1.0), (0.0, 20.0), (0.0, 61.0)]:
        hands.seconds += wait
        hands.ahead = ahead
        run(service)
        assert world.secret() == before
    assert service.problem() is None


def test_a_certificate_is_renewed_within_an_hour_by_a_clock_that_is_never_steady(world, hands):
    service = world.replica()
    run(service)
    before = world.secret()
    hands.seconds += 9 * 86400.0
    began = hands.seconds
    while world.secret() == before:
        hands.seconds += 60.0
        hands.ahead += 6.0
        run(service)
        assert hands.seconds < began + 3800
    assert hands.seconds > began + 3500
    assert service.problem() is None


@pytest.mark.parametrize("days", [2, -2])
def test_a_step_does_not_change_how_long_an_authority_is_known(world, hands, days):
    service = world.replica()
    run(service)
    for later in (8.0, 8.0, 7.9):
        hands.seconds += later * 86400
        run(service)
    hands.seconds += 0.1 * 86400
    run(service)
    assert service.authorities.count(b"BEGIN") == 2
    added = world.secret()
    hands.ahead = days * 86400.0
    run(service)
    hands.seconds += 1800.0
    run(service)
    assert world.secret() == added, "API servers may not know the new authority"
    hands.seconds += 1800.0
    run(service)
    assert world.secret() != added


def test_readiness_names_the_problem(world):
    service = world.replica()
    world.store.is_down = True
    assert run(service) == 2
    assert service.problem() == "the API server is down"
    world.store.is_down = False
    assert run(service) == 60
    assert service.problem() is None
    world.store.is_down = True
    run(service)
    assert service.problem() is None, "what is served is still trusted"
    world.clock.time += timedelta(minutes=31)
    assert service.problem() == "the API server is down"
    world.clock.time += timedelta(days=10)
    assert service.problem() == "the serving certificate has expired"
    service.server.draining = True
    assert service.problem() is not None


def test_a_taken_port_is_reported_with_its_flag(world):
    with socket.create_server(("127.0.0.1", 0)) as other:
        service = world.replica(webhook_config_server_port=other.getsockname()[1])
        run(service)
    assert "set another --webhook-config-server-port" in service.problem()


def save(folder: Any, pair: KeyPair, ca: bytes | None) -> None:
    (folder / "tls.crt").write_bytes(pair.certificate)
    (folder / "tls.key").write_bytes(pair.key)
    if ca is not None:
        (folder / "ca.crt").write_bytes(ca)


def test_a_given_certificate_is_read_again_when_it_changes(world, tmp_path):
    hosts = [f"gardener-extension-a.{NAMESPACE}.svc"]
    service = world.replica(webhook_config_cert_dir=tmp_path)
    run(service)
    assert "cannot read" in service.problem()
    assert "provide tls.crt, tls.key and ca.crt" in service.problem()
    first, second = (take(Step.START, None, hosts, world.clock.now(), DEFAULTS) for _ in range(2))
    save(tmp_path, first.serving, first.bundle)
    run(service)
    assert service.problem() is None
    assert world.store.bundle() == first.bundle
    world.serves(service)
    (tmp_path / "tls.key").write_bytes(b"half of an update")
    run(service)
    world.serves(service)
    save(tmp_path, second.serving, second.bundle)
    run(service)
    assert world.store.bundle() == second.bundle
    world.serves(service)
    assert [kind for kind, _ in world.store.objects] == ["mutatingwebhookconfigurations"]
    world.clock.time += timedelta(days=10)
    assert service.problem() == "the serving certificate has expired"


def test_a_given_certificate_without_authority_is_trusted_itself(world, tmp_path):
    hosts = [f"gardener-extension-a.{NAMESPACE}.svc"]
    own = take(Step.START, None, hosts, world.clock.now(), DEFAULTS)
    save(tmp_path, own.serving, None)
    service = world.replica(webhook_config_cert_dir=tmp_path)
    run(service)
    world.serves(service)


def test_without_a_namespace_the_certificate_stays_in_memory(world):
    more = {"webhook_config_mode": "url", "webhook_config_url": "127.0.0.1"}
    service = world.replica(**more, webhook_config_namespace="")
    run(service)
    assert service.problem() is None
    assert [kind for kind, _ in world.store.objects] == ["mutatingwebhookconfigurations"]


def test_the_secret_of_an_admission_component_is_in_its_own_cluster(world, monkeypatch):
    runtime = Store()
    monkeypatch.setenv("SOURCE_CLUSTER", "enabled")
    monkeypatch.setattr("generic.manager.webhooks.service_account", lambda: "the pod")
    monkeypatch.setattr("generic.manager.webhooks.connect", {"the pod": runtime}.get)
    run(world.replica())
    assert [kind for kind, _ in runtime.objects] == ["secrets"]
    assert [kind for kind, _ in world.store.objects] == ["mutatingwebhookconfigurations"]


def test_its_role_names_each_object_that_it_reads_or_changes(world):
    names = {
        (
            permission.resource.plural,
            tuple(permission.verbs),
            permission.namespace,
            tuple(permission.names),
        )
        for permission in permissions(world.registry())
    }
    assert names == {
        ("secrets", ("get", "patch"), NAMESPACE, ("gardener-extension-a-webhooks",)),
        ("secrets", ("create",), NAMESPACE, ()),
        ("mutatingwebhookconfigurations", ("create",), "", ()),
        ("mutatingwebhookconfigurations", ("get", "patch"), "", ("gardener-extension-a",)),
        ("validatingwebhookconfigurations", ("get", "patch"), "", ("gardener-extension-a",)),
        ("namespaces", ("get",), "", (NAMESPACE,)),
    }
    assert permissions(world.registry(webhook_config_namespace="")) == []


def test_keys_are_in_no_text(world, caplog):
    caplog.set_level("DEBUG")
    service = world.replica()
    run(service)
    current = from_secret(world.secret())
    assert current is not None
    for key in (current.key, current.serving.key):
        body = key.decode().splitlines()[1]
        assert body not in repr(current) + str([vars(record) for record in caplog.records])
    assert "PRIVATE" not in repr(vars(service))


def test_a_shoot_that_lags_behind_delays_nothing_and_is_updated_later(world, monkeypatch):
    answers = iter([False, True])
    monkeypatch.setattr("generic.library.webhooks.shoot.refresh", lambda *_: next(answers))
    registry = world.registry()
    registry.add_webhooks(
        attrs.evolve(mark, name="inside", target=WebhookTarget.SHOOT), shoot_origin="a"
    )
    service = WebhookService(registry, world.store, world.clock, Metrics(), DEFAULTS)
    world.services.append(service)
    for _ in range(3):  # the third pass does not ask again
        run(service)
        assert service.problem() is None
        assert len(service.shoot_manifests() or ()) == 1
    assert next(answers, None) is None
