"""The offers of a landscape follow from the kinds and types of its extensions."""

from typing import Any

import pytest
from attrs import evolve

from actuator.errors import ConfigurationError
from actuator.meta import Raw
from generic.library.manifests import merged
from generic.testing.landscape.offers import (
    NEEDED,
    OF_BACKUP,
    OF_PROVIDER,
    Offer,
    combined,
    common_type,
    image_of,
    missing,
    types_of,
)
from generic.testing.landscape.simulated import simulated
from generic.testing.rehearsal import CombinedRehearsal, Rehearsal
from generic.testing.shootpart import ShootPart

ALL = {kind: [f"my-{kind.lower()}"] for kind in NEEDED} | {kind: ["mine"] for kind in OF_PROVIDER}


def offer(**more):
    part = combined([ShootPart(extension="m:e", **more)])
    return Offer(ALL | {"Extension": ["acl"], "ContainerRuntime": ["vm"]}, part, "1.36.3")


@pytest.mark.parametrize(
    ("served", "simulates"),
    [
        (ALL, {}),
        ({}, dict.fromkeys(NEEDED, "simulated")),
        ({"Extension": ["x"]}, dict.fromkeys(NEEDED, "simulated")),
        (
            {"Infrastructure": ["mine"]},
            dict.fromkeys(NEEDED, "simulated")
            | {"ControlPlane": "mine", "Worker": "mine"}
            | {"Infrastructure": None},
        ),
        ({**ALL, "Worker": ["other"]}, {"Worker": "mine"}),
        ({**ALL, "Worker": ["other", "mine"]}, {}),
        ({kind: ALL[kind] for kind in ALL if kind != "Network"}, {"Network": "simulated"}),
    ],
)
def test_kinds_that_a_shoot_needs_and_no_extension_serves_are_simulated(served, simulates):
    assert missing(served) == {kind: type for kind, type in simulates.items() if type}


@pytest.mark.parametrize(
    ("served", "simulates", "backup"),
    [
        ({}, dict.fromkeys(OF_BACKUP, "simulated"), ""),
        ({"BackupBucket": ["s3"]}, {"BackupEntry": "s3"}, ""),
        ({"BackupEntry": ["s3"]}, {"BackupBucket": "s3"}, ""),
        ({"BackupBucket": ["a"], "BackupEntry": ["b"]}, {"BackupEntry": "a"}, ""),
        ({"BackupBucket": ["s3"], "BackupEntry": ["x", "s3"]}, {}, "s3"),
    ],
)
def test_seeds_have_backups_if_both_kinds_are_served(served, simulates, backup):
    assert missing(ALL | served, backup=True) == simulates
    assert missing(ALL | served) == {}
    mine = Offer(ALL | served, offer().part, "1.36.3")
    assert mine.seed("s").backup == backup
    assert evolve(mine, has_backups=False).seed("s").backup == ""


def test_each_needed_kind_can_be_simulated():
    for kind in (*NEEDED, *OF_BACKUP):
        assert simulated(kind)


def test_types_come_from_the_registrations():
    resources = [{"kind": "Worker", "type": "a"}, {"kind": "Network", "type": "n"}]
    registration: list[Raw] = [{"kind": "ControllerDeployment"}, {"spec": {"resources": resources}}]
    more = [{"spec": {"resources": [{"kind": "Worker", "type": "b"}]}}]
    assert types_of([registration, more]) == {"Worker": ["a", "b"], "Network": ["n"]}


def test_the_provider_is_that_of_the_first_kind_that_has_one():
    assert common_type({"Worker": ["w"], "ControlPlane": ["c"]}, OF_PROVIDER) == "c"
    assert common_type({"Network": ["n"]}, OF_PROVIDER) == "simulated"
    assert image_of({}) == "simulated"


def test_a_shoot_names_the_types_and_has_the_fields_of_the_extension():
    shoot = offer(
        region="eu-1",
        zones=["eu-1a"],
        shoot={"provider": {"infrastructureConfig": {"kind": "X"}}, "networking": {"nodes": "n"}},
        worker={"machine": {"type": "big"}, "volume": {"size": "1Gi"}},
    ).shoot("mine")
    spec = shoot["spec"]
    assert (shoot["metadata"]["name"], spec["region"]) == ("mine", "eu-1")
    assert spec["networking"] == {"type": "my-network", "nodes": "n"}
    assert spec["extensions"] == [{"type": "acl"}]
    assert spec["provider"]["type"] == "mine"
    assert spec["provider"]["infrastructureConfig"] == {"kind": "X"}
    (worker,) = spec["provider"]["workers"]
    assert worker["machine"]["type"] == "big"
    assert worker["machine"]["image"]["name"] == "my-operatingsystemconfig"
    assert worker["cri"]["containerRuntimes"] == [{"type": "vm"}]
    assert (worker["zones"], worker["volume"]) == (["eu-1a"], {"size": "1Gi"})


