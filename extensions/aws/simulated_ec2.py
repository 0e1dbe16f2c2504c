"""Correct how moto keeps the resources of a VPC, for `simulator`.

- moto ignores tags of new DHCP options, and filters of NAT gateways by tags.
- moto deletes the DHCP options of a deleted VPC; in AWS they stay (Amazon VPC user guide, "Work
  with DHCP option sets").
- moto keeps the route table associations of a deleted subnet, and the association of an address
  with a deleted NAT gateway; AWS deletes them.
- moto deletes a NAT gateway again; AWS does not find it.
- AWS refuses to delete what a NAT gateway uses, its address and its subnet, and a VPC with security
  groups or with an internet gateway (Amazon VPC user guide, "Delete your VPC"); moto does not.
"""

from typing import Any

from moto.ec2.exceptions import DependencyViolationError, EC2ClientError
from moto.ec2.models import EC2Backend
from moto.ec2.responses.dhcp_options import DHCPOptions
from moto.ec2.utils import add_tag_specification, generic_filter

_MOTO: Any = EC2Backend
_ANSWERS: Any = DHCPOptions
_create_options = _ANSWERS.create_dhcp_options
_describe_nat_gateways = _MOTO.describe_nat_gateways
_delete_nat_gateway = _MOTO.delete_nat_gateway
_delete_subnet = _MOTO.delete_subnet
_delete_vpc = _MOTO.delete_vpc
_release_address = _MOTO.release_address


class _TaggedOptions(DHCPOptions):
    def create_dhcp_options(self) -> Any:
        answer = _create_options(self)
        given = add_tag_specification(self._get_param("TagSpecifications", []))
        answer.result["DhcpOptions"].add_tags(given)
        return answer


def _describe_filtered(backend: Any, filters: Any, ids: Any) -> Any:
    by_tag = {name: wanted for name, wanted in (filters or {}).items() if name.startswith("tag:")}
    return generic_filter(by_tag, _describe_nat_gateways(backend, filters, ids))


def _nat_gateways(backend: Any) -> list[Any]:
    return [gateway for gateway in backend.nat_gateways.values() if gateway.state != "deleted"]


def _delete_associated_nat_gateway(backend: Any, nat_gateway_id: str) -> Any:
    if nat_gateway_id not in [gateway.id for gateway in _nat_gateways(backend)]:
        raise EC2ClientError("NatGatewayNotFound", f"There is no NAT gateway {nat_gateway_id}")
    for item in backend.nat_gateways[nat_gateway_id].address_set:
        for address in backend.describe_addresses([item["allocationId"]]):
            if address.association_id:
                backend.disassociate_address(association_id=address.association_id)
    return _delete_nat_gateway(backend, nat_gateway_id)


def _delete_free_subnet(backend: Any, subnet_id: str) -> Any:
    if any(gateway.subnet_id == subnet_id for gateway in _nat_gateways(backend)):
        raise DependencyViolationError(f"The subnet {subnet_id} has a NAT gateway.")
    for table in backend.route_tables.values():
        for association in table.associations:
            if association.get("SubnetId") == subnet_id:
                backend.disassociate_route_table(association["RouteTableAssociationId"])
    return _delete_subnet(backend, subnet_id)


def _release_free_address(
    backend: Any, address: str | None = None, allocation_id: str | None = None
) -> None:
    for gateway in _nat_gateways(backend):
        if allocation_id in [item.get("allocationId") for item in gateway.address_set]:
            raise EC2ClientError("InvalidIPAddress.InUse", f"{gateway.id} uses the address")
    _release_address(backend, address, allocation_id)


def _delete_free_vpc(backend: Any, vpc_id: str) -> Any:
    gateways = [item for item in backend.internet_gateways.values() if item.vpc]
    if any(item.vpc.id == vpc_id for item in gateways) or len(backend.groups[vpc_id]) > 1:
        raise DependencyViolationError(f"The vpc {vpc_id} has dependencies and cannot be deleted.")
    vpc = backend.vpcs.get(vpc_id)
    options = vpc and vpc.dhcp_options
    try:
        if options:
            vpc.dhcp_options = options.vpc = None
        return _delete_vpc(backend, vpc_id)
    except BaseException:
        if options:
            backend.associate_dhcp_options(options, vpc)
        raise


def correct() -> None:
    """Keep the resources of a VPC like AWS from now on, in this process."""
    _ANSWERS.create_dhcp_options = _TaggedOptions.create_dhcp_options
    _MOTO.describe_nat_gateways = _describe_filtered
    _MOTO.delete_nat_gateway = _delete_associated_nat_gateway
    _MOTO.delete_subnet = _delete_free_subnet
    _MOTO.delete_vpc = _delete_free_vpc
    _MOTO.release_address = _release_free_address
