"""The resources in an account of the types that this extension creates, for rehearsals.

Read as administrator, without AWS's defaults. A resource without tags gets those that
`ExternalResource` records of this extension use, or could use, for a search.
"""

from collections.abc import Iterator

from actuator import ExternalResource, Raw
from extensions.aws import iam, tags
from extensions.aws.bucket import BUCKET, Bucket, objects_under
from extensions.aws.cloud import GLOBAL, Cloud
from extensions.aws.ec2 import TYPES, VPC, describe
from extensions.aws.records import RECORD_SET, comment_name, record_set_id
from extensions.aws.simulator import SimulatedAccount

_OF_THE_ZONE = frozenset({"NS", "SOA"})


def everything(account: SimulatedAccount, region: str) -> Iterator[ExternalResource]:
    """Yield all resources: EC2 and S3 in one region, IAM and Route 53 globally."""
    ec2 = account.service("ec2", region)
    s3 = account.service("s3", region)
    for type in TYPES:
        for item in describe(ec2, type, []):
            if not _is_of_aws(item):
                id = item[type.id_key]
                own = tags.as_dict(item)
                yield ExternalResource(type=type.name, id=id, tags=own, region=region)
    for type, listing in zip(iam.TYPES, ("list_roles", "list_instance_profiles"), strict=True):
        for item in account.service("iam", region).items(listing, f"{type.answer_key}s"):
            id = item[type.id_key]
            for described in iam.look(ec2, type, id):
                own = tags.as_dict(described)
                yield ExternalResource(type=type.name, id=id, tags=own, region=region)
    for name in (str(bucket["Name"]) for bucket in s3.items("list_buckets", "Buckets")):
        own = Bucket(s3, name).tags() or tags.bucket_mark(name)  # it will get its tag next
        yield ExternalResource(type=BUCKET, id=name, tags=own, region=region)
        folders = s3.items("list_objects_v2", "CommonPrefixes", Bucket=name, Delimiter="/")
        for folder in folders:
            yield objects_under(name, folder["Prefix"], region)
    yield from _in_route53(account.service("route53", GLOBAL), region)


def vpcs(ec2: Cloud) -> list[Raw]:
    """Return all VPCs except the default one."""
    return [vpc for vpc in describe(ec2, VPC, []) if not _is_of_aws(vpc)]


def _is_of_aws(one: Raw) -> bool:
    """Whether AWS created the resource by itself."""
    is_default = one.get("IsDefault") or one.get("DefaultForAz")
    is_main = any(item.get("Main") for item in one.get("Associations") or ())
    return bool(is_default) or is_main or one.get("GroupName") == "default"


def _in_route53(route53: Cloud, region: str) -> Iterator[ExternalResource]:
    listing = "list_resource_record_sets"
    for zone in route53.items("list_hosted_zones", "HostedZones"):
        zone_id = zone["Id"].rpartition("/")[2]
        values = {
            (record["Name"].removesuffix("."), record["Type"]): record["ResourceRecords"]
            for record in route53.items(listing, "ResourceRecordSets", HostedZoneId=zone_id)
            if record["Type"] not in _OF_THE_ZONE
        }
        for (name, type), own in values.items():
            whose = _whose(values.get((comment_name(name), "TXT"), own))
            id = record_set_id(zone_id, name, type)
            found = {"name": name, "type": type, **whose}
            yield ExternalResource(type=RECORD_SET, id=id, tags=found, region=region)


def _whose(comment: list[Raw]) -> dict[str, str]:
    """Return the owner in the comment of a record."""
    key, found, owner = comment[0]["Value"].strip('"').partition("=")
    return {key: owner} if found else {}