def test_the_garden_offers_the_resources_that_the_shoot_uses():
    mine = offer(profile={"machineTypes": [{"name": "big"}]}, domain="d.example", credentials={})
    _namespace, project, profile, *domains, _secret, _binding = mine.garden()
    assert profile["spec"]["machineTypes"] == [{"name": "big"}]
    assert profile["spec"]["machineImages"][0]["name"] == "my-operatingsystemconfig"
    assert len(domains) == 2
    assert all(domain["data"] for domain in domains), "gardener-apiserver refuses an empty Secret"
    assert project["spec"]["namespace"] == mine.shoot("x")["metadata"]["namespace"]
    assert mine.seed("s").dns == "my-dnsrecord"


@pytest.mark.parametrize("field", ["region", "domain"])
def test_extensions_of_two_places_are_refused(field):
    given: list[Any] = [{"extension": f"m:{name}", field: name} for name in ("a", "b")]
    parts = [ShootPart(**item) for item in given]
    with pytest.raises(ConfigurationError, match=f"m:b: its {field} is 'b', that of another"):
        combined(parts)


def test_a_union_of_mappings_is_deep_and_replaces_lists():
    base = {"a": {"b": 1, "c": [1]}, "d": 1}
    assert merged(base, {"a": {"c": [2]}, "e": {}}) == {"a": {"b": 1, "c": [2]}, "d": 1, "e": {}}
    assert base == {"a": {"b": 1, "c": [1]}, "d": 1}


class Acme(Rehearsal):
    """Offers with the Cluster of its drills; a part replaces a field of it."""

    title = "Acme"
    scenarios = {}
    secret_data = {"apiKey": "a-key"}
    own: Any = {}

    def start(self, directory): ...
    def inject_failure(self, scenario): ...
    def actuators(self):
        return []

    def remaining_resources(self):
        return []

    def cluster(self, shoot):
        profile = {
            "type": shoot.type,
            "kubernetes": {"versions": [{"version": "1.0.0"}]},
            "regions": [{"name": "drill"}],
            "machineImages": [],
            "machineTypes": [{"name": "big"}],
            "providerConfig": {"kind": "AcmeProfile"},
        }
        provider = {"type": shoot.type, "workers": [], "infrastructureConfig": {"kind": "Acme"}}
        spec = {"region": "drill", "kubernetes": {"version": "1.0.0"}, "provider": provider}
        return {"cloudProfile": {"spec": profile}, "shoot": {"spec": spec}, "seed": {}}

    def shoot_part(self, image):
        return ShootPart(extension="m:e", **self.own)


def offered(**own):
    parts = CombinedRehearsal([type("Own", (Acme,), {"own": own})()]).shoot_parts("image")
    mine = Offer(ALL, combined(parts), "1.36.3")
    [profile] = [item["spec"] for item in mine.garden() if item["kind"] == "CloudProfile"]
    return mine, profile, mine.shoot("mine")["spec"]


def test_a_landscape_offers_the_fields_that_a_rehearsal_has_in_the_cluster_of_drills():
    mine, profile, shoot = offered()
    assert profile["providerConfig"] == {"kind": "AcmeProfile"}
    assert profile["machineTypes"] == [{"name": "big"}]
    assert shoot["provider"]["infrastructureConfig"] == {"kind": "Acme"}
    assert mine.keys == {"apiKey": "a-key"}


def test_fields_that_follow_from_the_landscape_are_not_those_of_a_drill():
    _, profile, shoot = offered()
    assert profile["type"] == shoot["provider"]["type"] == "mine"
    assert [item["version"] for item in profile["kubernetes"]["versions"]] == ["1.36.3"]
    assert profile["regions"][0]["name"] == shoot["region"] != "drill"
    assert profile["machineImages"]
    assert shoot["provider"]["workers"]
    assert shoot["kubernetes"] == {"version": "1.36.3"}


def test_fields_and_credentials_of_the_part_replace_those_of_the_cluster():
    own: Any = {"profile": {"machineTypes": [{"name": "small"}]}, "credentials": {"apiKey": "real"}}
    mine, profile, _ = offered(**own)
    assert profile["machineTypes"] == [{"name": "small"}]
    assert profile["providerConfig"] == {"kind": "AcmeProfile"}
    assert mine.keys == {"apiKey": "real"}
