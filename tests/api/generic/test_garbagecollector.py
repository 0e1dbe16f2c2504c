"""The simulated garbage collector of gardener-resource-manager: deleted and kept objects."""

import random

import pytest

from actuator.interface import CONFIG_MAPS, SECRETS, Resource
from generic.library.managedresources import ManagedResource
from generic.library.managedresources.kind import MANAGED_RESOURCES
from generic.testing import garbagecollector
from generic.testing.garbagecollector import GarbageCollector
from generic.testing.seed import OneShoot, install_crds
from tests.support.cluster.harness import eventually

LABEL = {"resources.gardener.cloud/garbage-collectable-reference": "true"}
KINDS = {"secret": SECRETS, "configmap": CONFIG_MAPS}
POD = {"containers": [{"name": "a", "image": "a"}]}
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": POD}
APP = {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}
JOB = {"template": {"spec": {**POD, "restartPolicy": "Never"}}}
REFERRERS = {
    MANAGED_RESOURCES: {"secretRefs": []},
    Resource("apps/v1", "deployments"): APP,
    Resource("apps/v1", "statefulsets"): {**APP, "serviceName": "x"},
    Resource("apps/v1", "daemonsets"): APP,
    Resource("batch/v1", "jobs"): JOB,
    Resource("batch/v1", "cronjobs"): {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": JOB}},
    Resource("v1", "pods"): POD,
}


@pytest.fixture
def collector(admin, namespace, monkeypatch):
    monkeypatch.setattr(garbagecollector, "_UNUSED_SECONDS", 0.5)
    install_crds(admin, [ManagedResource])
    return GarbageCollector(OneShoot(admin, namespace))


@pytest.fixture
def create(admin, namespace):
    def create(resource, name, **fields):
        meta = {"name": name, "namespace": namespace} | fields.pop("meta", {})
        kinds = {"jobs": "Job", "cronjobs": "CronJob", "pods": "Pod", "secrets": "Secret"}
        kinds |= {"configmaps": "ConfigMap", "deployments": "Deployment"}
        kinds |= {"statefulsets": "StatefulSet", "daemonsets": "DaemonSet"}
        kind = kinds.get(resource.plural, "ManagedResource")
        head = {"apiVersion": resource.api_version, "kind": kind, "metadata": meta}
        admin.create(resource, {**head, **fields})

    return create


def names(admin, namespace):
    """The Secrets and ConfigMaps of the test."""
    found = {
        (kind, obj["metadata"]["name"])
        for kind, resource in KINDS.items()
        for obj in admin.list(resource, namespace)
    }
    return {item for item in found if item[1].startswith("own-")}


def test_unreferenced_objects_are_deleted_and_no_others(collector, create, admin, namespace):
    """Each referrer refers to one; every other labelled object is unused, or only seems used."""
    used: set[tuple[str, str]] = set()
    unused: set[tuple[str, str]] = set()
    plain = set()
    for number, (resource, spec) in enumerate(REFERRERS.items()):
        kind = random.choice([*KINDS])
        name = f"own-{number}"
        prefix = "reference.resources.gardener.cloud/"
        for each, labelled in KINDS.items():
            create(labelled, name, meta={"labels": LABEL})
            (used if each == kind else unused).add((each, name))
        meta = {"annotations": {f"{prefix}{kind}-12345678": name}}
        create(resource, f"referrer-{number}", meta=meta, spec=spec)
    for kind, resource in KINDS.items():
        create(resource, "own-plain")
        plain.add((kind, "own-plain"))
    assert names(admin, namespace) == used | unused | plain
    eventually(lambda: collector.poll() or names(admin, namespace) == used | plain)
    for _ in range(3):
        collector.poll()
    assert names(admin, namespace) == used | plain


def test_an_object_unused_for_a_moment_only_is_kept(collector, create, admin, namespace):
    """As between the creation of a Secret and that of its ManagedResource."""
    create(SECRETS, "own-new", meta={"labels": LABEL})
    collector.poll()
    meta = {"annotations": {"reference.resources.gardener.cloud/secret-12345678": "own-new"}}
    create(MANAGED_RESOURCES, "mr", meta=meta, spec={"secretRefs": [{"name": "own-new"}]})
    moments = iter(range(8))
    eventually(lambda: collector.poll() or next(moments, None) is None)
    assert names(admin, namespace) == {("secret", "own-new")}
    admin.delete(MANAGED_RESOURCES, "mr", namespace)
    eventually(lambda: collector.poll() or names(admin, namespace) == set())
