"""Whether an orphaned resource still exists, by resource type; for `actuator orphans verify`.

The requests use the credentials of the user who runs the command, as botocore finds them: the
shoot's no longer exist. They must belong to the shoot's account; another one has none of its
resources. The result is unknown for a type outside the table, a resource without id and tags, and
an unknown region.
"""

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
    """Return whether the resource exists; None if that is unknown. Raises ActuatorError."""
    found = _LOOKS.get(resource.type)
    if found is None or not (resource.id or resource.tags):
        return None
    service, look = found
    region = GLOBAL if service == "route53" else resource.region
    if not region:
        return None
    cloud = clouds.open(None, region, lambda: None, service)  # a command cannot be abandoned
    try:
        return look(cloud, resource)
    except CloudError as error:
        if error.is_not_found:
            return False
        raise


def _described(operation: str, answer_key: str, id_filter: str, *more: Raw) -> tuple[Service, Look]:
    """Look up EC2 resources by a filter, since a request with an unknown id is an error."""

    def look(cloud: Cloud, resource: ExternalResource) -> bool:
        by_id: list[Raw] = [{"Name": id_filter, "Values": [resource.id]}]
        wanted = by_id if resource.id else tags.filters(resource.tags)
        return bool(cloud.describe(operation, answer_key, [*wanted, *more]))

    return "ec2", look


def _bucket(cloud: Cloud, resource: ExternalResource) -> bool | None:
    """Return None for a bucket with other tags: the extension's, or created later by others."""
    found = Bucket(cloud, resource.id).look()
    return None if found is Found.FOREIGN else found is not Found.NOTHING


def _objects(cloud: Cloud, resource: ExternalResource) -> bool:
    bucket, _, prefix = resource.id.partition("/")
    return not Bucket(cloud, bucket).is_empty(prefix)


_LOOKS: Mapping[str, tuple[Service, Look]] = {
    VPC: _described("describe_vpcs", "Vpcs", "vpc-id"),
    SUBNET: _described("describe_subnets", "Subnets", "subnet-id"),
    SECURITY_GROUP: _described("describe_security_groups", "SecurityGroups", "group-id"),
    ELASTIC_IP: _described("describe_addresses", "Addresses", "allocation-id"),
    INSTANCE: _described("describe_instances", "Reservations", "instance-id", ALIVE),
    BUCKET: ("s3", _bucket),
    OBJECTS: ("s3", _objects),
    RECORD_SET: ("route53", lambda cloud, resource: records.exists(cloud, resource.id)),
}
