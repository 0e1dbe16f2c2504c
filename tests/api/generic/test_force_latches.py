"""The time for which a force deletion seen once is remembered."""

import pytest

from actuator import Resource
from actuator.cluster import ClusterState
from actuator.meta import ClusterNeed
from actuator.v1alpha1 import KINDS, Infrastructure
from generic.kube import clusters
from generic.kube.clusters import CLUSTERS, Clusters
from generic.kube.headers import cluster_header
from generic.kube.store import Store
from tests.support.objects.builders import cluster

NAMESPACES = Resource("v1", "namespaces", namespaced=False)
KIND = Infrastructure.KIND


class Feed:
    """Clusters as a watch tells of them."""

    def __init__(self, client):
        self.store = Store(CLUSTERS, cluster_header)
        self.clusters = Clusters(self.store, client)
        self._version = 0

    def write(self, name, uid, **more):
        manifest = cluster(name, **more)
        self._version += 1
        manifest["metadata"] |= {"uid": uid, "resourceVersion": str(self._version)}
        event = self.store.observe(manifest)
        assert event is not None
        self.clusters.on_event(event)
        return manifest

    def force_and_delete(self, name, uid="1"):
        """As gardenlet does: the Cluster may go before the last extension object."""
        manifest = self.write(name, uid, force="true")
        event = self.store.observe_deleted(manifest)
        assert event is not None
        self.clusters.on_event(event)

    def is_forced(self, name):
        return self.clusters.verdict(KIND, name).forced


@pytest.fixture
def feed(admin, monkeypatch):
    monkeypatch.setattr(clusters, "REMEMBERED", 3)
    return Feed(admin)


def test_the_number_of_remembered_force_deletions_is_bounded(feed):
    for number in range(10):
        feed.force_and_delete(f"shoot-{number}")
    assert [n for n in range(10) if feed.is_forced(f"shoot-{n}")] == [7, 8, 9]


def test_a_force_deletion_is_remembered_while_objects_ask_for_it(feed):
    feed.force_and_delete("asking")
    for number in range(10):
        feed.force_and_delete(f"shoot-{number}")
        assert feed.is_forced("asking")


def test_a_force_deletion_ends_when_another_cluster_takes_the_name(feed):
    feed.force_and_delete("shoot", "1")
    assert feed.is_forced("shoot")
    feed.write("shoot", "2")
    assert not feed.is_forced("shoot")


def test_the_number_of_remembered_namespaces_without_a_shoot_is_bounded(feed, admin):
    kind = next(cls.KIND for cls in KINDS if cls.KIND.cluster is ClusterNeed.IN_SHOOT_NAMESPACE)
    names = [f"no-shoot-{number}" for number in range(8)]
    for name in names:
        admin.create(NAMESPACES, {"metadata": {"name": name}})
        assert feed.clusters.resolve(kind, name).state is ClusterState.NOT_NEEDED
    assert len(feed.clusters._no_shoots) <= 3
