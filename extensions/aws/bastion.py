"""AwsBastion: a temporary login machine in a shoot's network, requested by a Bastion.

Flow of reconcile: look up the shoot's network by its tag → save a status without ids (from then on
resources may exist) → security group → instance → wait for its address. A Bastion names no
credentials, so those of the shoot are used.

Flow of delete: terminate the instance and wait for it → delete the security group.
"""

from collections.abc import Iterable

import attrs

from actuator import (
    Actuator,
    Cluster,
    ConfigurationError,
    Context,
    ExternalResource,
    FieldProblem,
    Raw,
    RequeueAfter,
    read_status,
    write_status,
)
from actuator.v1alpha1 import Bastion, LoadBalancerIngress
from extensions.aws import tags
from extensions.aws.account import READ_SECRETS, OnAws
from extensions.aws.config import BastionConfig
from extensions.aws.ec2 import INSTANCE, SECURITY_GROUP
from extensions.aws.host import Host
from extensions.aws.machineclass import AwsImage
from extensions.aws.status import BastionStatus
from generic.library import ingress_problems, ingress_ranges
from generic.library.worker import AMD64, machine_images

_LOOK_AGAIN = 5.0
"""Seconds until the next check of a running AWS operation."""

_MACHINE_TYPE = "t3.micro"


class AwsBastion(OnAws, Actuator[Bastion, BastionConfig]):
    """An instance with a public address, and a security group."""

    permissions = (READ_SECRETS,)

    def validate(self, ctx: Context, obj: Bastion, cluster: Cluster) -> Iterable[FieldProblem]:
        """Return ranges that a security group cannot allow."""
        return ingress_problems(obj)

    def reconcile(self, ctx: Context[BastionConfig], obj: Bastion, cluster: Cluster) -> None:
        """Ensure that the bastion runs; write its address to the status."""
        remembered = read_status(BastionStatus, obj.status)
        machine = _machine(ctx.config, cluster, f"Bastion {obj.key}")
        host = self._host(ctx, obj, cluster.region)
        subnet, nodes_id = host.find_site()
        if remembered is None:
            remembered = BastionStatus(region=cluster.region)
            write_status(obj.status, remembered)
            ctx.save(obj)
        try:
            group_id = host.ensure_group(subnet["VpcId"], ingress_ranges(obj))
            remembered.security_group_id = group_id
            user_data = obj.spec.user_data.decode_bytes()
            instance = host.ensure_instance(machine, subnet, [group_id, nodes_id], user_data)
            remembered.instance_id = str(instance["InstanceId"])
        finally:
            write_status(obj.status, remembered)
        if not instance.get("PublicIpAddress") or instance["State"]["Name"] != "running":
            raise RequeueAfter(_LOOK_AGAIN, f"Waiting for instance {remembered.instance_id} to run")
        obj.status.ingress = LoadBalancerIngress(
            ip=instance["PublicIpAddress"], hostname=instance.get("PublicDnsName") or ""
        )

    def delete(self, ctx: Context, obj: Bastion, cluster: Cluster) -> None:
        """Delete instance and security group; already deleted ones are success."""
        remembered = read_status(BastionStatus, obj.status)
        if remembered is None:
            return  # nothing was ever created: needs neither credentials nor cloud
        host = self._host(ctx, obj, remembered.region)
        held = host.terminate()
        if held:
            raise RequeueAfter(_LOOK_AGAIN, f"Waiting for instance {', '.join(held)} to terminate")
        host.delete_group()
        obj.status.provider_status = obj.status.state = None

    def external_resources(self, obj: Bastion) -> Iterable[ExternalResource]:
        """Return instance and security group, by id, or by tag if the id is unknown."""
        empty = BastionStatus()  # an unreadable one: all may exist
        remembered = read_status(BastionStatus, obj.status, unreadable=empty)
        if remembered is None:
            return
        owner = tags.bastion_mark(obj.metadata.namespace, obj.metadata.name)
        for type, id in (
            (INSTANCE, remembered.instance_id),
            (SECURITY_GROUP, remembered.security_group_id),
        ):
            yield ExternalResource(type=type.name, id=id, tags=owner, region=remembered.region)

    def _host(self, ctx: Context, obj: Bastion, region: str) -> Host:
        cloud = self._open(ctx, obj, region)
        return Host(cloud, obj.metadata.namespace, obj.metadata.name)


def _machine(config: BastionConfig, cluster: Cluster, where: str) -> BastionConfig:
    """Return the configuration with the CloudProfile's values where it has none.

    These are its settings for bastions, and its first image. Raises ConfigurationError if the
    CloudProfile has no image either; `where` names the object.
    """
    settings = (cluster.cloud_profile.get("spec") or {}).get("bastion") or {}
    image = settings.get("machineImage") or {}
    type = settings.get("machineType") or {}
    return attrs.evolve(
        config,
        ami=config.ami or _ami(cluster, image, where),
        machine_type=config.machine_type or type.get("name") or _MACHINE_TYPE,
    )


def _ami(cluster: Cluster, wanted: Raw, where: str) -> str:
    """Return the wanted image, by default the last version of the first image in the region."""
    images = machine_images(AwsImage, cluster, cluster.region)
    name = wanted.get("name") or next((image.name for image in images), "")
    for image in reversed(images):
        version = wanted.get("version") or image.version
        if (image.name, image.version, image.architecture) == (name, version, AMD64):
            return image.ami
    raise ConfigurationError(
        f"{where}: the CloudProfile has no AMI of machine image {name} {wanted.get('version', '')} "
        f"({AMD64}) in {cluster.region}; add it to spec.providerConfig.machineImages, or choose "
        "another image"
    )
