"""A landscape with the AWS sample and the local sample; AWS is simulated by moto."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
import yaml
from commanding import run_command
from harness import eventually

from actuator.interface import Resource
from actuator.meta import Raw
from extensions.aws.cloud import GLOBAL
from extensions.aws.policy import policy
from extensions.aws.seed import TargetGroupBinding
from extensions.aws.simulator import Account, Simulator
from generic.kube.crds import crd
from generic.testing.envtest.binaries import kubernetes_version
from generic.testing.landscape.gardenobjects import cloud_profile, credentials, domains, project
from generic.testing.landscape.landscape import Landscape, LandscapeExtension, running_landscape
from generic.testing.landscape.seed import Seed
from generic.testing.landscape.seedobjects import SeedPlan
from generic.testing.seed import install_crds

ROOT = Path(__file__).parents[2]
DOMAIN, REGION, ZONE = "landscape.example.com", "eu-west-1", "eu-west-1a"
NAMESPACE = "garden-dev"
NAMESPACES = Resource("v1", "namespaces", namespaced=False)
_VERSION = kubernetes_version().removeprefix("v")
_CONFIG = "aws.provider.extensions.gardener.cloud/v1alpha1"
_RUNTIMES = {"name": "containerd", "containerRuntimes": [{"type": "local-runtime"}]}


def profile() -> Raw:
    """The CloudProfile's part of AWS."""
    version = {"version": "1.0.0", "cri": [_RUNTIMES], "architectures": ["amd64"]}
    amis = {"version": "1.0.0", "regions": [{"name": REGION, "ami": "ami-12c6146b"}]}
    images = [{"name": "local-os", "versions": [amis]}]
    machine = {"name": "m5.large", "cpu": "2", "gpu": "0", "memory": "8Gi", "usable": True}
    return {
        "machineImages": [{"name": "local-os", "versions": [version]}],
        "machineTypes": [machine],
        "volumeTypes": [{"name": "gp3", "class": "standard", "usable": True}],
        "regions": [{"name": REGION, "zones": [{"name": ZONE}]}],
        "providerConfig": {
            "apiVersion": _CONFIG,
            "kind": "CloudProfileConfig",
            "machineImages": images,
        },
    }


def shoot(name: str) -> Raw:
    """A Shoot with one machine, and with every kind of extension but Bastion and backup."""
    zone = {"name": ZONE, "workers": "10.250.0.0/19", "public": "10.250.32.0/20"}
    zone["internal"] = "10.250.48.0/20"
    networks = {"vpc": {"cidr": "10.250.0.0/16"}, "zones": [zone]}
    infrastructure = {"apiVersion": _CONFIG, "kind": "InfrastructureConfig", "networks": networks}
    image = {"name": "local-os", "version": "1.0.0"}
    worker = {
        "name": "pool",
        "machine": {"type": "m5.large", "image": image, "architecture": "amd64"},
        "cri": _RUNTIMES,
        "minimum": 1,
        "maximum": 2,
        "maxSurge": 1,
        "maxUnavailable": 0,
        "volume": {"type": "gp3", "size": "50Gi"},
        "zones": [ZONE],
    }
    return {
        "apiVersion": "core.gardener.cloud/v1beta1",
        "kind": "Shoot",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "cloudProfile": {"kind": "CloudProfile", "name": "aws"},
            "credentialsBindingName": "account",
            "region": REGION,
            "purpose": "testing",
            "networking": {"type": "local-net", "nodes": "10.250.0.0/16"},
            "kubernetes": {"version": _VERSION},
            "extensions": [{"type": "local-extension"}],
            "provider": {
                "type": "aws",
                "infrastructureConfig": infrastructure,
                "workers": [worker],
            },
        },
    }


@attrs.frozen
class AwsLandscape:
    """The landscape, and the user in the simulated AWS whose credentials it has."""

    landscape: Landscape
    account: Account
    user: Any

    @property
    def seed(self) -> Seed:
        return self.landscape.seeds[0]

    def allow(self, *, active: bool) -> None:
        """Revoke the credentials of all Shoots, or make them valid again."""
        self.account.set_access_key("gardener", self.user, active=active)


def registration(name: str, program: str, folder: Path) -> list[Raw]:
    """What `actuator chart` writes for the garden."""
    target = folder / name
    run_command("chart", program, "--name", f"extension-{name}", "--output", target)
    documents = yaml.safe_load_all((target / "controllerregistration.yaml").read_text())
    return [document for document in documents if document]


@contextmanager
def aws_landscape(folder: Path, program: str = "extensions.{}:extension") -> Iterator[AwsLandscape]:
    """Start everything; it is entered when users can create Shoots.

    `program` is the reference to an extension's function, with {} for the sample's name.
    """
    simulator = Simulator()
    account = simulator.start()
    try:
        user = account.create_user("gardener", policy())
        keys = {"accessKeyID": user.access_key_id, "secretAccessKey": user.secret_access_key}
        route53 = account.service("route53", GLOBAL)
        route53.request("create_hosted_zone", Name=DOMAIN, CallerReference=DOMAIN)
        plan = SeedPlan("seed", "aws", REGION, [ZONE], "aws-route53", DOMAIN, keys)
        environ = {"aws": {"AWS_ENDPOINT_URL": simulator.url}, "local": {}}
        extensions = [
            LandscapeExtension(name, target, registration(name, target, folder), more, ROOT)
            for name, more in environ.items()
            for target in [program.format(name)]
        ]
        objects = [
            project("dev"),
            cloud_profile("aws", [_VERSION], profile()),
            *domains("aws-route53", DOMAIN, keys),
        ]
        with running_landscape([plan], extensions, print, objects) as landscape:
            install_crds(landscape.seeds[0].client, [crd(TargetGroupBinding)])
            eventually(lambda: landscape.garden.client.get(NAMESPACES, NAMESPACE))
            landscape.garden.apply(credentials(NAMESPACE, "aws", keys))
            yield AwsLandscape(landscape, account, user)
    finally:
        simulator.stop()
