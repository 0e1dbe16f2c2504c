"""What a landscape offers follows from the kinds and types of its extensions."""

import pytest
from attrs import evolve

from actuator.errors import ConfigurationError
from generic.testing.landscape.offers import (
    NEEDED,
    OF_BACKUP,
    OF_PROVIDER,
    Offer,
    combined,
    common_type,
    image_of,
    merged,
    missing,
    types_of,
)
from generic.testing.landscape.simulated import simulated
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
def test_kinds_that_a_shoot_needs_and_nobody_serves_are_simulated(served, simulates):
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
    registration = [{"kind": "ControllerDeployment"}, {"spec": {"resources": resources}}]
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


def test_the_garden_offers_what_the_shoot_uses():
    mine = offer(profile={"machineTypes": [{"name": "big"}]}, domain="d.example", credentials={})
    _namespace, project, profile, *domains, _secret, _binding = mine.garden()
    assert profile["spec"]["machineTypes"] == [{"name": "big"}]
    assert profile["spec"]["machineImages"][0]["name"] == "my-operatingsystemconfig"
    assert len(domains) == 2
    assert all(one["data"] for one in domains), "gardener-apiserver refuses an empty Secret"
    assert project["spec"]["namespace"] == mine.shoot("x")["metadata"]["namespace"]
    assert mine.seed("s").dns == "my-dnsrecord"


@pytest.mark.parametrize("field", ["region", "domain"])
def test_extensions_of_two_places_are_refused(field):
    parts = [ShootPart(extension=f"m:{name}", **{field: name}) for name in ("a", "b")]
    with pytest.raises(ConfigurationError, match=f"m:b: its {field} is 'b', that of another"):
        combined(parts)


def test_a_union_of_mappings_is_deep_and_replaces_lists():
    base = {"a": {"b": 1, "c": [1]}, "d": 1}
    assert merged(base, {"a": {"c": [2]}, "e": {}}) == {"a": {"b": 1, "c": [2]}, "d": 1, "e": {}}
    assert base == {"a": {"b": 1, "c": [1]}, "d": 1}
