"""The objects of a garden, and of the cluster that serves it, as data."""

from __future__ import annotations

import base64
import hashlib
import ipaddress
from pathlib import Path
from typing import Any

import pytest

from generic.testing.landscape import admission, gardenobjects
from generic.testing.landscape.clusters import GARDEN, SEED, egress_selection


def of_kind(objects, kind):
    return [object_ for object_ in objects if object_["kind"] == kind]


def decoded(secret):
    return {key: base64.b64decode(value).decode() for key, value in secret["data"].items()}


def test_the_router_knows_the_address_of_gardener_apiserver():
    objects = gardenobjects.api_registration(b"ca")
    (service,) = of_kind(objects, "Service")
    address = service["spec"]["clusterIP"]
    assert address == gardenobjects.APISERVER_ADDRESS
    assert ipaddress.ip_address(address) in ipaddress.ip_network(GARDEN.service_range)
    for registered in of_kind(objects, "APIService"):
        name = {key: service["metadata"][key] for key in ("name", "namespace")}
        assert registered["spec"]["service"] == name
        assert base64.b64decode(registered["spec"]["caBundle"]) == b"ca"


def test_the_router_knows_the_address_of_the_admission_controller():
    (service,) = of_kind(admission.admission_registration(b"ca"), "Service")
    address = service["spec"]["clusterIP"]
    assert address == admission.ADMISSION_ADDRESS != gardenobjects.APISERVER_ADDRESS
    assert ipaddress.ip_address(address) in ipaddress.ip_network(GARDEN.service_range)
    name = "{name}.{namespace}.svc".format(**service["metadata"])
    assert name == admission.ADMISSION_HOST


def test_the_credential_of_the_router_is_in_a_private_file(tmp_path):
    flags = admission.authorization_flags(tmp_path, "http://garden:secret@127.0.0.1:1", b"ca")
    (file,) = tmp_path.iterdir()
    assert f"--authorization-webhook-config-file={file}" in flags
    assert "secret" in file.read_text()
    assert "secret" not in "".join(flags)
    assert file.stat().st_mode & 0o077 == 0


def test_shoots_are_in_the_preferred_version_of_their_group():
    registered = of_kind(gardenobjects.api_registration(b"ca"), "APIService")
    core = [obj["spec"] for obj in registered if obj["spec"]["group"] == "core.gardener.cloud"]
    preferred = max(core, key=lambda spec: spec["versionPriority"])
    assert f"{preferred['group']}/{preferred['version']}" == gardenobjects.CORE
    names = [obj["metadata"]["name"] for obj in registered]
    assert len(names) == len(set(names)) == 5


def test_the_password_of_monitoring_is_new_each_time_and_fits_its_digest():
    first, second = (
        decoded(of_kind(gardenobjects.bootstrap("v1.2.3"), "Secret")[0]) for _ in range(2)
    )
    assert first["password"] != second["password"]
    digest = base64.b64encode(hashlib.sha1(first["password"].encode()).digest()).decode()
    assert first["auth"] == f"admin:{{SHA}}{digest}"


def test_the_version_is_published():
    (info,) = of_kind(gardenobjects.bootstrap("v1.2.3"), "ConfigMap")
    assert info["data"]["gardenerAPIServer"].startswith("version: v1.2.3\n")


@pytest.mark.parametrize(
    ("given", "namespace"), [((), "garden-dev"), (("elsewhere",), "elsewhere")]
)
def test_a_project_names_its_namespace(given, namespace):
    assert gardenobjects.project("dev", *given)["spec"]["namespace"] == namespace


def test_a_provider_adds_its_part_to_a_cloud_profile():
    profile = gardenobjects.cloud_profile("local", ["1.2.3"], {"regions": [{"name": "here"}]})
    assert profile["metadata"]["name"] == profile["spec"]["type"] == "local"
    assert profile["spec"]["kubernetes"] == {"versions": [{"version": "1.2.3"}]}
    assert profile["spec"]["regions"] == [{"name": "here"}]


def test_a_binding_refers_to_the_secret_beside_it():
    secret, binding = gardenobjects.credentials("garden-dev", "local", {"token": "x"})
    assert decoded(secret) == {"token": "x"}
    assert secret["metadata"]["labels"] == {"provider.shoot.gardener.cloud/local": "true"}
    reference = binding["credentialsRef"]
    assert {reference[key] for key in ("name", "namespace")} == {"account", "garden-dev"}


def test_both_domains_are_below_one_parent():
    found = gardenobjects.domains("aws-route53", "example.com", {"key": "x"})
    assert [
        (obj["metadata"]["labels"], obj["metadata"]["annotations"]["dns.gardener.cloud/domain"])
        for obj in found
    ] == [
        ({"gardener.cloud/role": "internal-domain"}, "internal.example.com"),
        ({"gardener.cloud/role": "default-domain"}, "default.example.com"),
    ]


def test_connections_into_the_cluster_go_through_the_router():
    selections: Any = egress_selection(Path("/run/router"))["egressSelections"]
    (selection,) = selections
    assert selection["name"] == "cluster"
    assert selection["connection"]["transport"] == {"uds": {"udsName": "/run/router"}}


def test_garden_and_seed_have_ranges_of_their_own():
    ranges = [ipaddress.ip_network(plan.service_range) for plan in (GARDEN, SEED)]
    assert not ranges[0].overlaps(ranges[1])
