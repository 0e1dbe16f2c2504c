"""`actuator dev` serves the garden's types, with the admission of the extension."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from actuator.errors import ApiError
from actuator.interface import SECRETS, resource_of
from actuator.meta import Raw
from generic.kube.client import HttpClient, connect, path_of
from generic.library.manifests import manifest_of
from generic.library.webhooks import (
    CloudProfile,
    NamespacedCloudProfile,
    Secret,
    SecretBinding,
    Shoot,
)
from generic.testing.garden import resource_of_manifest
from tests.support.cluster.harness import eventually
from tests.support.programs.dev import Development

SERVES = "the manager serves Infrastructure acme"
EXTENSION = """
from actuator import Actuator
from actuator.v1alpha1 import Infrastructure


class Network(Actuator[Infrastructure]):
    def reconcile(self, ctx, obj, cluster): ...

    def delete(self, ctx, obj, cluster): ...


def extension(manager):
    manager.add(Network(), type="acme")
"""
ADMISSION = """
from typing import Annotated

import attrs

from actuator import FieldProblem, ProviderConfig, Schema
from actuator.v1alpha1 import Infrastructure
from generic.library.webhooks import CloudProfile, ConfigAdmission, Secret, cloud_profile_status


@attrs.frozen(kw_only=True)
class Zones(ProviderConfig):
    api_version: str = "acme.example.org/v1"
    kind: str = "Zones"
    sizes: Annotated[list[Annotated[int, Schema(maximum=9, example=3)]], Schema(min_length=1)]


@attrs.frozen(kw_only=True)
class Image:
    name: Annotated[str, Schema(pattern="[a-z]+", example="linux")]


@attrs.frozen(kw_only=True)
class Images(ProviderConfig):
    api_version: str = "acme.example.org/v1"
    kind: str = "Images"
    machine_images: list[Image] = attrs.field(factory=list)


def total(review):
    offered = review.cloud_profile().spec["regions"] if review.new.spec.get("cloudProfile") else []
    if sum(review.config.sizes) > 12:
        yield review.problem("sizes", f"{sum(review.config.sizes)} are more than 12")
    if offered and review.new.spec["region"] not in [region["name"] for region in offered]:
        yield FieldProblem(field="spec.region", detail="choose another")


def has_key(review):
    if "key" not in review.new.data:
        yield FieldProblem(field="data.key", detail="add it")


def admission(manager):
    manager.add_admission(
        ConfigAdmission(kind=Infrastructure, config=Zones, type="acme", rules=[total]),
        ConfigAdmission(kind=CloudProfile, config=Images, type="acme"),
        ConfigAdmission(kind=Secret, type="acme", rules=[has_key]),
    )
    manager.add_webhooks(cloud_profile_status("acme"))
