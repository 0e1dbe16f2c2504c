"""The CRDs of the garden's types: documented fields are checked, and labels are set."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from actuator import FieldProblem
from actuator.errors import ApiError
from actuator.interface import resource_of
from actuator.meta import Object, Raw
from actuator.v1alpha1 import Extension
from extensions.networkfilter.config import FilterConfig
from generic.library.manifests import manifest_of
from generic.library.webhooks import (
    CloudProfile,
    ConfigAdmission,
    CredentialsBinding,
    GardenBackupBucket,
    GardenSeed,
    NamespacedCloudProfile,
    SecretBinding,
    Shoot,
)
from generic.library.webhooks.rules import ConfigReview, Rule
from generic.manager.manager import Manager
from generic.testing import GardenUnderTest
from tests.support.cluster.harness import eventually

pytest_plugins = ["generic.testing.gardenapi.fixture"]

ACME: Raw = {"provider": {"type": "acme"}}
POOLS = [
    {"machine": {"image": {"name": "linux"}}, "cri": {"containerRuntimes": [{"type": "gvisor"}]}},
    {"machine": {}},
]
SHOOT: Raw = {
    "region": "here",
    "provider": {"type": "acme", "workers": POOLS},
    "networking": {"type": "calico"},
    "extensions": [{"type": "on"}, {"type": "off", "disabled": True}],
    "dns": {"providers": [{"type": "route"}, {"type": "unmanaged"}]},
}


def created(garden: GardenUnderTest, cls: type[Object], name: str, **fields: Any) -> Raw:
    namespace = "default" if cls.KIND.namespaced else ""
    labels = {"provider.extensions.gardener.cloud/former": "true", "mine": "kept"}
    return garden.client.create(
        resource_of(cls.KIND), manifest_of(cls, name, namespace, labels, **fields)
    )


@pytest.mark.parametrize(
    ("cls", "fields", "wanted"),
    [
        (
            Shoot,
            {"spec": SHOOT},
            (
                "provider/acme networking/calico extensions/on operatingsystemconfig/linux "
                "containerruntime/gvisor dnsrecord/route"
            ),
        ),
        (CloudProfile, {"spec": {"type": "acme"}}, "provider/acme"),
        (
            GardenSeed,
            {"spec": {**ACME, "backup": {"provider": "s3"}, "extensions": [{"type": "on"}]}},
            "provider/acme provider/s3 extensions/on",
        ),
        (GardenBackupBucket, {"spec": ACME}, "provider/acme"),
        (
            SecretBinding,
            {"secretRef": {}, "provider": {"type": "acme,other"}},
            "provider/acme provider/other",
        ),
        (CredentialsBinding, {"credentialsRef": {}, **ACME}, "provider/acme"),
    ],
)
def test_an_object_has_the_labels_of_its_extensions_and_no_other(
    garden: GardenUnderTest, cls: type[Object], fields: Raw, wanted: str
) -> None:
    names = [name.replace("/", ".extensions.gardener.cloud/") for name in wanted.split()]
    found = created(garden, cls, "labelled", **fields)
    assert found["metadata"]["labels"] == {"mine": "kept", **dict.fromkeys(names, "true")}


def test_labels_follow_a_change_of_the_object(garden: GardenUnderTest) -> None:
    created(garden, Shoot, "changed", spec=SHOOT)
    patch = {"spec": {"networking": {"type": "cilium"}, "extensions": []}}
    found = garden.client.patch(resource_of(Shoot.KIND), "changed", "default", patch)
    labels = found["metadata"]["labels"]
    assert "networking.extensions.gardener.cloud/cilium" in labels
    assert not [name for name in labels if "calico" in name or name.startswith("extensions.")]


def test_a_namespaced_cloud_profile_has_the_label_of_its_parent(garden: GardenUnderTest) -> None:
    for name in ("one", "two"):
        created(garden, CloudProfile, name, spec={"type": name})
    with pytest.raises(ApiError, match=r"spec\.parent\.name: there is no such CloudProfile"):
        garden.client.create(
            resource_of(NamespacedCloudProfile.KIND),
            manifest_of(
                NamespacedCloudProfile, "none", "default", spec={"parent": {"name": "none"}}
            ),
        )
    spec = {"parent": {"kind": "CloudProfile", "name": "two"}}
    eventually(lambda: not garden.refusal(NamespacedCloudProfile, spec=spec))  # has no label itself
    made = created(garden, NamespacedCloudProfile, "own", spec=spec)
    label = "provider.extensions.gardener.cloud/two"
    assert made["metadata"]["labels"] == {"mine": "kept", label: "true"}


def test_a_documented_field_has_a_type_and_others_are_kept(garden: GardenUnderTest) -> None:
    for spec, field in (
        ({**SHOOT, "provider": {"type": 7}}, "spec.provider.type"),
        ({"provider": {"type": "acme"}}, "spec.region"),
        ({**SHOOT, "extensions": {}}, "spec.extensions"),
    ):
        with pytest.raises(ApiError, match=field):
            created(garden, Shoot, "refused", spec=spec)
    config = {"kept": [1, None, {"deep": True}]}
    provider = {"type": "acme", "infrastructureConfig": config, "controlPlaneConfig": None}
    spec = {**SHOOT, "provider": provider, "later": {"field": 1}}
    assert created(garden, Shoot, "kept", spec=spec)["spec"] == spec


def is_not_special(review: ConfigReview[FilterConfig, Shoot]) -> Iterator[FieldProblem]:
    if review.new.metadata.name == "special":
        yield review.problem("blocked", "not for a special Shoot")


@pytest.mark.parametrize("rules", [[is_not_special], []])
def test_the_fixture_serves_an_admission_until_the_end_of_the_test(
    garden: GardenUnderTest, rules: list[Rule]
) -> None:
    """The second test has no webhook, and would be refused by that of the first."""

    def admission(manager: Manager) -> None:
        manager.add_admission(
            ConfigAdmission(kind=Extension, type="networkfilter", config=FilterConfig, rules=rules)
        )

    def spec(*blocked: str) -> Raw:
        config = {"blocked": [*blocked]}
        enabled = [{"type": "networkfilter", "providerConfig": config}]
        return {"region": "here", "provider": {"type": "x"}, "extensions": enabled}

    garden.serve(admission)
    wrong = "spec.extensions[0].providerConfig.blocked[1]: expected"
    eventually(lambda: wrong in garden.refusal(Shoot, spec=spec("10.0.0.0/8", "x")))
    if rules:
        refused = "blocked: not for a special Shoot"
        eventually(lambda: refused in garden.refusal(Shoot, "special", spec=spec("10.0.0.0/8")))
    made = garden.create(Shoot, "plain" if rules else "special", spec=spec("10.0.0.0/8"))
    assert "extensions.extensions.gardener.cloud/networkfilter" in made.metadata.labels
