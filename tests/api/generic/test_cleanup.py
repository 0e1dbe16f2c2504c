"""gardenlet's own cleanup, as simulated: other controllers change the same objects meanwhile."""

import itertools
import secrets
from contextlib import suppress

import attrs
import pytest

from actuator.errors import Invalid, NotFound
from actuator.interface import Resource
from generic.kube.delegating import DelegatingClient
from generic.library.lookup import find
from generic.testing.drill import bystanders
from generic.testing.garden.cleanup import ALL, OWN, Own
from tests.support.cluster.harness import eventually

CONFIG_MAPS = Resource("v1", "configmaps")
OURS = "example.org/ours"
THEIRS = "example.org/theirs"
LATER = "example.org/later"
PUBLISHED = "kube-root-ca.crt"
LABEL = "tests"


class Interfering(DelegatingClient):
    """Another controller acts right before the write with this number."""

    def __init__(self, inner, moment, act):
        super().__init__(inner)
        self.moment = moment
        self.act = act
        self.writes = 0

    def _meanwhile(self):
        self.writes += 1
        if self.writes == self.moment:
            self.act()

    def patch(self, *args, **named):
        self._meanwhile()
        return self._inner.patch(*args, **named)

    def delete(self, *args, **named):
        self._meanwhile()
        return self._inner.delete(*args, **named)


class Target:
    """A ConfigMap that a cleanup works on, and actions of other controllers on it."""

    def __init__(self, admin, namespace):
        self.admin = admin
        self.label = f"t{secrets.token_hex(4)}"
        self.where = CONFIG_MAPS, self.label, namespace
        self.first = self.create([OURS, THEIRS])
        self.second = None

    def create(self, finalizers):
        meta = {"name": self.label, "namespace": self.where[2], "labels": {LABEL: self.label}}
        meta["finalizers"] = finalizers
        obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}
        return self.admin.create(CONFIG_MAPS, obj)

    def set(self, **meta):
        with suppress(NotFound):
            self.admin.patch(*self.where, {"metadata": meta})

    def deleted(self):
        self.set(finalizers=None)
        with suppress(NotFound):
            self.admin.delete(*self.where)

    def replaced(self):
        self.deleted()
        self.second = self.create([OURS, THEIRS])

    def released(self):
        self.set(finalizers=[OURS])

    def guarded(self):
        if "deletionTimestamp" not in self.admin.get(*self.where)["metadata"]:
            self.set(finalizers=[OURS, THEIRS, LATER])

    def labelled(self):
        self.set(annotations={"seen": "true"})

    def now(self):
        return find(self.admin, *self.where)


def check(own, target, moment, change):
    """The law of a cleanup that another controller disturbs once."""
    act = getattr(target, change)
    own = attrs.evolve(own, selector=f"{LABEL}={target.label}")
    own.act(Interfering(target.admin, moment, act), target.where[2])
    now = target.now()
    if target.second is not None:
        assert now == target.second, "another object of its name is not changed"
    elif now is not None:
        assert now["metadata"]["uid"] == target.first["metadata"]["uid"]
        left = {*(now["metadata"].get("finalizers") or ())}
        stripped = {OURS, THEIRS, LATER} if own.strips is ALL else own.strips
        released = {THEIRS} if change == "released" else set()
        assert left - {LATER} == {OURS, THEIRS} - stripped - released
        assert bool(now["metadata"].get("deletionTimestamp")) == own.deletes
    else:
        assert own.deletes or change == "deleted"


CHANGES = ("deleted", "replaced", "released", "guarded", "labelled")
SHAPES = [
    Own(of=[CONFIG_MAPS], patch=patch, deletes=deletes, strips=strips)
    for patch, deletes, strips in itertools.product(
        [None, {"data": {"kept": "no"}}], [True, False], [frozenset(), frozenset([OURS]), ALL]
    )
]


def name_of(own):
    strips = "all" if own.strips is ALL else "ours" if own.strips else "none"
    return f"patches-{bool(own.patch)}-deletes-{own.deletes}-strips-{strips}".lower()


@pytest.mark.parametrize("own", SHAPES, ids=name_of)
def test_a_cleanup_tolerates_every_change_at_every_moment(admin, namespace, own):
    writes = sum([own.patch is not None, own.deletes, bool(own.strips)])
    for moment, change in itertools.product(range(1, writes + 1), CHANGES):
        check(own, Target(admin, namespace), moment, change)


class Careless(Own):
    """Tests no uid, as the cleanup did before."""

    def act(self, client, namespace):
        for resource, obj in self._objects(client, namespace):
            meta = obj["metadata"]
            with suppress(NotFound):
                client.patch(resource, meta["name"], namespace, self.patch)
                uid = {"uid": meta["uid"], "finalizers": None}
                client.patch(resource, meta["name"], namespace, {"metadata": uid})


@pytest.mark.parametrize("moment", [1, 2])
def test_a_cleanup_that_tests_no_uid_breaks_the_law(admin, namespace, moment):
    own = Careless(of=[CONFIG_MAPS], patch={"data": {"kept": "no"}}, deletes=False, strips=ALL)
    with pytest.raises((AssertionError, Invalid)):
        check(own, Target(admin, namespace), moment, "replaced")


def test_a_refused_cleanup_is_an_error_that_names_the_reason(admin, namespace):
    target = Target(admin, namespace)
    own = Own(of=[CONFIG_MAPS], selector=f"{LABEL}={target.label}", patch={"data": {"a b": "c"}})
    with pytest.raises(Invalid, match="a valid config key"):
        own.act(admin, namespace)


class Awaiting(DelegatingClient):
    """After each deletion of the published ConfigMap, waits until its controller recreated it."""

    def delete(self, resource, name, namespace="", **named):
        before = self._inner.get(resource, name, namespace)["metadata"]["uid"]
        self._inner.delete(resource, name, namespace, **named)
        if name == PUBLISHED:
            eventually(lambda: self.published(namespace) not in (None, before))

    def published(self, namespace):
        found = find(self._inner, CONFIG_MAPS, PUBLISHED, namespace)
        return found and found["metadata"]["uid"]


def test_the_root_ca_that_is_published_again_at_once_stops_no_cleanup(admin, namespace):
    client = Awaiting(admin)
    eventually(lambda: client.published(namespace))
    first = client.published(namespace)
    target = Target(admin, namespace)
    [own] = OWN["configmaps-secrets"]
    own.act(client, namespace)
    assert client.published(namespace) not in (None, first)
    assert target.now() is None, "the objects after it are cleaned too"


def test_a_bystander_is_released_although_the_manager_releases_its_own_finalizer(admin, namespace):
    target = Target(admin, namespace)
    target.set(finalizers=[OURS, bystanders.WITNESS])
    client = Interfering(admin, 1, lambda: target.set(finalizers=[bystanders.WITNESS]))
    found = bystanders.look_at(client, CONFIG_MAPS, namespace, target.label)
    assert found.problem is None
    assert "finalizers" not in target.now()["metadata"]
