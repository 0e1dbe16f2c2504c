"""AwsInfrastructure: the network of a shoot, requested by an Infrastructure.

The flow of `network` creates and deletes the resources; here are configuration, credentials and
status. A resource is in the state before it is requested, and its id before the next request.

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
    DecodeError,
    ExternalResource,
    FieldProblem,
    decode,
    write_status,
)
from actuator.v1alpha1 import Infrastructure, InfrastructureNetworking
from extensions.aws import parts, status, tags
from extensions.aws.account import READ_SECRETS, OnAws
from extensions.aws.config import InfrastructureConfig, region_problems
from extensions.aws.network import ShootNetwork
from extensions.aws.state import InfrastructureState
from generic.library import Flow, Ids

_PURPOSES = {parts.WORKERS: status.NODES, parts.PUBLIC: "public", parts.INTERNAL: "internal"}


class AwsInfrastructure(OnAws, Actuator[Infrastructure, InfrastructureConfig]):
    """A VPC, and in each zone three subnets, a NAT gateway with its address, and routes."""

    permissions = (READ_SECRETS,)

    def validate(
        self, ctx: Context[InfrastructureConfig], obj: Infrastructure, cluster: Cluster
    ) -> Iterable[FieldProblem]:
        """Return problems of the region."""
        return region_problems(obj.spec.region, ctx.config)

    def reconcile(
        self, ctx: Context[InfrastructureConfig], obj: Infrastructure, cluster: Cluster
    ) -> None:
        """Create the network that providerConfig requests; write its ids to the status."""
        networks = ctx.config.networks
        state = _state(obj) or InfrastructureState()
        network = self._network(ctx, obj)
        try:
            key = obj.spec.ssh_public_key
            tasks = network.tasks(ctx.config, obj.spec.region, key.decode_bytes() if key else b"")
            flow = Flow(network.types(), tasks)
            ids = flow.create(ctx, obj, state)
        except ConfigurationError as error:
            raise ConfigurationError(f"Infrastructure {obj.key}: {error.message}") from error
        addresses = network.route_through_nat(networks, ids)
        obj.status.egress_cidrs = [f"{address}/32" for address in addresses]
        reported = status.InfrastructureStatus(
            ec2=status.Ec2Status(key_name=ids.get(parts.KEY, "")),
            iam=status.IamStatus(
                instance_profiles=[
                    status.InstanceProfile(purpose=status.NODES, name=ids[parts.NODE_PROFILE])
                ],
                roles=[
                    status.Role(purpose=status.NODES, arn=network.role_arn(ids[parts.NODE_ROLE]))
                ],
            ),
            vpc=_vpc(ids, [zone.name for zone in networks.zones]),
        )
        write_status(obj.status, reported, state=False)
        cidr = networks.vpc.cidr or network.range_of(ids[parts.NETWORK])
        obj.status.nodes_cidr = cidr
        obj.status.networking = InfrastructureNetworking(
            nodes=[cidr], pods=cluster.pod_cidrs, services=cluster.service_cidrs
        )

    def delete(self, ctx: Context, obj: Infrastructure, cluster: Cluster) -> None:
        """Delete the network; already deleted resources are success."""
        state = _state(obj)
        if state is None:
            return  # nothing was ever created: needs neither credentials nor cloud
        Flow(self._network(ctx, obj).types()).delete(ctx, obj, state)

    def external_resources(self, obj: Infrastructure) -> Iterable[ExternalResource]:
        """Return all resources that may exist: by id, or by tag if the id is unknown.

        The namespace is the technical ID of the shoot, also without a Cluster.
        """
        owner = obj.metadata.namespace
        region = obj.spec.region
        try:
            state = _state(obj)
        except ActuatorError:  # unreadable: all of it may exist
            for type in parts.TYPES:
                name = parts.NODE_ROLE if type.service == "iam" else ""  # IAM searches by name
                owned = parts.part_tags(owner, name) if name else tags.mark(owner)
                yield ExternalResource(type=type.name, tags=owned, region=region)
        else:
            if state is not None:
                yield from state.external_resources(partial(parts.part_tags, owner), region)

    def _network(self, ctx: Context, obj: Infrastructure) -> ShootNetwork:
        cloud = self._open(ctx, obj, obj.spec.region)
        return ShootNetwork(cloud, obj.metadata.namespace)


def _state(obj: Infrastructure) -> InfrastructureState | None:
    """Return the state, None before the first request. Raises ActuatorError if it is unreadable.

    A configured VPC has another owner. A state of the other extension does not tell that.
    """
    state = InfrastructureState.read(obj)
    try:
        vpc = decode(InfrastructureConfig, obj.spec.provider_config).networks.vpc
    except DecodeError:
        return state
    for record in state.resources if state and vpc.id else ():
        record.existing = record.existing or record.name in (parts.NETWORK, parts.GATEWAY)
    return state


def _vpc(ids: Ids, zones: Iterable[str]) -> status.VpcStatus:
    """Return the resources as Gardener's AWS extension reports them."""
    subnets = [
        status.Subnet(id=ids[parts.in_zone(zone, key)], purpose=purpose, zone=zone)
        for zone in zones
        for key, purpose in _PURPOSES.items()
    ]
    groups = [status.SecurityGroup(id=ids[parts.NODES], purpose=status.NODES)]
    return status.VpcStatus(id=ids[parts.NETWORK], subnets=subnets, security_groups=groups)
