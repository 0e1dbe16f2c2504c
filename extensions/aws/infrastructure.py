"""AwsInfrastructure: the network of a shoot, requested by an Infrastructure.

Flow of reconcile: read configuration and credentials → look up the VPC by its tag → save a status
without ids (from then on resources may exist) → create the VPC and save its id → subnets → security
group. Each step is idempotent, and known ids are in the status even if a later step fails. Requests
to the cloud belong to `network`.

restore is reconcile: it finds all resources by tag, and compares the ids in status.state. migrate
and force_delete leave the cloud unchanged; force_delete has nothing to remove in the seed.
"""

from collections.abc import Iterable, Iterator

from actuator import Actuator, ActuatorError, Cluster, ConfigurationError, Context, ExternalResource
from actuator.provider_status import read_status, write_status
from actuator.v1alpha1 import Infrastructure, InfrastructureNetworking
from extensions.aws import tags
from extensions.aws.account import OnAws
from extensions.aws.config import InfrastructureConfig, infrastructure_config
from extensions.aws.credentials import READ_SECRETS
from extensions.aws.network import NODES, SECURITY_GROUP, SUBNET, VPC, Network
from extensions.aws.status import InfrastructureStatus, Vpc


class AwsInfrastructure(OnAws, Actuator[Infrastructure]):
    """A VPC, three subnets per zone, a security group."""

    permissions = (READ_SECRETS,)

    def reconcile(self, ctx: Context, obj: Infrastructure, cluster: Cluster) -> None:
        """Create the network that providerConfig requests; write its ids to the status."""
        config = infrastructure_config(obj)
        remembered = read_status(InfrastructureStatus, obj.status) or InfrastructureStatus()
        network = self._network(ctx, obj)
        try:
            self._ensure(ctx, obj, network, config, remembered)
        except ConfigurationError as error:
            raise ConfigurationError(f"Infrastructure {obj.key}: {error.message}") from error
        cidr = config.networks.vpc.cidr
        obj.status.nodes_cidr = cidr
        obj.status.networking = InfrastructureNetworking(
            nodes=[cidr], pods=cluster.pod_cidrs, services=cluster.service_cidrs
        )

    def delete(self, ctx: Context, obj: Infrastructure, cluster: Cluster) -> None:
        """Delete the network; already deleted resources are success."""
        remembered = read_status(InfrastructureStatus, obj.status)
        if remembered is None:
            return  # nothing was ever created: needs neither credentials nor cloud
        network = self._network(ctx, obj)
        try:
            network.delete(remembered.vpc)
        except BaseException:
            write_status(obj.status, remembered)  # without deleted resources
            raise
        obj.status.provider_status = obj.status.state = None

    def external_resources(self, obj: Infrastructure) -> Iterable[ExternalResource]:
        """Return known resources by id, and resources that may exist by tag."""
        try:
            remembered = read_status(InfrastructureStatus, obj.status)
        except ActuatorError:
            remembered = InfrastructureStatus()  # unreadable: all of it may exist
        if remembered is None:
            return
        region, owner = obj.spec.region, tags.mark(_technical_id(obj))
        unknown = ((type, "") for type in _incomplete(obj, remembered.vpc))
        for type, id in (*_known(remembered.vpc), *unknown):
            yield ExternalResource(type=type, id=id, tags=owner, region=region)

    def _network(self, ctx: Context, obj: Infrastructure) -> Network:
        cloud = self._open(ctx, obj, obj.spec.secret_ref, obj.spec.region)
        return Network(cloud, _technical_id(obj))

    def _ensure(
        self,
        ctx: Context,
        obj: Infrastructure,
        network: Network,
        config: InfrastructureConfig,
        remembered: InfrastructureStatus,
    ) -> None:
        vpc, cidr = remembered.vpc, config.networks.vpc.cidr
        found = network.find_vpc(cidr, vpc.id)
        try:
            if found is None:
                remembered.vpc = vpc = Vpc()
                _save(ctx, obj, remembered)
                vpc.id = network.create_vpc(cidr)
                _save(ctx, obj, remembered)
            else:
                vpc.id = found
            network.ensure_subnets(vpc, config.networks.zones)
            network.ensure_security_group(vpc)
        finally:
            write_status(obj.status, remembered)


def _technical_id(obj: Infrastructure) -> str:
    """Return the shoot's namespace in the seed: its technical ID, even without a Cluster."""
    return obj.metadata.namespace


def _save(ctx: Context, obj: Infrastructure, remembered: InfrastructureStatus) -> None:
    write_status(obj.status, remembered)
    ctx.save(obj)


def _known(vpc: Vpc) -> Iterator[tuple[str, str]]:
    if vpc.id:
        yield VPC, vpc.id
    yield from ((SUBNET, subnet.id) for subnet in vpc.subnets)
    yield from ((SECURITY_GROUP, group.id) for group in vpc.security_groups)


def _incomplete(obj: Infrastructure, vpc: Vpc) -> Iterator[str]:
    """Yield the types of which more resources may exist than `vpc` lists."""
    if not vpc.id:
        yield VPC
    if not _wanted_subnets(obj) <= {(subnet.zone, subnet.purpose) for subnet in vpc.subnets}:
        yield SUBNET
    if NODES not in {group.purpose for group in vpc.security_groups}:
        yield SECURITY_GROUP


def _wanted_subnets(obj: Infrastructure) -> set[tuple[str, str]]:
    try:
        config = infrastructure_config(obj)
    except ConfigurationError:  # invalid now: an earlier one may have requested any subnets
        return {("", "")}
    return {(zone.name, purpose) for zone in config.networks.zones for purpose in zone.ranges()}
