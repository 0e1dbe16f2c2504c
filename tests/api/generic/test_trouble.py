"""The faults of `actuator drill --all`: they occur only between begin and end."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from actuator import Actuator, Resource
from actuator.errors import ApiError, Gone, Unavailable
from actuator.interface import SECRETS
from actuator.v1alpha1 import Infrastructure
from generic.kube.client import connect, path_of
from generic.testing.drill.trouble import CALM, TROUBLES, Trouble, TroubledClient, Troublemaker
from tests.support.objects.stand_ins import UNUSED

ROLES = Resource("rbac.authorization.k8s.io/v1", "roles")


@pytest.fixture
def troubled(environment):
    """A client with each request's fault, and the one that causes it."""

    def start(**faults):
        maker = Troublemaker(Trouble(name="test", **faults))
        maker.begin()
        return maker, TroubledClient(connect(environment.kubeconfig), maker)

    return start


def role(namespace):
    return {
        "apiVersion": ROLES.api_version,
        "kind": "Role",
        "metadata": {"name": "made", "namespace": namespace},
        "rules": [],
    }


def first_line(client, namespace):
    with client.stream(path_of(ROLES, namespace), {"watch": "true"}, read_timeout=10) as lines:
        return next(iter(lines))


def test_a_refused_request_does_not_reach_the_api_server(troubled, admin, namespace):
    maker, client = troubled(refused=1.0)
    with pytest.raises(ApiError, match="injected fault"):
        client.create(ROLES, role(namespace))
    assert admin.list(ROLES, namespace) == []
    maker.end()
    client.create(ROLES, role(namespace))
    assert len(admin.list(ROLES, namespace)) == 1


def test_requests_are_refused_with_different_errors(troubled, namespace):
    _, client = troubled(refused=1.0)
    statuses = set()
    for _ in range(40):
        with pytest.raises(ApiError) as caught:
            client.list(ROLES, namespace)
        statuses.add(caught.value.status)
    assert statuses == {409, 429, 500, 503}


def test_a_request_whose_answer_is_lost_is_carried_out(troubled, admin, namespace):
    _, client = troubled(lost=1.0)
    with pytest.raises(Unavailable, match="dropped the answer"):
        client.create(ROLES, role(namespace))
    assert len(admin.list(ROLES, namespace)) == 1


@pytest.mark.parametrize("faults", [{"refused": 1.0}, {"lost": 1.0}])
def test_requests_for_core_kinds_have_no_fault(troubled, namespace, faults):
    _, client = troubled(**faults)
    assert isinstance(client.list(SECRETS, namespace), list)


@pytest.mark.parametrize(
    ("faults", "error"), [({"cut": 1.0}, Unavailable), ({"expired": 1.0}, Gone)]
)
def test_a_watch_ends_at_its_first_line(troubled, admin, namespace, faults, error):
    maker, client = troubled(**faults)
    admin.create(ROLES, role(namespace))
    with pytest.raises(error):
        first_line(client, namespace)
    maker.end()
    assert b"made" in first_line(client, namespace)


def test_derived_clients_have_the_same_faults(troubled, namespace):
    _, client = troubled(refused=1.0)
    for derived in (client.within(5), client.metadata_only(), client.gated(lambda: None)):
        with pytest.raises(ApiError, match="injected fault"):
            derived.list(ROLES, namespace)


class Notes(Actuator[Infrastructure]):
    called = False

    def reconcile(self, ctx, obj, cluster): ...

    def delete(self, ctx, obj, cluster): ...

    def force_delete(self, ctx, obj, cluster):
        self.called = True


def test_a_force_deletion_hangs_until_it_is_calm():
    inner = Notes()
    maker = Troublemaker(Trouble(name="test", hangs=True))
    maker.begin()
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(maker.actuator(inner).force_delete, UNUSED, UNUSED, UNUSED)
        with pytest.raises(TimeoutError):
            call.result(timeout=0.5)
        assert not inner.called
        maker.end()
        call.result(timeout=30)
    assert inner.called


def test_an_actuator_without_a_fault_is_not_wrapped():
    inner = Notes()
    assert Troublemaker(CALM).actuator(inner) is inner


@pytest.mark.parametrize("trouble", TROUBLES, ids=lambda trouble: trouble.name)
def test_each_trouble_but_calm_has_a_fault(trouble):
    plain = Trouble(name=trouble.name, budget=trouble.budget)
    assert (trouble == plain) is (trouble is CALM)