"""


@pytest.fixture
def development(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Development]:
    monkeypatch.chdir(tmp_path)
    Path("acme").mkdir()
    Path("acme/__init__.py").write_text(EXTENSION)
    Path("acme/admission.py").write_text(ADMISSION)
    started = Development(tmp_path / "dev.log", SERVES, "dev", "acme:extension")
    yield started
    started.kill()


def test_a_user_tries_the_admission_of_an_extension(development: Development) -> None:
    shown = development.text()
    named = re.search(r"KUBECONFIG=(\S+)", shown)
    assert named, shown
    for part in (
        "Shoot                  type acme: Infrastructure, policy, webhook validate-inf",
        "CloudProfile           type acme: CloudProfile, policy\n",
        "Secret                 type acme: Secret, webhook validate-secret-acme\n",
        "NamespacedCloudProfile webhook cloud-profile-status\n",
        "Their types are CRDs of this framework, not gardener-apiserver.",
    ):
        assert part in shown
    examples = Path(named[1]).with_name("garden.yaml")
    assert f"cp {examples} .\n  kubectl apply --server-side -f garden.yaml\n" in shown
    client = connect(Path(named[1]))
    judges_shoots_and_profiles(client, [*yaml.safe_load_all(examples.read_text())])
    completes_profiles_of_projects(client)
    judges_secrets_of_bindings(client)
    follows_the_code(development, client)
    assert development.stop() == 0


def refusal(client: HttpClient, obj: Raw) -> str:
    """The reason for which a new object would be refused, or ""."""
    path = path_of(resource_of_manifest(obj), obj["metadata"].get("namespace", ""))
    try:
        client.send("POST", path, query={"dryRun": "All"}, body=json.dumps(obj).encode())
    except ApiError as error:
        return str(error)
    return ""


def shoot(*sizes: int, **spec: object) -> Raw:
    config = {"apiVersion": "acme.example.org/v1", "kind": "Zones", "sizes": [*sizes]}
    provider = {"type": "acme", "workers": [{}], "infrastructureConfig": config}
    wanted = {"region": "here", **spec, "provider": provider}
    return manifest_of(Shoot, "mine", "default", spec=wanted)


def judges_shoots_and_profiles(client: HttpClient, examples: list[Raw]) -> None:
    """The examples are admitted, and wrong ones refused: by the policies, and by the rules."""
    assert [item["kind"] for item in examples] == ["Shoot", "CloudProfile"]
    wrong = "spec.provider.infrastructureConfig.sizes[1]: expected an integer like 3"
    eventually(lambda: wrong in refusal(client, shoot(1, 10)))
    rule = "spec.provider.infrastructureConfig.sizes: 14 are more than 12"
    eventually(lambda: rule in refusal(client, shoot(7, 7)))
    assert [refusal(client, item) for item in examples] == ["", ""]
    wanted = {"apiVersion": "acme.example.org/v1", "kind": "Images"}
    wanted["machineImages"] = [{"name": "linux"}, {"name": "Wrong"}]  # type: ignore[assignment]
    spec = {"type": "acme", "regions": [{"name": "here"}], "providerConfig": wanted}
    made = manifest_of(CloudProfile, "acme", spec=spec)
    refused = eventually(lambda: refusal(client, made))  # it learns of each policy apart
    assert "spec.providerConfig.machineImages[1].name: expected a string like 'linux'" in refused
    assert "got 'Wrong'" in refused
    wanted["machineImages"] = [{"name": "linux"}]  # type: ignore[assignment]
    client.create(resource_of(CloudProfile.KIND), manifest_of(CloudProfile, "acme", spec=spec))


def completes_profiles_of_projects(client: HttpClient) -> None:
    """As gardener-controller-manager does, with the webhook of the provider."""
    own = {"machineImages": [{"name": "own", "versions": []}]}
    parent = {"kind": "CloudProfile", "name": "acme"}
    spec = {"parent": parent, "providerConfig": own, "machineTypes": [{"name": "big"}]}
    made = manifest_of(NamespacedCloudProfile, "own", "default", spec=spec)
    eventually(lambda: refusal(client, made) == "")
    client.create(resource_of(NamespacedCloudProfile.KIND), made)

    def merged() -> Raw:
        found = client.get(resource_of(NamespacedCloudProfile.KIND), "own", "default")
        profile: Raw = found["status"]["cloudProfileSpec"]
        return profile

    eventually(lambda: len(merged()["providerConfig"]["machineImages"]) == 2)
    assert merged()["machineTypes"] == [{"name": "big"}]
    used = {"cloudProfile": {"kind": "NamespacedCloudProfile", "name": "own"}}
    assert "spec.region: choose another" in refusal(client, shoot(1, region="away", **used))
    assert refusal(client, shoot(1, **used)) == ""


def judges_secrets_of_bindings(client: HttpClient) -> None:
    """They have a label once a binding names them."""
    secret = manifest_of(Secret, "key", "default", data={"key": "YQ=="})
    client.create(SECRETS, secret)
    reference = {"name": "key", "namespace": "default"}
    fields = {"secretRef": reference, "provider": {"type": "acme"}}
    made = manifest_of(SecretBinding, "key", "default", **fields)
    client.create(resource_of(SecretBinding.KIND), made)
    label = "provider.shoot.gardener.cloud/acme"
    eventually(lambda: client.get(SECRETS, "key", "default")["metadata"]["labels"][label])
    with pytest.raises(ApiError, match=r"data\.key: add it"):
        client.patch(SECRETS, "key", "default", {"data": {"key": None}})


def follows_the_code(development: Development, client: HttpClient) -> None:
    """A saved file changes the policies; without an admission, everything is admitted."""
    file = Path("acme/admission.py")
    file.write_text(ADMISSION.replace("maximum=9", "maximum=11").replace("> 12", "> 22"))
    development.until_served()
    eventually(lambda: "like 3 (at most 11), got 12" in refusal(client, shoot(12)))
    eventually(lambda: refusal(client, shoot(11, 11)) == "")
    file.unlink()
    development.until_served()
    eventually(lambda: refusal(client, shoot(12, 12)) == "")
