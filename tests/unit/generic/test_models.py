"""Models of the package `kubernetes`: their location, and how they are read."""

import gc
import re
import weakref
from collections.abc import Iterator
from contextlib import suppress

import kubernetes.client
import pytest
from kubernetes.client import V1ConfigMap, V1Deployment

from actuator.errors import DecodeError
from actuator.interface import CONFIG_MAPS, Resource
from actuator.v1alpha1 import Infrastructure
from generic.kube.models import read_as, resource_of_class
from generic.library.manifests import manifest, manifest_of
from generic.testing.recording import RecordingContext

PATH = re.compile(r"/apis?/(.+?)(/namespaces/\{namespace\})?/([a-z]+)/\{name\}")


def served() -> Iterator[tuple[type, Resource]]:
    """Each class that the package's stable API classes read, with the path that they request."""
    for name in [name for name in dir(kubernetes.client) if re.fullmatch(r"\w+V\dApi", name)]:
        api = getattr(kubernetes.client, name)
        for method in dir(api):
            read = re.fullmatch(r"_(read_\w+)_serialize", method)
            cls = read and getattr(api, read[1]).__annotations__.get("return")
            for constant in getattr(api, method).__code__.co_consts if cls else ():
                if isinstance(constant, str) and (path := PATH.fullmatch(constant)):
                    assert cls
                    yield cls, Resource(path[1], path[3], namespaced=bool(path[2]))


def test_each_model_is_at_the_path_of_the_package_or_refused():
    located = 0
    for cls, resource in served():
        with suppress(TypeError):
            assert resource_of_class(cls) == resource
            located += 1
    assert located > 40


@pytest.mark.parametrize("cls", [str, kubernetes.client.V1PodSpec, CONFIG_MAPS.permission("get")])
def test_another_class_is_refused(cls):
    with pytest.raises(TypeError, match="is no class of a kind"):
        resource_of_class(cls)


def test_an_object_that_does_not_fit_is_named():
    obj = manifest("v1", "ConfigMap", "a", "b", data={"x": 1})
    with pytest.raises(DecodeError, match=r"V1ConfigMap b/a: data\.x: Input should be a valid"):
        read_as(V1ConfigMap, obj)


def test_an_object_of_a_tenant_counts_as_long_as_its_model_exists():
    class Held(dict):
        pass

    held = Held(manifest("v1", "ConfigMap", "a", "b"))
    alive = weakref.ref(held)
    model = read_as(V1ConfigMap, held)
    del held
    gc.collect()
    assert alive() is not None
    del model
    gc.collect()
    assert alive() is None


def test_a_recording_client_returns_models_and_records_the_same_requests():
    deployment = manifest("apps/v1", "Deployment", "a", "b", {"app": "x"})
    deployment["spec"] = {"selector": {}, "template": {}}
    infrastructure = manifest_of(Infrastructure, "c", "b", spec={"type": "x", "region": "y"})
    ctx = RecordingContext(deployment, infrastructure)
    metadata = ctx.client.get(V1Deployment, "a", "b").metadata
    assert metadata
    assert metadata.labels == {"app": "x"}
    listed = [obj.metadata for obj in ctx.client.list(V1Deployment, "b")]
    assert [found.name for found in listed if found] == ["a"]
    assert ctx.client.get(Infrastructure, "c", "b").spec.region == "y"
    assert ctx.steps[:2] == ["get deployments.apps b/a", "list deployments.apps b"]
