"""Whether what a force deletion left behind still exists: a table, resource type by resource type.

For `actuator orphans verify`. Asks with the credentials of whoever runs it, as boto3 finds them:
the shoot's are gone by then. They have to be of the shoot's account: in another one nothing of it
is there. A type that is not in the table, a thing without id and tags, and one of which nobody
knows the region: nobody can say.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from actuator import ExternalResource
from actuator.meta import Raw
from extensions.aws import records, tags
from extensions.aws.bucket import BUCKET, OBJECTS, Bucket, Found
from extensions.aws.cloud import GLOBAL, Cloud, Clouds, Service
from extensions.aws.errors import CloudError
from extensions.aws.host import ALIVE, INSTANCE
from extensions.aws.network import ELASTIC_IP, SECURITY_GROUP, SUBNET, VPC
from extensions.aws.records import RECORD_SET

Look = Callable[[Cloud, ExternalResource], bool | None]


def still_exists(clouds: Clouds, resource: ExternalResource) -> bool | None:
    """Whether it is there; None where nobody can say. Raises ActuatorError."""
    found = _LOOKS.get(resource.type)
    if found is None or not (resource.id or resource.tags):
        return None
    service, look = found
    region = GLOBAL if service == "route53" else resource.region
    if not region:
        return None
    cloud = clouds.open(None, region, lambda: None, service)  # no call takes a command's place
    try:
        return look(cloud, resource)
    except CloudError as error:
        if error.is_not_found:
            return False
        raise


def _described(operation: str, answer_key: str, id_filter: str, *more: Raw) -> tuple[Service, Look]:
    """What EC2 describes. By a filter, since asking for an unknown id is an error."""

    def look(cloud: Cloud, resource: ExternalResource) -> bool:
        by_id: list[Raw] = [{"Name": id_filter, "Values": [resource.id]}]
        wanted = by_id if resource.id else tags.filters(resource.tags)
        return bool(cloud.describe(operation, answer_key, [*wanted, *more]))

    return "ec2", look


def _bucket(cloud: Cloud, resource: ExternalResource) -> bool | None:
    """A bucket of that name with other tags may be ours, or made later by somebody else."""
    found = Bucket(cloud, resource.id).look()
    return None if found is Found.FOREIGN else found is not Found.NOTHING


def _objects(cloud: Cloud, resource: ExternalResource) -> bool:
    bucket, _, prefix = resource.id.partition("/")
    return not Bucket(cloud, bucket).is_empty(prefix)


def _record_set(cloud: Cloud, resource: ExternalResource) -> bool:
    return records.exists(cloud, resource.id)


_LOOKS: Mapping[str, tuple[Service, Look]] = {
    VPC: _described("describe_vpcs", "Vpcs", "vpc-id"),
    SUBNET: _described("describe_subnets", "Subnets", "subnet-id"),
    SECURITY_GROUP: _described("describe_security_groups", "SecurityGroups", "group-id"),
    ELASTIC_IP: _described("describe_addresses", "Addresses", "allocation-id"),
    INSTANCE: _described("describe_instances", "Reservations", "instance-id", ALIVE),
    BUCKET: ("s3", _bucket),
    OBJECTS: ("s3", _objects),
    RECORD_SET: ("route53", _record_set),
}
