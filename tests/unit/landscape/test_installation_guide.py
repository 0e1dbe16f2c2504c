"""docs/install-in-a-landscape.md: its objects are those with which a landscape serves Shoots."""

import re
from pathlib import Path

import pytest
import yaml

from generic.testing.landscape.offers import OF_PROVIDER, Offer, combined
from generic.testing.shootpart import ShootPart

PAGE = (Path(__file__).parents[3] / "docs" / "install-in-a-landscape.md").read_text()
TYPES = {
    **{kind: ["mine"] for kind in (*OF_PROVIDER, "DNSRecord")},
    "Network": ["calico"],
    "OperatingSystemConfig": ["gardenlinux"],
}
PART = ShootPart(
    extension="mine:extension",
    region="europe-1",
    zones=["europe-1a"],
    credentials={"apiKey": "an-example"},
    profile={"providerConfig": {"kind": "CloudProfileConfig"}},
)
OFFER = Offer(TYPES, combined([PART]), "1.36.3")
DOCUMENTED = {
    document["kind"]: document
    for text in re.findall(r"^```yaml\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    for document in yaml.safe_load_all(text)
}
KINDS = ["CloudProfile", "CredentialsBinding", "Secret", "Shoot"]


def offered(kind):
    """The object of this kind that a user of a landscape needs."""
    [found] = [
        item
        for item in [*OFFER.garden(), OFFER.shoot("first")]
        if item["kind"] == kind and item["metadata"].get("namespace") != "garden"
    ]
    return found


def paths(value, at=""):
    """The paths of all fields that have a value."""
    if isinstance(value, dict):
        return {path for key, item in value.items() for path in paths(item, f"{at}.{key}")}
    if isinstance(value, list):
        return {path for item in value for path in paths(item, f"{at}[]")}
    return {at.replace(".stringData", ".data")}


@pytest.mark.parametrize("kind", KINDS)
def test_a_documented_object_has_the_fields_of_a_landscape(kind):
    assert DOCUMENTED[kind]["apiVersion"] == offered(kind)["apiVersion"]
    assert paths(offered(kind)) - paths(DOCUMENTED[kind]) == set()


def test_the_documented_objects_refer_to_each_other():
    assert sorted(DOCUMENTED) == KINDS
    profile, binding, secret, shoot = (DOCUMENTED[kind] for kind in KINDS)
    spec = shoot["spec"]
    [worker] = spec["provider"]["workers"]
    assert spec["cloudProfile"]["name"] == profile["metadata"]["name"]
    assert profile["spec"]["type"] == spec["provider"]["type"] == binding["provider"]["type"]
    assert binding["metadata"] == {
        "name": spec["credentialsBindingName"],
        "namespace": "garden-dev",
    }
    assert binding["credentialsRef"]["name"] == secret["metadata"]["name"]
    assert [item["name"] for item in profile["spec"]["machineTypes"]] == [worker["machine"]["type"]]
    for images in (profile["spec"], profile["spec"]["providerConfig"]):
        [image] = images["machineImages"]
        [version] = image["versions"]
        found = {"name": image["name"], "version": version["version"]}
        assert found == worker["machine"]["image"]
