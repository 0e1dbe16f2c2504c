"""AwsRehearsal: an AWS account to break, for `actuator drill`. It is simulated by moto.

Shoots get the access key of an IAM user with nothing but this extension's policy; the drill
reads what is left as administrator. No AWS load balancer controller runs, so the binding of each
control plane keeps the finalizer with which AwsControlPlane creates it, until a force deletion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from actuator import Actuator, ExternalResource
from actuator.meta import Base64, Raw
from actuator.v1alpha1 import ControlPlane, Infrastructure
from extensions.aws import tags
from extensions.aws.cloud import Cloud
from extensions.aws.config import API_VERSION
from extensions.aws.controlplane import ELASTIC_IP, AwsControlPlane
from extensions.aws.crds import binding_crd
from extensions.aws.credentials import ACCESS_KEY_ID, SECRET_ACCESS_KEY, Credentials
from extensions.aws.infrastructure import SECURITY_GROUP, SUBNET, VPC, AwsInfrastructure
from extensions.aws.policy import policy
from extensions.aws.simulator import Account, Simulator
from generic.rehearsal import RehearsedShoot

__all__ = ["AwsRehearsal"]

_USER = "gardener"
_SECRET = "cloudprovider"  # noqa: S105 - the name of a Secret


@attrs.frozen
class _World:
    """What exists between start and stop."""

    simulator: Simulator
    account: Account
    credentials: Credentials


class AwsRehearsal:
    """The outside world of the AWS sample."""

    title = "AWS (simulated by moto, IAM enforced)"
    region = "eu-west-1"

    def __init__(self) -> None:
        self._world: _World | None = None
        self._breaks: dict[str, tuple[str, Callable[[_World], None]]] = {
            "credentials-revoked": (
                "The access key of the shoots is deleted: AWS answers AuthFailure.",
                lambda world: world.account.delete_access_key(_USER, world.credentials),
            ),
            "permission-denied": (
                "The IAM user of the shoots loses its policy: AWS answers AccessDenied.",
                lambda world: world.account.delete_policy(_USER),
            ),
            "dependency-left": (
                "Somebody put a route table into each VPC: AWS answers DependencyViolation.",
                self._put_route_tables,
            ),
        }
        self.scenarios: Mapping[str, str] = {name: text for name, (text, _) in self._breaks.items()}

    def start(self, directory: Path) -> None:
        """Starts the simulator; nothing is kept in `directory`."""
        simulator = Simulator()
        account = simulator.start()
        self._world = _World(simulator, account, account.create_user(_USER, policy()))

    def stop(self) -> None:
        """Stops the simulator; safe to call twice, and without start."""
        world, self._world = self._world, None
        if world is not None:
            world.simulator.stop()

    def crds(self) -> Sequence[Raw]:
        """The AWS load balancer controller's TargetGroupBinding, cut down to what is used."""
        return [binding_crd()]

    def actuators(self) -> Sequence[Actuator[Any]]:
        """The extension's actuators, talking to the simulator."""
        url = self._started.simulator.url
        return [AwsInfrastructure(url), AwsControlPlane(url)]

    def manifests(self, shoot: RehearsedShoot) -> Sequence[Raw]:
        """Secret, Infrastructure, ControlPlane."""
        credentials = self._started.credentials
        spec = {
            "type": shoot.type,
            "region": self.region,
            "secretRef": {"name": _SECRET, "namespace": shoot.technical_id},
        }
        infrastructure = {**spec, "providerConfig": _provider_config(self.region)}
        return [
            _secret(shoot, credentials),
            _extension_object(Infrastructure, shoot, infrastructure),
            _extension_object(ControlPlane, shoot, spec),
        ]

    def break_outside(self, scenario: str) -> None:
        """Brings the scenario about. Raises KeyError for a name not in `scenarios`."""
        _, bring_about = self._breaks[scenario]
        bring_about(self._started)

    def left_outside(self) -> Sequence[ExternalResource]:
        """All of the types that this extension makes, as administrator; AWS's defaults aside."""
        ec2 = self._started.account.ec2(self.region)
        return [
            ExternalResource(
                type=type, id=str(thing[id_key]), tags=tags.as_dict(thing), region=self.region
            )
            for type, id_key, things in _all_things(ec2)
            for thing in things
        ]

    @property
    def _started(self) -> _World:
        if self._world is None:
            raise RuntimeError("The rehearsal is not started")
        return self._world

    def _put_route_tables(self, world: _World) -> None:
        ec2 = world.account.ec2(self.region)
        for vpc in _vpcs(ec2):
            ec2.request("create_route_table", VpcId=vpc["VpcId"])


def _vpcs(ec2: Cloud) -> list[Raw]:
    not_default: list[Raw] = [{"Name": "is-default", "Values": ["false"]}]
    return ec2.describe("describe_vpcs", "Vpcs", not_default)


def _all_things(ec2: Cloud) -> Iterator[tuple[str, str, list[Raw]]]:
    yield VPC, "VpcId", _vpcs(ec2)
    subnets = ec2.describe("describe_subnets", "Subnets", [])
    yield SUBNET, "SubnetId", [subnet for subnet in subnets if not subnet["DefaultForAz"]]
    groups = ec2.describe("describe_security_groups", "SecurityGroups", [])
    own = [group for group in groups if group["GroupName"] != "default"]
    yield SECURITY_GROUP, "GroupId", own
    yield ELASTIC_IP, "AllocationId", ec2.describe("describe_addresses", "Addresses", [])


def _secret(shoot: RehearsedShoot, credentials: Credentials) -> Raw:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": _SECRET,
            "namespace": shoot.technical_id,
            "labels": shoot.labels,
        },
        "data": {
            ACCESS_KEY_ID: Base64.encode_bytes(credentials.access_key_id.encode()),
            SECRET_ACCESS_KEY: Base64.encode_bytes(credentials.secret_access_key.encode()),
        },
    }


def _extension_object(
    cls: type[Infrastructure | ControlPlane], shoot: RehearsedShoot, spec: Raw
) -> Raw:
    return {
        "apiVersion": cls.KIND.api_version,
        "kind": cls.KIND.name,
        "metadata": {
            "name": shoot.technical_id,
            "namespace": shoot.technical_id,
            "labels": shoot.labels,
        },
        "spec": spec,
    }


def _provider_config(region: str) -> Raw:
    return {
        "apiVersion": API_VERSION,
        "kind": "InfrastructureConfig",
        "networks": {
            "vpc": {"cidr": "10.250.0.0/16"},
            "zones": [
                {
                    "name": f"{region}a",
                    "workers": "10.250.0.0/19",
                    "public": "10.250.32.0/20",
                    "internal": "10.250.48.0/20",
                }
            ],
        },
    }
