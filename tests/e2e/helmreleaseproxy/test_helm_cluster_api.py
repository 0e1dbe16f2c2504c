"""Clusters of Cluster API in place of Targets, and the objects that their deletion waits for."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

import extensions.helmreleaseproxy
from actuator.cluster import FORCE_DELETION
from actuator.errors import ApiError
from extensions.helmreleaseproxy.targets import with_cluster_api
from generic.testing.seed import install_crds
from tests.support.cluster.harness import eventually
from tests.support.samples import cluster_api
from tests.support.samples.cluster_api import (
    CONTROL_PLANES,
    INFRASTRUCTURES,
    clusters,
    create_cluster,
    set_endpoint,
)
from tests.support.samples.helm import CHARTS, RELEASES

CLUSTERS = clusters()


@pytest.fixture
def capi(admin, near):
    """Definitions of Cluster API, and a Cluster `c` with a kubeconfig, without an endpoint."""
    install_crds(admin, cluster_api.definitions())
    create_cluster(admin, near.namespace, "c", env="prod")
    near.kubeconfig("c", near.way.proxy.kubeconfig.read_bytes())


@pytest.fixture
def policy(admin, near, namespace):
    """The sample's policy, once the API server enforces it."""
    manifests = cluster_api.policy(namespace)
    for manifest in manifests:
        admin.create(cluster_api.POLICIES[manifest["kind"]], manifest)
    yield
    for manifest in manifests:
        admin.delete(cluster_api.POLICIES[manifest["kind"]], manifest["metadata"]["name"])


def example(namespace):
    """The HelmChartProxy of the README, with a chart that is here."""
    text = Path(extensions.helmreleaseproxy.__file__).with_name("README.md").read_text()
    code = text.partition("## Clusters of Cluster API")[2].partition("```yaml\n")[2]
    manifest = yaml.safe_load(code.partition("```")[0])
    for field in ("repoURL", "chartName", "version"):
        del manifest["spec"][field]
    manifest["spec"] |= {"chart": "note", "namespace": namespace}
    manifest["metadata"]["namespace"] = namespace
    return manifest


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_a_chart_goes_to_the_clusters_that_the_selector_means_once_they_have_an_endpoint(
    near, way, serve, namespace, admin, capi, version
):
    create_cluster(admin, namespace, "other", env="test")
    serve(places=with_cluster_api(version))
    manifest = example(namespace)
    name = manifest["metadata"]["name"]
    admin.create(CHARTS, manifest)
    release = f"{name}-c"
    eventually(lambda: "controlPlaneEndpoint" in near.condition(RELEASES, release)[2])
    set_endpoint(admin, namespace, "c")
    eventually(lambda: near.is_ready(CHARTS, name))
    assert way.text(namespace, name) == "Hello"
    assert near.is_gone(RELEASES, f"{name}-other")
    near.patch(CLUSTERS, "c", {"metadata": {"labels": {"env": "test"}}})
    eventually(lambda: near.is_gone(RELEASES, release))
    assert way.text(namespace, name) is None
    assert near.finalizers(CLUSTERS, "c") == [cluster_api.OWN_FINALIZER]


@pytest.mark.parametrize("made_by", ["chart", "hand"])
def test_a_cluster_keeps_control_plane_and_infrastructure_until_its_releases_are_uninstalled(
    near, way, serve, namespace, admin, environment, capi, policy, made_by
):
    set_endpoint(admin, namespace, "c")
    serve(places=with_cluster_api("v1beta2"))
    if made_by == "chart":
        near.chart(targetKind="Cluster")
        release = "note-c"
    else:
        near.release(release := "note", "c", targetKind="Cluster")
    eventually(lambda: near.is_ready(RELEASES, release))
    eventually(lambda: refused(environment, namespace))
    way.proxy.go_down()
    near.delete(CLUSTERS, "c")
    eventually(lambda: near.says(RELEASES, release, "NoAnswer"))
    refusal = cluster_api.delete_parts(admin, namespace, "c")
    assert f"HelmReleaseProxy {release} has a release in the cluster" in refusal
    assert "force the deletion" in refusal
    way.proxy.come_back()
    eventually(lambda: not cluster_api.delete_parts(admin, namespace, "c"), seconds=120)
    assert way.revisions(namespace, "note") == []
    for resource in (CONTROL_PLANES, INFRASTRUCTURES, CLUSTERS):
        eventually(lambda resource=resource: near.is_gone(resource, "c"))
    assert near.orphans() == []


@pytest.mark.parametrize("forced", ["cluster", "chart"])
def test_a_force_deletion_releases_the_cluster_and_records_the_remaining_release(
    near, way, serve, namespace, admin, capi, policy, forced
):
    set_endpoint(admin, namespace, "c")
    serve(places=with_cluster_api("v1beta2"))
    near.chart(targetKind="Cluster", targetSelector={"env": "prod"})
    eventually(lambda: near.is_ready(RELEASES, "note-c"))
    way.proxy.go_down()
    near.delete(CLUSTERS, "c")
    eventually(lambda: near.says(RELEASES, "note-c", "NoAnswer"))
    if forced == "cluster":
        near.force(CLUSTERS, "c")
    else:
        near.delete(CHARTS, "note")
        near.force(CHARTS, "note")
    eventually(lambda: near.is_gone(RELEASES, "note-c"))
    assert near.orphans() == [("Helm::Release", f"{namespace}/note@{namespace}/c")]
    eventually(lambda: not cluster_api.delete_parts(admin, namespace, "c"))
    eventually(lambda: near.is_gone(CLUSTERS, "c"))


def test_the_policy_does_not_wait_for_releases_that_are_force_deleted_while_no_manager_runs(
    near, serve, namespace, admin, environment, capi, policy
):
    set_endpoint(admin, namespace, "c")
    manager = serve(places=with_cluster_api("v1beta2"))
    near.release("note", "c", targetKind="Cluster")
    eventually(lambda: near.is_ready(RELEASES, "note"))
    eventually(lambda: refused(environment, namespace))
    manager.stop()
    near.delete(RELEASES, "note")
    assert refused(environment, namespace)
    near.patch(RELEASES, "note", {"metadata": {"annotations": {FORCE_DELETION: "true"}}})
    eventually(lambda: not refused(environment, namespace))


def test_a_manager_without_cluster_api_reports_it_and_blocks_no_deletion(
    near, serve, namespace, admin, capi
):
    serve()
    near.release("note", "c", targetKind="Cluster")
    near.chart(targetKind="Cluster")
    for resource in (RELEASES, CHARTS):
        eventually(
            lambda resource=resource: near.says(resource, "note", "spec.targetKind", "CLUSTER_API")
        )
        near.delete(resource, "note")
        eventually(lambda resource=resource: near.is_gone(resource, "note"))


def refused(environment, namespace):
    """Whether the infrastructure of `c` cannot be deleted; deletes nothing."""
    api = f"/apis/{INFRASTRUCTURES.api_version}/namespaces/{namespace}/{INFRASTRUCTURES.plural}"
    try:
        environment.request("DELETE", f"{api}/c?dryRun=All")
    except ApiError:
        return True
    return False
