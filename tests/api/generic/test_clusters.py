"""The Cluster of an object: missing, broken, appearing, changing; never a lost object."""

from contextlib import suppress

import pytest

from actuator.errors import Invalid
from actuator.v1alpha1 import Cluster
from generic.kube.clusters import CLUSTERS
from generic.kube.crds import crd
from generic.testing.seed import CRDS
from tests.support.cluster.harness import eventually
from tests.support.objects.builders import cluster, infrastructure


def test_an_object_without_a_cluster_reports_it_and_continues_when_it_appears(seed, start, script):
    seed.client.delete(CLUSTERS, seed.namespace)
    start(script)
    seed.create(infrastructure(seed.namespace, seed.namespace))
    eventually(lambda: seed.last_operation() == ("Create", "Error"))
    assert f"Cluster {seed.namespace} not found" in seed.status()["lastError"]["description"]
    assert script.operations() == []
    seed.create(cluster(seed.namespace))
    eventually(seed.is_ready)


@pytest.fixture
def any_cluster(admin, seed):
    """Afterwards the API server accepts any spec of a Cluster, as one with an older CRD does."""
    name = f"{Cluster.KIND.plural}.{Cluster.KIND.group}"
    path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec"
    strict = crd(Cluster)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]

    def replace(schema):
        admin.patch(CRDS, name, "", [{"op": "replace", "path": path, "value": schema}])

    def accepts_a_text():
        with suppress(Invalid):
            seed.update_cluster(cluster(seed.namespace, shoot="a string"))
            return True

    replace({"type": "object", "x-kubernetes-preserve-unknown-fields": True})
    eventually(accepts_a_text)
    yield
    seed.update_cluster(cluster(seed.namespace))
    replace(strict)


@pytest.mark.usefixtures("any_cluster")
def test_a_cluster_whose_shoot_is_no_object_is_named_in_the_status(seed, start, script):
    start(script)
    seed.create(infrastructure(seed.namespace, seed.namespace))
    eventually(lambda: "cannot be read" in str(seed.status().get("lastError")))
    seed.update_cluster(cluster(seed.namespace, shoot=None))
    eventually(lambda: "no spec.shoot" in str(seed.status().get("lastError")))
    seed.update_cluster(cluster(seed.namespace))
    eventually(seed.is_ready)


def test_the_actuator_gets_the_cluster_as_it_is(seed, start, script):
    seen = []
    script.on["reconcile"] = lambda ctx, obj, cluster: seen.append(
        (cluster.exists, cluster.technical_id, cluster.region, cluster.shoot_key)
    )
    start(script)
    seed.create(infrastructure(seed.namespace, seed.namespace))
    eventually(seed.is_ready)
    assert seen == [(True, seed.namespace, "eu-1", "garden-tests/shoot")]


def test_with_the_annotation_ignored_a_change_of_the_spec_is_enough(seed, start, script):
    start(script, ignore_operation_annotation=True)
    seed.create(infrastructure(seed.namespace, seed.namespace))
    eventually(seed.is_ready)
    seed.patch({"spec": {"region": "eu-2"}})
    eventually(lambda: script.operations() == ["reconcile"] * 2 and seed.is_ready())
    seed.annotate(unrelated="1")
    seed.update_cluster(cluster(seed.namespace, failed=True))
    seed.delete()
    seed.update_cluster(cluster(seed.namespace, failed=True, force="true"))
    eventually(seed.is_gone)
    assert script.operations() == ["reconcile"] * 2 + ["force_delete"]


def test_without_it_a_change_of_the_spec_waits_for_a_request(seed, start, script):
    start(script)
    seed.create(infrastructure(seed.namespace, seed.namespace))
    eventually(seed.is_ready)
    seed.patch({"spec": {"region": "eu-2"}})
    seed.create(infrastructure(seed.namespace, seed.namespace, name="later"))
    eventually(lambda: seed.is_ready("later"))
    assert script.operations() == ["reconcile"]
    seed.ask("reconcile")
    eventually(lambda: seed.is_ready() and script.operations() == ["reconcile"] * 2)
    assert seed.status()["observedGeneration"] == 2
