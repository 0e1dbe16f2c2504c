"""Whether an orphaned resource still exists, by resource type; for `actuator orphans verify`.

The requests use the credentials of the user who runs the command, as botocore finds them: the
shoot's no longer exist. They must belong to the shoot's account; another one has none of its
resources. The result is unknown for a type outside the table, a resource without id and tags, and
an unknown region.
"""

from collections.abc import Callable, Mapping
from functools import partial

from actuator import ExternalResource
from extensions.aws import iam, records, tags
from extensions.aws.bucket import BUCKET, OBJECTS, Bucket, BucketState
from extensions.aws.cloud import GLOBAL, Cloud, Clouds, Service
from extensions.aws.ec2 import TYPES, ResourceType, describe
from extensions.aws.errors import CloudError
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


def _described(type: ResourceType, cloud: Cloud, resource: ExternalResource) -> bool:
    wanted = [type.with_id(resource.id)] if resource.id else tags.filters(resource.tags)
    return bool(describe(cloud, type, wanted))


def _named(type: ResourceType, cloud: Cloud, resource: ExternalResource) -> bool:
    name = resource.id or resource.tags.get(tags.NAME, "")
    return bool(name and iam.look(cloud, type, name))


def _bucket(cloud: Cloud, resource: ExternalResource) -> bool | None:
    """Return None for a bucket with other tags: the extension's, or created later by others."""
    found = Bucket(cloud, resource.id).look()
    return None if found is BucketState.FOREIGN else found is not BucketState.NOTHING


def _objects(cloud: Cloud, resource: ExternalResource) -> bool:
    bucket, _, prefix = resource.id.partition("/")
    return not Bucket(cloud, bucket).is_empty(prefix)


_LOOKS: Mapping[str, tuple[Service, Look]] = {
    **{type.name: ("ec2", partial(_described, type)) for type in TYPES},
    **{type.name: ("iam", partial(_named, type)) for type in iam.TYPES},
    BUCKET: ("s3", _bucket),
    OBJECTS: ("s3", _objects),
    RECORD_SET: ("route53", lambda cloud, resource: records.exists(cloud, resource.id)),
}
