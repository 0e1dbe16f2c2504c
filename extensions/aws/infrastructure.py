"""AwsInfrastructure: the network of a shoot, requested by an Infrastructure.

The flow of `network` creates and deletes the resources; here are configuration, credentials and
status. A resource is in the status before it is requested, and its id before the next request.

restore is reconcile: it finds all resources by tag, and compares the ids in status.state. migrate
and force_delete leave the cloud unchanged; force_delete has nothing to remove in the seed.
"""

from collections.abc import Iterable
from functools import partial

from actuator import (
    Actuator,
    ActuatorError,
    Cluster,
    ConfigurationError,
    Context,
    ExternalResource,
    FieldProblem,
)
from actuator.provider_config import read_config
from actuator.provider_status import read_status, write_status
from actuator.v1alpha1 import Infrastructure, InfrastructureNetworking
from extensions.aws import tags
from extensions.aws.account import READ_SECRETS, OnAws
from extensions.aws.config import InfrastructureConfig, region_problems
from extensions.aws.ec2 import SECURITY_GROUP, SUBNET, VPC
from extensions.aws.network import NETWORK, Network, Range, ranges, task_tags
from extensions.aws.status import InfrastructureStatus, SecurityGroup, Subnet, Vpc
from generic.library.flow import Flow


class AwsInfrastructure(OnAws, Actuator[Infrastructure]):
    """A VPC, three subnets per zone, a security group."""

    permissions = (READ_SECRETS,)
    provider_config = InfrastructureConfig

    def validate(
        self, ctx: Context, obj: Infrastructure, cluster: Cluster
    ) -> Iterable[FieldProblem]:
        """Yield problems of the region and of providerConfig."""
        yield from region_problems(obj)
        yield from super().validate(ctx, obj, cluster)

    def reconcile(self, ctx: Context, obj: Infrastructure, cluster: Cluster) -> None:
        """Create the network that providerConfig requests; write its ids to the status."""
        networks = read_config(InfrastructureConfig, obj).networks
        status = read_status(InfrastructureStatus, obj.status) or InfrastructureStatus()
        tasks = self._network(ctx, obj).tasks(ranges(networks), status.ids.get(NETWORK, ""))
        try:
            Flow(tasks).create(ctx, obj, status)
        except ConfigurationError as error:
            raise ConfigurationError(f"Infrastructure {obj.key}: {error.message}") from error
        status.vpc = _vpc(status)
        write_status(obj.status, status)
        cidr = networks.vpc.cidr
        obj.status.nodes_cidr = cidr
        obj.status.networking = InfrastructureNetworking(
            nodes=[cidr], pods=cluster.pod_cidrs, services=cluster.service_cidrs
        )

    def delete(self, ctx: Context, obj: Infrastructure, cluster: Cluster) -> None:
        """Delete the network; already deleted resources are success."""
        status = read_status(InfrastructureStatus, obj.status)
        if status is None:
            return  # nothing was ever created: needs neither credentials nor cloud
        subnets = (one.name for one in status.resources if one.type == SUBNET.name)
        recorded = dict.fromkeys(subnets, Range())
        Flow(self._network(ctx, obj).tasks(recorded)).delete(ctx, obj, status)

    def external_resources(self, obj: Infrastructure) -> Iterable[ExternalResource]:
        """Return all resources that may exist: by id, or by tag if the id is unknown.

        The namespace is the technical ID of the shoot, also without a Cluster.
        """
        owner, region = obj.metadata.namespace, obj.spec.region
        try:
            status = read_status(InfrastructureStatus, obj.status)
        except ActuatorError:  # unreadable: all of it may exist
            for type in (VPC, SUBNET, SECURITY_GROUP):
                yield ExternalResource(type=type.name, tags=tags.mark(owner), region=region)
        else:
            if status is not None:
                yield from status.external_resources(partial(task_tags, owner), region)

    def _network(self, ctx: Context, obj: Infrastructure) -> Network:
        cloud = self._open(ctx, obj, obj.spec.secret_ref, obj.spec.region)
        return Network(cloud, obj.metadata.namespace)


def _vpc(status: InfrastructureStatus) -> Vpc:
    """Return the resources as Gardener's AWS extension reports them."""
    subnets, groups = [], []
    for one in status.resources:
        if one.type == SUBNET.name:
            purpose, _, zone = one.name.partition("-")
            subnets.append(Subnet(id=one.id, purpose=purpose, zone=zone))
        elif one.type == SECURITY_GROUP.name:
            groups.append(SecurityGroup(id=one.id, purpose=one.name))
    return Vpc(id=status.ids[NETWORK], subnets=subnets, security_groups=groups)
