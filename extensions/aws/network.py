"""The network of one shoot in the cloud, as the tasks of a flow.

An existing VPC, its internet gateway, and existing addresses have another owner: they are neither
changed nor deleted. Kubernetes does not belong here; see `infrastructure`.
"""

from collections.abc import Iterator

from extensions.aws import iam, parts, securitygroups, vpc
from extensions.aws.config import InfrastructureConfig, Networks, Zone
from extensions.aws.ec2 import ELASTIC_IP, NAT_GATEWAY, ROUTE_TABLE, SECURITY_GROUP, SUBNET, VPC
from extensions.aws.resources import ShootResources, waiting
from extensions.aws.securitygroups import EVERYWHERE
from generic.library import Ids, Task

_FIELDS = {parts.PUBLIC: "public", parts.WORKERS: "workers", parts.INTERNAL: "internal"}
"""The field of a zone in the providerConfig, by part."""


class ShootNetwork(ShootResources):
    """The network of the shoot, in one call of the actuator."""

    def tasks(
        self, config: InfrastructureConfig, region: str, ssh_key: bytes = b""
    ) -> Iterator[Task]:
        """Yield the tasks for the configured network; machines get the public key, if any."""
        networks = config.networks
        yield from vpc.tasks(self, networks.vpc, region)
        yield self.task(
            parts.PUBLIC_ROUTES,
            create=self.creates(parts.PUBLIC_ROUTES, "create_route_table", VpcId=parts.NETWORK),
            update=lambda known, ids: self._route(known, GatewayId=ids[parts.GATEWAY]),
        )
        text = {"GroupName": self.full_name(parts.NODES), "Description": "Security group for nodes"}
        yield self.task(
            parts.NODES,
            create=self.creates(parts.NODES, "create_security_group", text, VpcId=parts.NETWORK),
            update=lambda known, ids: self._set_rules(known, networks.zones, ids[parts.NETWORK]),
        )
        yield from self._of_nodes(config.enable_ecr_access, ssh_key)
        for index, zone in enumerate(networks.zones):
            yield from self._of_zone(zone, f"zones[{index}]")

    def route_through_nat(self, networks: Networks, ids: Ids) -> list[str]:
        """Send the traffic of each zone's nodes through its NAT gateway; return the addresses.

        A step after all tasks, because all gateways are requested before the first one is waited
        for. Raises RequeueAfter.
        """
        addresses = []
        for zone in networks.zones:
            gateway = self.item(NAT_GATEWAY, ids[parts.in_zone(zone.name, parts.NAT)])
            if gateway["State"] != "available":
                raise waiting(gateway)
            self._route(
                ids[parts.in_zone(zone.name, parts.ROUTES)], NatGatewayId=gateway["NatGatewayId"]
            )
            addresses += [item["PublicIp"] for item in gateway["NatGatewayAddresses"]]
        return addresses

    def role_arn(self, name: str) -> str:
        """Return the ARN of the role."""
        return str(self.item(iam.ROLE, name)["Arn"])

    def range_of(self, vpc_id: str) -> str:
        """Return the range of the VPC."""
        return str(self.item(VPC, vpc_id)["CidrBlock"])

    def _of_nodes(self, registry: bool, ssh_key: bytes) -> Iterator[Task]:
        role = {"RoleName": self.full_name(parts.NODE_ROLE), "AssumeRolePolicyDocument": iam.TRUST}
        policy = iam.node_policy(registry)
        yield self.task(
            parts.NODE_ROLE,
            create=self.creates(parts.NODE_ROLE, "create_role", role),
            update=lambda known, _ids: iam.ensure_policy(self.cloud, known, policy),
        )
        profile = {"InstanceProfileName": self.full_name(parts.NODE_PROFILE)}
        yield self.task(
            parts.NODE_PROFILE,
            create=self.creates(parts.NODE_PROFILE, "create_instance_profile", profile),
            update=lambda known, ids: iam.ensure_role(
                self.cloud, self.item(iam.INSTANCE_PROFILE, known), ids[parts.NODE_ROLE]
            ),
        )
        key = {"KeyName": self.full_name(parts.KEY), "PublicKeyMaterial": ssh_key}
        yield self.task(
            parts.KEY,
            create=self.creates(parts.KEY, "import_key_pair", key),
            replace=lambda known, _ids: self._has_other_key(known, ssh_key),
            when=bool(ssh_key),
        )

    def _of_zone(self, zone: Zone, path: str) -> Iterator[Task]:
        routes, address, nat = (
            parts.in_zone(zone.name, key) for key in (parts.ROUTES, parts.ADDRESS, parts.NAT)
        )
        yield self.task(
            routes, create=self.creates(routes, "create_route_table", VpcId=parts.NETWORK)
        )
        for key, field in _FIELDS.items():
            table = parts.PUBLIC_ROUTES if key == parts.PUBLIC else routes
            yield self._subnet(zone, parts.in_zone(zone.name, key), field, path, table)
        if own := zone.elastic_ip_allocation_id:
            wanted = [ELASTIC_IP.with_id(own)]
            yield self.task(address, existing=lambda _ids: self.first(ELASTIC_IP, wanted))
        else:
            create = self.creates(address, "allocate_address", {"Domain": "vpc"})
            yield self.task(address, create=create)
        subnet = parts.in_zone(zone.name, parts.PUBLIC)
        yield self.task(
            nat,
            create=self.creates(nat, "create_nat_gateway", SubnetId=subnet, AllocationId=address),
            replace=lambda known, ids: self._has_failed(known, ids[address]),
        )

    def _subnet(self, zone: Zone, name: str, field: str, path: str, table: str) -> Task:
        cidr = zone.ranges()[field]
        place = {"CidrBlock": cidr, "AvailabilityZone": zone.name}

        def update(known: str, ids: Ids) -> None:
            self.check_range(SUBNET, known, cidr, f"{path}.{field}")
            self._associate(known, ids[table])

        create = self.creates(name, "create_subnet", place, VpcId=parts.NETWORK)
        return self.task(name, create=create, update=update)

    def _route(self, table: str, **target: str) -> None:
        """Send all traffic that leaves the VPC to the target."""
        routes = self.item(ROUTE_TABLE, table).get("Routes") or ()
        now = [route for route in routes if route.get("DestinationCidrBlock") == EVERYWHERE]
        if not any(target.items() <= route.items() for route in now):
            operation = "replace_route" if now else "create_route"
            place = {"RouteTableId": table, "DestinationCidrBlock": EVERYWHERE}
            self.cloud.request(operation, **place, **target)

    def _associate(self, subnet: str, table: str) -> None:
        associations = self.item(ROUTE_TABLE, table).get("Associations") or ()
        if subnet not in [association.get("SubnetId") for association in associations]:
            self.cloud.request("associate_route_table", RouteTableId=table, SubnetId=subnet)

    def _has_other_key(self, name: str, ssh_key: bytes) -> bool:
        """Whether the key pair has another key; AWS may change the comment after it."""
        wanted = {"KeyNames": [name], "IncludePublicKey": True}
        (pair,) = self.cloud.request("describe_key_pairs", **wanted)["KeyPairs"]
        return str(pair["PublicKey"]).split()[:2] != ssh_key.decode().split()[:2]

    def _has_failed(self, nat_gateway: str, address: str) -> bool:
        """Whether the NAT gateway cannot be used, or uses another address."""
        item = self.item(NAT_GATEWAY, nat_gateway)
        used = [used.get("AllocationId") for used in item["NatGatewayAddresses"]]
        return item["State"] in ("failed", "deleting") or address not in used

    def _set_rules(self, id: str, zones: list[Zone], vpc_id: str) -> None:
        group = self.item(SECURITY_GROUP, id)
        added = securitygroups.missing(group, zones)
        removed = securitygroups.former(group, zones, self.item(VPC, vpc_id))
        for operation, rules in (*added, *removed):
            self.cloud.request(operation, GroupId=id, IpPermissions=rules)
