"""AwsRehearsal: an AWS account to break, for `actuator drill`, simulated by moto.

Shoots get the access key of an IAM user with only this extension's policy; the drill reads the
remaining resources as administrator. No AWS load balancer controller runs, so each control plane's
TargetGroupBinding keeps the finalizer that AwsControlPlane sets, until a force deletion.
AwsRehearsal has the two most instructive kinds and runs fast; `full_rehearsal` has all.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from botocore.handlers import BUILTIN_HANDLERS

from actuator import Actuator, ExternalResource, Object, Raw
from extensions.aws import inventory
from extensions.aws.cloud import Cloud
from extensions.aws.controlplane import AwsControlPlane
from extensions.aws.infrastructure import AwsInfrastructure
from extensions.aws.manifests import example
from extensions.aws.policy import policy
from extensions.aws.seed import TargetGroupBinding
from extensions.aws.simulator import Simulator
from generic.testing import Around, Rehearsal, RehearsedShoot

_USER = "gardener"
_HEARD = "actuator-heard"


class AwsRehearsal(Rehearsal):
    """The outside world of the AWS sample: network and control plane."""

    title = "AWS (simulated by moto, IAM enforced)"
    region = "eu-west-1"
    reports_exactly = ("Infrastructure",)
    other_kinds: Sequence[type[Object]] = (TargetGroupBinding,)
    scenarios: Mapping[str, str] = {
        "credentials-revoked": "The access key of the shoots is revoked: AWS answers AuthFailure.",
        "permission-denied": (
            "The IAM user of the shoots loses its policy: AWS answers AccessDenied."
        ),
        "dependency-left": (
            "A user attached a VPN gateway to each VPC: AWS answers DependencyViolation."
        ),
        "everything-fails": "AWS cannot be reached: every request fails at once.",
    }

    def __init__(self) -> None:
        self.simulator = Simulator()
        self.url = ""
        """The extension's endpoint."""

    def start(self, directory: Path) -> None:
        """Start the simulator; `directory` is not used."""
        self.account = self.simulator.start()
        self.credentials = self.account.create_user(_USER, policy())
        self.url = self.simulator.url

    def stop(self) -> None:
        """Stop the simulator; safe to call twice, and without start."""
        self.simulator.stop()

    def share(self) -> Mapping[str, str]:
        """Return the endpoint; the shoots' credentials are in their Secrets."""
        return {"url": self.url}

    def attach(self, shared: Mapping[str, str]) -> None:
        """Use the simulator that another process started."""
        self.url = shared["url"]

    def observe(self, around: Around) -> None:
        """Enter `around` for each request of sessions created later in this process.

        boto3 calls its built-in handlers (Boto3 documentation, "Extensibility guide"); the handlers
        are never removed from its list.
        """

        def sent(model: Any, context: dict[str, Any], **_: Any) -> None:
            context[_HEARD] = around(f"{model.service_model.service_name}: {model.name}")
            context[_HEARD].__enter__()

        def answered(context: dict[str, Any], **_: Any) -> None:
            context[_HEARD].__exit__(None, None, None)

        BUILTIN_HANDLERS.append(("before-call", sent))
        BUILTIN_HANDLERS.append(("after-call", answered))
        BUILTIN_HANDLERS.append(("after-call-error", answered))

    def actuators(self) -> Sequence[Actuator[Any]]:
        """The extension's actuators, connected to the simulator."""
        return [AwsInfrastructure(self.url), AwsControlPlane(self.url)]

    def manifests(self, shoot: RehearsedShoot) -> Sequence[Raw]:
        """Secret, Infrastructure, ControlPlane."""
        return example("network", shoot, self.credentials)

    def inject_failure(self, scenario: str) -> None:
        """Start the scenario. Raises KeyError for a name not in `scenarios`."""
        account = self.account
        breaks = {
            "credentials-revoked": lambda: account.set_access_key(
                _USER, self.credentials, active=False
            ),
            "permission-denied": lambda: account.delete_policy(_USER),
            "dependency-left": lambda: _attach_vpn_gateways(account.service("ec2", self.region)),
            "everything-fails": self.simulator.shut,
        }
        breaks[scenario]()

    def repair_failure(self) -> None:
        """Undo all scenarios, so that kinds without force deletion can be deleted normally."""
        self.account.set_access_key(_USER, self.credentials, active=True)
        self.account.put_policy(_USER, policy())
        _delete_vpn_gateways(self.account.service("ec2", self.region))
        self.simulator.reopen()

    def remaining_resources(self) -> Sequence[ExternalResource]:
        """Return all resources of the extension's types as administrator, except AWS's defaults."""
        return list(inventory.everything(self.account, self.region))


def _attach_vpn_gateways(ec2: Cloud) -> None:
    for vpc in inventory.vpcs(ec2):
        gateway = ec2.request("create_vpn_gateway", Type="ipsec.1")["VpnGateway"]
        ids = {"VpnGatewayId": gateway["VpnGatewayId"], "VpcId": vpc["VpcId"]}
        ec2.request("attach_vpn_gateway", **ids)


def _delete_vpn_gateways(ec2: Cloud) -> None:
    for gateway in ec2.items("describe_vpn_gateways", "VpnGateways"):
        id = gateway["VpnGatewayId"]
        for attachment in gateway["VpcAttachments"]:
            ec2.remove("detach_vpn_gateway", VpnGatewayId=id, VpcId=attachment["VpcId"])
        ec2.remove("delete_vpn_gateway", VpnGatewayId=id)
