"""The network of one shoot in the cloud, as the tasks of a flow.

All resources are found by tag, so any step may be repeated after any crash. AWS's responses lag
behind its writes (Amazon EC2 API reference, "Eventual consistency"): a repetition within that time
may create a resource twice. The next lookup then reports both instead of choosing one.

An existing VPC, its internet gateway, and existing addresses have another owner: they are neither
changed nor deleted. Kubernetes does not belong here; see `infrastructure`.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import attrs

from actuator import ActuatorError, ConfigurationError, ErrorCode, Raw, RequeueAfter
from extensions.aws import iam, parts, securitygroups, tags
from extensions.aws.cloud import Cloud
from extensions.aws.config import InfrastructureConfig, Networks, VpcConfig, Zone
from extensions.aws.ec2 import (
    ELASTIC_IP,
    INTERNET_GATEWAY,
    NAT_GATEWAY,
    ROUTE_TABLE,
    SECURITY_GROUP,
    SUBNET,
    VPC,
    Marked,
    ResourceType,
    create_tagged,
    describe,
)
from extensions.aws.parts import (
    ADDRESS,
    GATEWAY,
    INTERNAL,
    KEY,
    NAT,
    NETWORK,
    NODE_PROFILE,
    NODE_ROLE,
    NODES,
    OPTIONS,
    PUBLIC,
    PUBLIC_ROUTES,
    ROUTES,
    WORKERS,
    in_zone,
)
from extensions.aws.securitygroups import EVERYWHERE
from generic.library import ExternalType, Ids, Task

_FIELDS = {PUBLIC: "public", WORKERS: "workers", INTERNAL: "internal"}
"""The field of a zone in the providerConfig, by part."""

_DNS = ("EnableDnsSupport", "EnableDnsHostnames")
"""Attributes of a VPC that nodes need; the second one needs the first one."""

_LOOK_AGAIN = 10.0
"""Seconds until the next look at a NAT gateway, which takes minutes."""


@attrs.frozen
class ShootNetwork:
    """The network of the shoot `technical_id`, in one call of the actuator."""

    cloud: Cloud
    technical_id: str
    _found: dict[str, list[Raw]] = attrs.field(factory=dict)
    """The resources of each type, as AWS described them when they were first looked for, and the
    created ones, as AWS answered."""

    def types(self) -> Iterator[ExternalType]:
        """Yield the types of resources."""
        for type in parts.TYPES:
            find = partial(self._find, type)
            yield ExternalType(name=type.name, find=find, delete=partial(self._delete, type))

    def tasks(
        self, config: InfrastructureConfig, region: str, ssh_key: bytes = b""
    ) -> Iterator[Task]:
        """Yield the tasks for the configured network; machines get the public key, if any."""
        networks = config.networks
        yield from self._of_vpc(networks.vpc, region)
        yield self._task(
            PUBLIC_ROUTES,
            create=self._creates(PUBLIC_ROUTES, "create_route_table", VpcId=NETWORK),
            update=lambda known, ids: self._route(known, GatewayId=ids[GATEWAY]),
        )
        text = {"GroupName": self._full_name(NODES), "Description": "Security group for nodes"}
        yield self._task(
            NODES,
            create=self._creates(NODES, "create_security_group", text, VpcId=NETWORK),
            update=lambda known, ids: self._set_rules(known, networks.zones, ids[NETWORK]),
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
            gateway = self._item(NAT_GATEWAY, ids[in_zone(zone.name, NAT)])
            if gateway["State"] != "available":
                raise _waiting(gateway)
            self._route(ids[in_zone(zone.name, ROUTES)], NatGatewayId=gateway["NatGatewayId"])
            addresses += [item["PublicIp"] for item in gateway["NatGatewayAddresses"]]
        return addresses

    def role_arn(self, name: str) -> str:
        """Return the ARN of the role."""
        return str(self._item(iam.ROLE, name)["Arn"])

    def range_of(self, vpc_id: str) -> str:
        """Return the range of the VPC."""
        return str(self._item(VPC, vpc_id)["CidrBlock"])

    def _of_vpc(self, vpc: VpcConfig, region: str) -> Iterator[Task]:
        domain = "ec2.internal" if region == "us-east-1" else f"{region}.compute.internal"
        options = {
            "DhcpConfigurations": [  # Amazon Route 53 developer guide, "Resolver", predefined names
                {"Key": "domain-name", "Values": [domain]},
                {"Key": "domain-name-servers", "Values": ["AmazonProvidedDNS"]},
            ]
        }
        create = self._creates(OPTIONS, "create_dhcp_options", options)
        yield self._task(OPTIONS, create=create, when=not vpc.id)
        if vpc.id:
            yield self._task(NETWORK, existing=lambda _ids: self._existing_vpc(vpc.id))
            yield self._task(GATEWAY, existing=lambda ids: self._gateway_of(ids[NETWORK]))
            return
        yield self._task(
            NETWORK,
            create=self._creates(NETWORK, "create_vpc", {"CidrBlock": vpc.cidr}),
            update=lambda known, ids: self._update_vpc(known, str(vpc.cidr), ids[OPTIONS]),
        )
        yield self._task(
            GATEWAY,
            create=self._creates(GATEWAY, "create_internet_gateway", {}),
            update=lambda known, ids: self._attach(known, ids[NETWORK]),
        )

    def _of_nodes(self, registry: bool, ssh_key: bytes) -> Iterator[Task]:
        role = {"RoleName": self._full_name(NODE_ROLE), "AssumeRolePolicyDocument": iam.TRUST}
        policy = iam.node_policy(registry)
        yield self._task(
            NODE_ROLE,
            create=self._creates(NODE_ROLE, "create_role", role),
            update=lambda known, _ids: iam.ensure_policy(self.cloud, known, policy),
        )
        profile = {"InstanceProfileName": self._full_name(NODE_PROFILE)}
        yield self._task(
            NODE_PROFILE,
            create=self._creates(NODE_PROFILE, "create_instance_profile", profile),
            update=lambda known, ids: iam.ensure_role(
                self.cloud, self._item(iam.INSTANCE_PROFILE, known), ids[NODE_ROLE]
            ),
        )
        key = {"KeyName": self._full_name(KEY), "PublicKeyMaterial": ssh_key}
        yield self._task(
            KEY,
            create=self._creates(KEY, "import_key_pair", key),
            replace=lambda known, _ids: self._has_other_key(known, ssh_key),
            when=bool(ssh_key),
        )

    def _of_zone(self, zone: Zone, path: str) -> Iterator[Task]:
        routes, address, nat = (in_zone(zone.name, key) for key in (ROUTES, ADDRESS, NAT))
        yield self._task(routes, create=self._creates(routes, "create_route_table", VpcId=NETWORK))
        for key, field in _FIELDS.items():
            table = PUBLIC_ROUTES if key == PUBLIC else routes
            yield self._subnet(zone, in_zone(zone.name, key), field, path, table)
        if own := zone.elastic_ip_allocation_id:
            wanted = [ELASTIC_IP.with_id(own)]
            yield self._task(address, existing=lambda _ids: self._first(ELASTIC_IP, wanted))
        else:
            create = self._creates(address, "allocate_address", {"Domain": "vpc"})
            yield self._task(address, create=create)
        subnet = in_zone(zone.name, PUBLIC)
        yield self._task(
            nat,
            create=self._creates(nat, "create_nat_gateway", SubnetId=subnet, AllocationId=address),
            replace=lambda known, ids: self._has_failed(known, ids[address]),
        )

    def _subnet(self, zone: Zone, name: str, field: str, path: str, table: str) -> Task:
        cidr = zone.ranges()[field]
        place = {"CidrBlock": cidr, "AvailabilityZone": zone.name}

        def update(known: str, ids: Ids) -> None:
            self._check(SUBNET, known, cidr, f"{path}.{field}")
            self._associate(known, ids[table])

        create = self._creates(name, "create_subnet", place, VpcId=NETWORK)
        return self._task(name, create=create, update=update)

    def _task(self, name: str, **rest: Any) -> Task:
        part = parts.part(name)
        return Task(name=name, type=part.type.name, needs=part.needs, **rest)

    def _full_name(self, name: str) -> str:
        return parts.full_name(self.technical_id, name)

    def _described(self, type: ResourceType) -> list[Raw]:
        if type.name not in self._found and type.service == "iam":
            name = self._full_name(NODE_ROLE)
            self._found[type.name] = iam.look(self.cloud, type, name)
        elif type.name not in self._found:
            marked = Marked(self.cloud, tags.mark(self.technical_id))
            self._found[type.name] = marked.find(type)
        return self._found[type.name]

    def _item(self, type: ResourceType, id: str) -> Raw:
        return next((item for item in self._described(type) if item[type.id_key] == id), {})

    def _first(self, type: ResourceType, filters: list[Raw]) -> str:
        """Return the id of a resource of another owner, or ""."""
        found = describe(self.cloud, type, filters)
        self._described(type).extend(found[:1])
        return type.ids(found)[0] if found else ""

    def _find(self, type: ResourceType, name: str, ids: Ids) -> list[str]:
        """Return the ids of the part: by its tag, or by its known id, which Go tags otherwise.

        Raises ActuatorError if the known resource lost its tag: it would never be found again.
        """
        full_name = self._full_name(name)
        known = ids.get(name, "")
        found = [
            item
            for item in self._described(type)
            if tags.as_dict(item).get(tags.NAME) == full_name or item[type.id_key] == known
        ]
        by_id = type.service == "ec2"  # those of IAM were looked for by name
        if by_id and known and not found and describe(self.cloud, type, [type.with_id(known)]):
            mark = tags.text(tags.mark(self.technical_id))
            raise ActuatorError(
                f"{type.name} {known} has lost its tag {mark}; put it back",
                codes=[ErrorCode.ERR_INFRA_DEPENDENCIES],
            )
        return type.ids(found)

    def _creates(
        self, name: str, operation: str, given: Raw | None = None, **of: str
    ) -> Callable[[Ids], str]:
        """Return a function that requests the resource of a part, with its tags.

        `of` are parameters of the request that are the ids of other parts, by their names.
        """
        part = parts.part(name)
        labels = parts.part_tags(self.technical_id, name)

        def create(ids: Ids) -> str:
            others = {parameter: ids[other] for parameter, other in of.items()}
            answer = create_tagged(
                self.cloud, operation, part.type, labels, **(given or {}), **others
            )
            id_key = part.type.id_key
            kind = id_key.removesuffix("Id").removesuffix("Name")
            described = answer if id_key in answer else answer[kind]
            self._described(part.type).append(described)
            return str(described[id_key])

        return create

    def _delete(self, type: ResourceType, id: str, _ids: Ids) -> None:
        item = self._item(type, id)
        iam.empty(self.cloud, type, item)
        if type is INTERNET_GATEWAY:
            for attachment in item.get("Attachments") or ():
                ids = {type.id_key: id, "VpcId": attachment["VpcId"]}
                self.cloud.remove("detach_internet_gateway", **ids)
        if item.get("State") != "deleting":
            self.cloud.service(type.service).remove(type.delete, **{type.id_key: id})
        if type is NAT_GATEWAY:
            for gateway in describe(self.cloud, type, [type.with_id(id)]):
                raise _waiting(gateway)

    def _existing_vpc(self, id: str) -> str:
        """Return the id, or "" if there is none. Raises ConfigurationError for wrong attributes."""
        found = self._first(VPC, [VPC.with_id(id)])
        if found and (off := self._dns_off(id)):
            raise ConfigurationError(
                f"spec.providerConfig.networks.vpc.id: {' and '.join(off)} of {id} must be true, "
                "for the names of nodes; set it in AWS"
            )
        return found

    def _gateway_of(self, vpc_id: str) -> str:
        return self._first(INTERNET_GATEWAY, [{"Name": "attachment.vpc-id", "Values": [vpc_id]}])

    def _update_vpc(self, id: str, cidr: str, options: str) -> None:
        self._check(VPC, id, cidr, "vpc.cidr")
        if self._item(VPC, id).get("DhcpOptionsId") != options:
            self.cloud.request("associate_dhcp_options", VpcId=id, DhcpOptionsId=options)
        for attribute in self._dns_off(id):
            self.cloud.request("modify_vpc_attribute", VpcId=id, **{attribute: {"Value": True}})
        wanted = [{"Name": "vpc-id", "Values": [id]}, {"Name": "group-name", "Values": ["default"]}]
        for group in describe(self.cloud, SECURITY_GROUP, wanted):
            for operation, rules in securitygroups.all_rules(group):
                self.cloud.request(operation, GroupId=group["GroupId"], IpPermissions=rules)

    def _dns_off(self, vpc_id: str) -> list[str]:
        """Return the attributes for DNS that the VPC lacks."""
        return [
            name
            for name in _DNS
            if not self.cloud.request(
                "describe_vpc_attribute", VpcId=vpc_id, Attribute=f"e{name[1:]}"
            )[name]["Value"]
        ]

    def _attach(self, gateway: str, vpc_id: str) -> None:
        if not self._item(INTERNET_GATEWAY, gateway).get("Attachments"):
            self.cloud.request("attach_internet_gateway", InternetGatewayId=gateway, VpcId=vpc_id)

    def _route(self, table: str, **target: str) -> None:
        """Send all traffic that leaves the VPC to the target."""
        routes = self._item(ROUTE_TABLE, table).get("Routes") or ()
        now = [route for route in routes if route.get("DestinationCidrBlock") == EVERYWHERE]
        if not any(target.items() <= route.items() for route in now):
            operation = "replace_route" if now else "create_route"
            place = {"RouteTableId": table, "DestinationCidrBlock": EVERYWHERE}
            self.cloud.request(operation, **place, **target)

    def _associate(self, subnet: str, table: str) -> None:
        associations = self._item(ROUTE_TABLE, table).get("Associations") or ()
        if subnet not in [association.get("SubnetId") for association in associations]:
            self.cloud.request("associate_route_table", RouteTableId=table, SubnetId=subnet)

    def _has_other_key(self, name: str, ssh_key: bytes) -> bool:
        """Whether the key pair has another key; AWS may change the comment after it."""
        wanted = {"KeyNames": [name], "IncludePublicKey": True}
        (pair,) = self.cloud.request("describe_key_pairs", **wanted)["KeyPairs"]
        return str(pair["PublicKey"]).split()[:2] != ssh_key.decode().split()[:2]

    def _has_failed(self, nat_gateway: str, address: str) -> bool:
        """Whether the NAT gateway cannot be used, or uses another address."""
        item = self._item(NAT_GATEWAY, nat_gateway)
        used = [used.get("AllocationId") for used in item["NatGatewayAddresses"]]
        return item["State"] in ("failed", "deleting") or address not in used

    def _check(self, type: ResourceType, id: str, cidr: str, field: str) -> None:
        """Refuse another range for an existing resource. Raises ConfigurationError."""
        there = self._item(type, id)["CidrBlock"]
        if there != cidr:
            raise ConfigurationError(
                f"spec.providerConfig.networks.{field}: {cidr} differs from {there} "
                f"of {id}; AWS cannot change it, so set {there} again"
            )

    def _set_rules(self, id: str, zones: list[Zone], vpc_id: str) -> None:
        group = self._item(SECURITY_GROUP, id)
        added = securitygroups.missing(group, zones)
        removed = securitygroups.former(group, zones, self._item(VPC, vpc_id))
        for operation, rules in (*added, *removed):
            self.cloud.request(operation, GroupId=id, IpPermissions=rules)


def _waiting(nat_gateway: Raw) -> RequeueAfter:
    """Return what to raise for a NAT gateway that is not ready, or not gone: that takes minutes."""
    text = f"Waiting for NAT gateway {nat_gateway['NatGatewayId']}, which is {nat_gateway['State']}"
    return RequeueAfter(_LOOK_AGAIN, text)
