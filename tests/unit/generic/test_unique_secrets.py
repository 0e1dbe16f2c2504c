"""Unique ConfigMaps and Secrets, and the annotations of those that use them, as Gardener's are.

Figures and cases: gardener, `pkg/utils/kubernetes/object_test.go` (`MakeUnique`) and
`pkg/resourcemanager/controller/garbagecollector/references` (`InjectAnnotations`).
"""

import copy

import pytest

from actuator.errors import ConfigurationError
from actuator.meta import Raw
from generic.library.manifests import manifest
from generic.library.references import make_unique, with_references

COLLECTABLE = {"resources.gardener.cloud/garbage-collectable-reference": "true"}
PREFIX = "reference.resources.gardener.cloud/"


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("ConfigMap", {"data": {"foo": "bar"}, "binaryData": {"bar": "Zm9v"}}),
        ("Secret", {"data": {"foo": "YmFy"}, "stringData": {"bar": "foo"}}),
    ],
)
@pytest.mark.parametrize("name", ["some-name", "some-name-"])
def test_a_name_has_the_figure_of_gardeners_own_test(kind, data, name):
    given = manifest("v1", kind, name, "n", {"foo": "bar"}, **data)
    before = copy.deepcopy(given)
    unique = make_unique(given)
    assert given == before
    meta = {**given["metadata"], "name": "some-name-ec321de5"}
    meta["labels"] = {"foo": "bar", **COLLECTABLE}
    assert unique == {**given, "metadata": meta, "immutable": True}


def test_another_content_is_another_name():
    names = {
        make_unique(manifest("v1", "Secret", "s", data=data))["metadata"]["name"]
        for data in (None, {}, {"a": "YQ=="}, {"a": "Yg=="}, {"a": "YQ==", "b": "YQ=="})
    }
    assert len(names) == 4, "without data is the same as with none"


def test_a_pod_cannot_be_unique():
    with pytest.raises(ConfigurationError, match="Pod p: only a ConfigMap or Secret can be"):
        make_unique(manifest("v1", "Pod", "p"))


POD = {
    "initContainers": [{"name": "i", "envFrom": [{"secretRef": {"name": "s0"}}]}],
    "containers": [
        {
            "name": "c",
            "envFrom": [{"secretRef": {"name": "s1"}}, {"configMapRef": {"name": "c1"}}],
            "env": [
                {"name": "A", "value": "plain"},
                {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s2", "key": "k"}}},
                {"name": "C", "valueFrom": {"configMapKeyRef": {"name": "c2", "key": "k"}}},
                {"name": "D", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            ],
        },
        {"name": "none"},
    ],
    "volumes": [
        {"name": "a", "secret": {"secretName": "s3"}},
        {"name": "b", "configMap": {"name": "c3"}},
        {"name": "e", "emptyDir": {}},
        {
            "name": "p",
            "projected": {
                "sources": [
                    {"secret": {"name": "s4"}},
                    {"configMap": {"name": "c4"}},
                    {"serviceAccountToken": {"path": "t"}},
                ]
            },
        },
    ],
    "imagePullSecrets": [{"name": "name"}],
}
SECRETS = ["s0", "s1", "s2", "s3", "s4", "name"]
CONFIG_MAPS = ["c1", "c2", "c3", "c4"]
TEMPLATE = {"metadata": {"annotations": {"kept": "1", f"{PREFIX}secret-old": "old"}}, "spec": POD}
WORKLOADS: dict[str, tuple[Raw, list[tuple[str, ...]]]] = {
    "Pod": (POD, [()]),
    "Deployment": ({"template": TEMPLATE}, [(), ("spec", "template")]),
    "Job": ({"template": {"spec": POD}}, [(), ("spec", "template")]),
    "CronJob": (
        {"jobTemplate": {"spec": {"template": TEMPLATE}}},
        [(), ("spec", "jobTemplate"), ("spec", "jobTemplate", "spec", "template")],
    ),
}


@pytest.mark.parametrize("kind", WORKLOADS)
def test_a_workload_and_its_templates_name_all_that_their_pods_use(kind):
    spec, paths = WORKLOADS[kind]
    given = manifest("v1", kind, "w", spec=spec)
    before = copy.deepcopy(given)
    annotated = with_references(given)
    assert given == before
    for path in paths:
        part = annotated
        for step in path:
            part = part[step]
        found = part["metadata"]["annotations"]
        references = {key: value for key, value in found.items() if key.startswith(PREFIX)}
        assert sorted(references.values()) == sorted(SECRETS + CONFIG_MAPS)
        assert references[f"{PREFIX}secret-82a3537f"] == "name", "the figure of Gardener's own test"
        assert {key.removeprefix(PREFIX).split("-")[0] for key in references} == {
            "secret",
            "configmap",
        }
        kept = {key: value for key, value in found.items() if key not in references}
        assert kept == ({"kept": "1"} if TEMPLATE["metadata"] == before_meta(before, path) else {})
    assert with_references(annotated) == annotated


def before_meta(given, path):
    for step in path:
        given = given[step]
    return given.get("metadata")


def test_a_managed_resource_names_its_secrets_and_an_empty_workload_nothing():
    refs = {"secretRefs": [{"name": "name"}]}
    managed = with_references(manifest("v1", "ManagedResource", "m", spec=refs))
    assert managed["metadata"]["annotations"] == {f"{PREFIX}secret-82a3537f": "name"}
    assert with_references(manifest("v1", "Pod", "p"))["metadata"] == {
        "name": "p",
        "annotations": {},
    }
