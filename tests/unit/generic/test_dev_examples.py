"""The admission in `actuator dev`, without a cluster: its examples, and merged profiles."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import structs

from actuator.errors import ConfigurationError
from actuator.meta import Raw
from extensions.aws.admission import ADMISSIONS
from extensions.certificate.admission import ISSUERS
from extensions.local.config import ShareConfig
from generic.library.webhooks import (
    ConfigAdmission,
    GardenBackupBucket,
    GardenSeed,
    NamespacedCloudProfile,
    SecretBinding,
)
from generic.library.webhooks.places import configurations
from generic.manager.manager import Manager
from generic.manager.options import Options
from generic.testing.gardenapi.controllers import merged_profile, secret_labels
from generic.tools.cli.dev_admission import (
    admission_beside,
    admission_manager,
    banner,
    example_objects,
)
from generic.tools.cli.development import DevelopmentTarget

OTHERS = [
    ConfigAdmission(kind=kind, config=ShareConfig, type="acme")
    for kind in (NamespacedCloudProfile, GardenSeed, GardenBackupBucket)
]
RULES = ConfigAdmission(kind=SecretBinding, type="acme", rules=[lambda _: ()])


def test_an_example_has_all_configurations_of_a_type_and_no_problem() -> None:
    found = example_objects([*ADMISSIONS, ISSUERS, *OTHERS, RULES])
    assert [f"{item['kind']} {item['metadata']['name']}" for item in found] == [
        "Shoot example-aws",
        "CloudProfile example-aws",
        "Shoot example-certificate-service",
        "NamespacedCloudProfile example-acme",
        "Seed example-acme",
        "BackupBucket example-acme",
    ]
    specs = {item["kind"] + item["metadata"]["name"]: item["spec"] for item in found}
    for admission in (*ADMISSIONS, ISSUERS, *OTHERS):
        spec = specs[f"{admission.place.of.KIND.name}example-{admission.type}"]
        assert [*configurations(admission.place, {"spec": spec})], admission.name
        assert [*admission.problems(spec, {})] == []


@pytest.mark.parametrize(
    ("extension", "found"),
    [
        ("extensions.aws:extension", "extensions.aws.admission:admission"),
        ("extensions.azure:extension", ""),
        ("extensions.aws.worker:AwsWorker", ""),
        ("missing.module:extension", ""),
    ],
)
def test_an_admission_is_found_beside_the_extension(extension: str, found: str) -> None:
    assert admission_beside(extension) == found


def test_an_extension_is_no_admission_and_none_disables_it() -> None:
    target = DevelopmentTarget(extension="extensions.aws:extension")
    found = admission_manager(target, Options())
    assert found is not None
    assert len(found.admissions) == len(ADMISSIONS)
    assert admission_manager(structs.replace(target, admission="none"), Options()) is None
    wrong = structs.replace(target, admission="extensions.local:extension")
    with pytest.raises(ConfigurationError, match="the function added an actuator; name"):
        admission_manager(wrong, Options())


def test_an_admission_is_not_served_on_an_existing_cluster() -> None:
    target = DevelopmentTarget(
        extension="extensions.aws:extension", kubeconfig=Path("x/kubeconfig")
    )
    shown = banner(target, Manager(), None)
    assert shown == "\nThe admission is not served on an existing cluster.\n"
    assert "cp x/garden.yaml ." in banner(target, Manager(), Options())
    assert banner(structs.replace(target, admission="none"), Manager(), Options()) == ""


def test_a_project_adds_to_a_profile_all_but_the_configuration() -> None:
    parent: Raw = {
        "type": "acme",
        "providerConfig": {"a": 1},
        "machineImages": [{"name": "linux", "versions": [{"version": "1"}]}],
    }
    own: Raw = {
        "parent": {"name": "acme"},
        "providerConfig": {"b": 1},
        "machineImages": [{"name": "linux", "versions": [{"version": "2"}]}, {"name": "own"}],
    }
    images = [{"name": "linux", "versions": [{"version": "1"}, {"version": "2"}]}, {"name": "own"}]
    assert merged_profile(parent, own) == {**parent, "machineImages": images}


def test_a_secret_has_a_label_for_each_provider_of_its_binding() -> None:
    label = "provider.shoot.gardener.cloud"
    wanted = {f"{label}/a": "true", f"{label}/b": "true"}
    assert dict(secret_labels({"provider": {"type": "a,b"}})) == wanted
    assert dict(secret_labels({})) == {}
