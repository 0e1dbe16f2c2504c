"""Documents of shoot.yaml and fields of a rehearsal, merged into the Cluster of a shoot."""

import pytest

from actuator.errors import ConfigurationError
from generic.testing.garden import SeedShoot
from generic.tools.cli.shoot_documents import of_cluster

SHOOT = SeedShoot(technical_id="shoot--dev--a", name="a", project="dev", region="here")
PROFILE = {"apiVersion": "core.gardener.cloud/v1beta1", "kind": "CloudProfile"}


def written(*documents):
    fields, others = of_cluster(documents, "shoot.yaml")
    assert others == []
    shoot = SeedShoot(
        technical_id="shoot--dev--a", name="a", project="dev", region="here", documents=fields
    )
    return shoot.cluster("Restore")["spec"]


@pytest.mark.parametrize(
    ("document", "path", "value"),
    [
        (PROFILE | {"spec": {"type": "acme"}}, ("cloudProfile", "spec", "type"), "acme"),
        (PROFILE | {"metadata": {"name": "acme"}}, ("cloudProfile", "metadata", "name"), "acme"),
        ({"kind": "Seed", "spec": {"a": 1}}, ("seed", "spec", "a"), 1),
        ({"kind": "Shoot", "spec": {"region": "x"}}, ("shoot", "spec", "region"), "x"),
        ({"kind": "Shoot", "spec": {"dns": {}}}, ("shoot", "spec", "region"), "here"),
        ({"kind": "Shoot", "metadata": {"name": "x"}}, ("shoot", "metadata", "name"), "a"),
        (
            {"kind": "Shoot", "metadata": {"annotations": {"a": "b"}}},
            ("shoot", "metadata", "annotations"),
            {"a": "b"},
        ),
        (
            {"kind": "Shoot", "status": {"technicalID": "x", "lastOperation": {}}},
            ("shoot", "status", "lastOperation", "type"),
            "Restore",
        ),
        (
            {"kind": "Cluster", "spec": {"shoot": {"status": {"uid": "1"}}}},
            ("shoot", "status"),
            {
                "uid": "1",
                "technicalID": "shoot--dev--a",
                "lastOperation": {"type": "Restore", "state": "Processing"},
            },
        ),
    ],
)
def test_a_document_is_merged_and_the_shoot_keeps_its_name_and_state(document, path, value):
    found = written(document)
    for key in path:
        found = found[key]
    assert found == value


def test_several_documents_are_merged_and_other_manifests_are_kept():
    secret = {"kind": "Secret"}
    profile = PROFILE | {"spec": {"type": "acme"}}
    cluster = {"kind": "Cluster", "spec": {"cloudProfile": {"spec": {"regions": []}}}}
    fields, others = of_cluster([profile, secret, "text", cluster], "shoot.yaml")
    assert others == [secret, "text"]
    assert fields["cloudProfile"]["spec"] == {"type": "acme", "regions": []}


@pytest.mark.parametrize("spec", [None, [], "text", {"shoot": None}, {"cloudProfile": "acme"}])
def test_a_cluster_without_objects_is_refused(spec):
    with pytest.raises(ConfigurationError, match=r"shoot\.yaml: Cluster: set spec, with objects"):
        of_cluster([{"kind": "Cluster", "spec": spec}], "shoot.yaml")


def test_without_documents_nothing_is_merged():
    assert of_cluster([], "") == ({}, [])
    assert SHOOT.cluster()["spec"]["shoot"]["spec"]["region"] == "here"


LARGE = {"name": "large", "cpu": "4"}
SMALL = {"name": "small", "cpu": "2"}
OF_PROJECT = {
    "apiVersion": "core.gardener.cloud/v1beta1",
    "kind": "NamespacedCloudProfile",
    "metadata": {"name": "ours", "namespace": "garden-dev"},
}


def image(*versions):
    return {
        "name": "linux",
        "versions": [{"version": v, "regions": [{"name": v}]} for v in versions],
    }


@pytest.mark.parametrize(
    ("parent", "own", "wanted"),
    [
        ({"machineTypes": [SMALL]}, {}, {"machineTypes": [SMALL]}),
        ({"machineTypes": [SMALL]}, {"machineTypes": [LARGE]}, {"machineTypes": [SMALL, LARGE]}),
        ({}, {"machineTypes": [LARGE]}, {"machineTypes": [LARGE]}),
        (
            {"machineTypes": [SMALL, LARGE]},
            {"machineTypes": [SMALL | {"cpu": "3"}]},
            {"machineTypes": [SMALL | {"cpu": "3"}, LARGE]},
        ),
        (
            {"kubernetes": {"versions": [{"version": "1.36.3"}]}},
            {"kubernetes": {"versions": [{"version": "1.36.3", "expirationDate": "x"}]}},
            {"kubernetes": {"versions": [{"version": "1.36.3", "expirationDate": "x"}]}},
        ),
        (
            {"providerConfig": {"machineImages": [image("1")]}},
            {"providerConfig": {"machineImages": [image("2", "1")]}},
            {"providerConfig": {"machineImages": [image("1", "2")]}},
        ),
        (
            {"limits": {"maxNodesTotal": 9}},
            {"parent": {"name": "acme"}},
            {"limits": {"maxNodesTotal": 9}},
        ),
        ({"a": ["x"]}, {"a": ["x", 1, None]}, {"a": ["x", 1, None]}),
    ],
)
@pytest.mark.parametrize("parent_first", [True, False])
def test_a_profile_of_a_project_adds_to_its_parent(parent, own, wanted, parent_first):
    documents = [PROFILE | {"spec": {"type": "acme"} | parent}, OF_PROJECT | {"spec": own}]
    found = written(*(documents if parent_first else documents[::-1]))["cloudProfile"]
    assert found["spec"] == {"type": "acme"} | wanted
    assert (found["kind"], found["metadata"]["name"]) == ("CloudProfile", "ours")


def test_gardenlet_copies_the_status_of_a_profile_of_a_project():
    document = OF_PROJECT | {"spec": {"a": 1}, "status": {"cloudProfileSpec": {"type": "merged"}}}
    found = written(PROFILE | {"spec": {"type": "acme", "b": 2}}, document)["cloudProfile"]
    assert found["spec"] == {"type": "merged"}


@pytest.mark.parametrize(
    ("part", "named"),
    [
        ({"spec": "text"}, "spec"),
        ({"metadata": ["name"]}, "metadata"),
        ({"status": {"cloudProfileSpec": [1]}}, r"status\.cloudProfileSpec"),
    ],
)
def test_a_profile_of_a_project_without_objects_is_refused(part, named):
    with pytest.raises(
        ConfigurationError, match=rf"shoot\.yaml: NamespacedCloudProfile: set .*{named}"
    ):
        of_cluster([OF_PROJECT | part], "shoot.yaml")
