"""NetworkFilter: its requests to the seed, and its objects in the shoot."""

import pytest

from actuator import Cluster
from actuator.cluster import ClusterSpec
from actuator.meta import Base64, ObjectMeta
from actuator.v1alpha1 import Extension
from extensions.networkfilter.actuator import NetworkFilter
from extensions.networkfilter.config import FilterConfig
from generic.testing.recording import RecordingContext

SHOOT = "shoot--a--b"
NAME = "extension-networking-filter"
CREATED = f"create managedresources.resources.gardener.cloud {SHOOT}/{NAME}"
FORCED = {"metadata": {"annotations": {"confirmation.gardener.cloud/force-deletion": "true"}}}


@pytest.fixture
def ctx():
    ctx = RecordingContext(config=FilterConfig())
    NetworkFilter().reconcile(ctx, extension(), Cluster())
    return ctx


def extension():
    return Extension(metadata=ObjectMeta(name="x", namespace=SHOOT))


def test_without_a_configuration_nothing_is_blocked(ctx):
    spec = ctx.bodies[CREATED]["spec"]
    [reference] = spec["secretRefs"]
    secret = ctx.bodies[f"create secrets {SHOOT}/{reference['name']}"]
    manifests = Base64(secret["data"]["objects.yaml"]).decode_bytes().decode()
    assert '"data": {"blocked": ""}' in manifests
    assert spec["injectLabels"], "gardenlet leaves it to us"


def test_only_a_forced_deletion_does_not_look_again(ctx):
    NetworkFilter().force_delete(ctx, extension(), Cluster(spec=ClusterSpec(shoot=FORCED)))
    assert ctx.steps[-1].startswith("delete ")
    assert f"delete managedresources.resources.gardener.cloud {SHOOT}/{NAME}" in ctx.steps
    NetworkFilter().delete(ctx, extension(), Cluster())
    assert ctx.steps[-1] == f"get managedresources.resources.gardener.cloud {SHOOT}/{NAME}"
