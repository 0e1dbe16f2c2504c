"""Type, class and namespace select the served objects; predicates only select events."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import UTC, datetime

import pytest

from actuator import ActuatorError
from actuator.v1alpha1 import Infrastructure
from generic.controller.predicates import (
    all_of,
    any_of,
    conditions_changed,
    for_event_types,
    has_namespace,
    is_deleting,
    negate,
)
from generic.kube.clusters import NAMESPACES
from generic.kube.delegating import DelegatingClient
from generic.kube.headers import EventType
from generic.manager.manager import Manager
from generic.manager.options import Options
from generic.tools.explain import explain
from tests.support.cluster.harness import FINALIZER, Script, Seed, connected, eventually, samples
from tests.support.objects.builders import cluster, infrastructure
from tests.support.objects.predicates import has_name


def broken(event):
    raise LookupError("a mistake of the author")


def leaving(event):
    raise SystemExit


PREDICATES = {
    "not-deleting": negate(is_deleting),
    "nothing": lambda event: False,
    "broken": broken,
    "leaving": negate(leaving),
    "name": has_name("another"),
    "namespace": has_namespace("elsewhere"),
    "ended": for_event_types(EventType.DELETED),
    "condition": conditions_changed("Healthy"),
    "combined": all_of(any_of(negate(is_deleting), broken), negate(is_deleting)),
}


@pytest.fixture
def managed(environment, admin, namespace):
    """A manager with the parts that `add` adds, under its generated Role."""

    @contextmanager
    def running(add, **more):
        options = Options(metrics_bind_address="0", health_bind_address="0", leader_election=False)
        manager = Manager(options, **more)
        add(manager)
        with connected(environment, admin, manager, namespace):
            manager.start()
            assert manager.wait_synced()
            yield manager

    return running


@pytest.fixture
def elsewhere(admin, namespace):
    """Another shoot."""
    seed = Seed(admin, f"{namespace}-b")
    admin.create(NAMESPACES, {"metadata": {"name": seed.namespace}})
    seed.create(cluster(seed.namespace))
    yield seed
    seed.delete_cluster()


def held(seed, type, name):
    """An object with our finalizer, as a manager left it that served it before."""
    seed.create(infrastructure(seed.namespace, type, name, finalizers=[FINALIZER]))


def test_an_object_with_our_finalizer_is_deleted_whatever_the_predicates_accept(managed, seed):
    scripts = {word: Script() for word in PREDICATES}
    types = {word: f"{seed.namespace}-{word}" for word in PREDICATES}

    def add(manager):
        for word, predicate in PREDICATES.items():
            manager.add(scripts[word], type=types[word], workers=1, predicates=[predicate])

    for word in PREDICATES:
        held(seed, types[word], f"{word}-before")
        seed.delete(f"{word}-before")
    with managed(add):
        for word in PREDICATES:
            held(seed, types[word], f"{word}-after")
        for word in PREDICATES:
            seed.delete(f"{word}-after")
        for word, script in scripts.items():
            for name in (f"{word}-before", f"{word}-after"):
                eventually(lambda name=name: seed.is_gone(name))
                assert script.operations(name)[-1] == "delete"


def test_a_predicate_that_rejects_deletions_hides_neither_a_failing_nor_a_forced_one(managed, seed):
    def fail(ctx, obj, cluster):
        raise ActuatorError("the cloud says no")

    script = Script(delete=fail)

    def add(manager):
        manager.add(script, type=seed.namespace, predicates=[negate(is_deleting)])

    with managed(add) as manager:
        seed.create(infrastructure(seed.namespace, seed.namespace))
        eventually(seed.is_ready)
        seed.delete()
        eventually(lambda: seed.last_operation() == ("Delete", "Error"))
        eventually(lambda: samples(manager, "actuator_terminating_objects")["failing"] == 1)
        seed.update_cluster(cluster(seed.namespace, force="true"))
        eventually(seed.is_gone)
        assert script.operations()[-1] == "force_delete"


class Deleting(DelegatingClient):
    """Deletes an object right before a write of its status: the answer is the first to show it."""

    def __init__(self, seed):
        self.seed = seed

    def __call__(self, client):
        super().__init__(client)
        return self

    def patch(self, resource, name, namespace, patch, *, subresource=""):
        if subresource and "deletionTimestamp" not in self.seed.get(name)["metadata"]:
            self.seed.delete(name)
        return super().patch(resource, name, namespace, patch, subresource=subresource)


def test_a_deletion_that_an_answer_shows_is_not_hidden_by_predicates(managed, seed, script):
    def add(manager):
        manager.add(script, type=seed.namespace, predicates=[negate(is_deleting)])

    with managed(add, intercept=Deleting(seed)):
        seed.create(infrastructure(seed.namespace, seed.namespace))
        eventually(seed.is_gone)
    assert script.operations() == ["reconcile", "delete"]


def test_actuators_of_one_type_are_separated_by_namespaces(managed, seed, elsewhere, admin):
    mine = Script()
    others = Script()
    type = seed.namespace
    nowhere = Seed(admin, f"{seed.namespace}-c")
    admin.create(NAMESPACES, {"metadata": {"name": nowhere.namespace}})

    def add(manager):
        manager.add(mine, type=type, namespaces=[seed.namespace])
        manager.add(others, type=type, namespaces=[elsewhere.namespace])

    with managed(add) as manager:
        for place in (nowhere, seed, elsewhere):
            place.create(infrastructure(place.namespace, type, place.namespace))
        for place in (seed, elsewhere):
            eventually(lambda place=place: place.is_ready(place.namespace))
            place.delete(place.namespace)
            eventually(lambda place=place: place.is_gone(place.namespace))
        arguments = (admin, Infrastructure.KIND, nowhere.namespace, nowhere.namespace)
        found = explain(*arguments, datetime.now(UTC), manager.registrations)
    assert mine.calls == [("reconcile", seed.namespace), ("delete", seed.namespace)]
    assert others.calls == [("reconcile", elsewhere.namespace), ("delete", elsewhere.namespace)]
    assert "status" not in nowhere.get(nowhere.namespace)
    where = f"of type '{type}' in namespace {nowhere.namespace}"
    assert f"the extension serves no Infrastructure {where}" in found.notes


def test_an_object_whose_type_changed_to_another_is_explained(managed, seed, script, admin):
    with managed(lambda manager: manager.add(script, type=seed.namespace)) as manager:
        seed.create(infrastructure(seed.namespace, seed.namespace))
        eventually(seed.is_ready)
        seed.patch({"spec": {"type": f"{seed.namespace}-x"}})
        seed.delete()
        arguments = (admin, Infrastructure.KIND, seed.namespace, "infra", datetime.now(UTC))
        found = explain(*arguments, manager.registrations)
        assert (
            f"the finalizer {FINALIZER} stays unless another extension removes it"
            in (found.notes[1].partition(";")[0])
        )
        seed.patch({"spec": {"type": seed.namespace}})
        eventually(seed.is_gone)
    assert script.operations() == ["reconcile", "delete"]
