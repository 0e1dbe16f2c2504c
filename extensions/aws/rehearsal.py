"""AwsRehearsal: an AWS account to break, for `actuator drill`, simulated by moto.

Shoots get the access key of an IAM user with only this extension's policy; the drill reads the
remaining resources as administrator. No AWS load balancer controller runs, so each control plane's
TargetGroupBinding keeps the finalizer that AwsControlPlane sets, until a force deletion.
AwsRehearsal has the two most instructive kinds and runs fast; `full_rehearsal` has all.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
from botocore.handlers import BUILTIN_HANDLERS

from actuator import Actuator, ExternalResource
from actuator.meta import Raw
from extensions.aws import inventory
from extensions.aws.cloud import Credentials
from extensions.aws.controlplane import AwsControlPlane
from extensions.aws.infrastructure import AwsInfrastructure
from extensions.aws.manifests import example
from extensions.aws.policy import policy
from extensions.aws.seed import TargetGroupBinding
from extensions.aws.simulator import Account, Simulator
from generic.kube.crds import crd
from generic.testing.rehearsal import Around, Rehearsal, RehearsedShoot

_USER = "gardener"
_HEARD = "actuator-heard"


@attrs.frozen
class World:
    """The objects that exist between start and stop."""

    simulator: Simulator
    account: Account
    credentials: Credentials


@attrs.frozen
class _Break:
    """A scenario: its description, how it starts, and how it is undone."""

    text: str
    bring_about: Callable[[World, str], None]
    mend: Callable[[World, str], None]


class AwsRehearsal(Rehearsal):
    """The outside world of the AWS sample: network and control plane."""

    title = "AWS (simulated by moto, IAM enforced)"
    region = "eu-west-1"
    reports_exactly = ("Infrastructure",)

    def __init__(self) -> None:
        self.scenarios: Mapping[str, str] = {name: one.text for name, one in _BREAKS.items()}
        self._world: World | None = None
        self._attached = ""
        self._broken: list[str] = []

    def start(self, directory: Path) -> None:
        """Start the simulator; `directory` is not used."""
        simulator = Simulator()
        account = simulator.start()
        self._world = World(simulator, account, account.create_user(_USER, policy()))

    def stop(self) -> None:
        """Stop the simulator; safe to call twice, and without start."""
        world, self._world = self._world, None
        if world is not None:
            world.simulator.stop()

    def share(self) -> Mapping[str, str]:
        """Return the endpoint; the shoots' credentials are in their Secrets."""
        return {"url": self.started.simulator.url}

    def attach(self, shared: Mapping[str, str]) -> None:
        """Use the simulator that another process started."""
        self._attached = shared["url"]

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

    def crds(self) -> Sequence[Raw]:
        """The AWS load balancer controller's TargetGroupBinding."""
        return [crd(TargetGroupBinding)]

    def actuators(self) -> Sequence[Actuator[Any]]:
        """The extension's actuators, connected to the simulator."""
        url = self.url
        return [AwsInfrastructure(url), AwsControlPlane(url)]

    def manifests(self, shoot: RehearsedShoot) -> Sequence[Raw]:
        """Secret, Infrastructure, ControlPlane."""
        return example("network", shoot, self.started.credentials)

    def break_outside(self, scenario: str) -> None:
        """Start the scenario. Raises KeyError for a name not in `scenarios`."""
        _BREAKS[scenario].bring_about(self.started, self.region)
        self._broken.append(scenario)

    def mend_outside(self) -> None:
        """Undo all scenarios, so that kinds without force deletion can be deleted normally."""
        while self._broken:
            _BREAKS[self._broken[-1]].mend(self.started, self.region)
            self._broken.pop()

    def left_outside(self) -> Sequence[ExternalResource]:
        """Return all resources of the extension's types as administrator, except AWS's defaults."""
        return list(inventory.everything(self.started.account, self.region))

    @property
    def url(self) -> str:
        """The extension's endpoint."""
        return self._attached or self.started.simulator.url

    @property
    def started(self) -> World:
        """The started world. Raises RuntimeError before start."""
        if self._world is None:
            raise RuntimeError("The rehearsal is not started")
        return self._world


def _set_access_key(world: World, *, active: bool) -> None:
    world.account.set_access_key(_USER, world.credentials, active=active)


def _put_route_tables(world: World, region: str) -> None:
    ec2 = world.account.ec2(region)
    for vpc in inventory.vpcs(ec2):
        ec2.request("create_route_table", VpcId=vpc["VpcId"])


def _remove_route_tables(world: World, region: str) -> None:
    ec2 = world.account.ec2(region)
    for table in ec2.describe("describe_route_tables", "RouteTables", []):
        if not any(association.get("Main") for association in table["Associations"]):
            ec2.remove("delete_route_table", RouteTableId=table["RouteTableId"])


_BREAKS = {
    "credentials-revoked": _Break(
        "The access key of the shoots is revoked: AWS answers AuthFailure.",
        lambda world, _: _set_access_key(world, active=False),
        lambda world, _: _set_access_key(world, active=True),
    ),
    "permission-denied": _Break(
        "The IAM user of the shoots loses its policy: AWS answers AccessDenied.",
        lambda world, _: world.account.delete_policy(_USER),
        lambda world, _: world.account.put_policy(_USER, policy()),
    ),
    "dependency-left": _Break(
        "A user put a route table into each VPC: AWS answers DependencyViolation.",
        _put_route_tables,
        _remove_route_tables,
    ),
    "everything-fails": _Break(
        "AWS cannot be reached: every request fails at once.",
        lambda world, _: world.simulator.shut(),
        lambda world, _: world.simulator.reopen(),
    ),
}
