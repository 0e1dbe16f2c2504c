"""The resources in an account of the types that this extension creates, for rehearsals.

Read as administrator, without AWS's defaults. A resource without tags gets those that
`ExternalResource` records of this extension use, or could use, for a search.
"""

from collections.abc import Iterator

from actuator import ExternalResource
from actuator.meta import Raw
from extensions.aws import tags
from extensions.aws.bucket import BUCKET, OBJECTS, objects_id
from extensions.aws.cloud import GLOBAL, Cloud
from extensions.aws.ec2 import TYPES, VPC, describe
from extensions.aws.errors import CloudError
from extensions.aws.records import RECORD_SET, comment_name, record_set_id
from extensions.aws.simulator import Account

_OF_THE_ZONE = frozenset({"NS", "SOA"})


def everything(account: Account, region: str) -> Iterator[ExternalResource]:
    """Yield all resources: EC2 and S3 in one region, Route 53 globally."""
    ec2 = account.ec2(region)
    for type in TYPES:
        for one in describe(ec2, type, []):
            if not _is_of_aws(one):
                yield ExternalResource(
                    type=type.name, id=one[type.id_key], tags=tags.as_dict(one), region=region
                )
    yield from _in_s3(account.service("s3", region), region)
    yield from _in_route53(account.service("route53", GLOBAL), region)


def vpcs(ec2: Cloud) -> list[Raw]:
    """Return all VPCs except the default one."""
    return [vpc for vpc in describe(ec2, VPC, []) if not _is_of_aws(vpc)]


def _is_of_aws(one: Raw) -> bool:
    """Whether AWS created the resource by itself."""
    is_default = one.get("IsDefault") or one.get("DefaultForAz")
    return bool(is_default) or one.get("GroupName") == "default"


def _in_s3(s3: Cloud, region: str) -> Iterator[ExternalResource]:
    for bucket in s3.request("list_buckets")["Buckets"]:
        name = str(bucket["Name"])
        yield ExternalResource(type=BUCKET, id=name, tags=_bucket_tags(s3, name), region=region)
        answer = s3.request("list_objects_v2", Bucket=name, Delimiter="/")
        for one in answer.get("CommonPrefixes") or ():
            yield ExternalResource(
                type=OBJECTS,
                id=objects_id(name, one["Prefix"]),
                tags={"bucket": name, "prefix": one["Prefix"]},
                region=region,
            )


def _bucket_tags(s3: Cloud, name: str) -> dict[str, str]:
    """Return a bucket's tags; a bucket without tags was just created and will get its tag next."""
    try:
        tagging = s3.request("get_bucket_tagging", Bucket=name)
    except CloudError as error:
        if error.code == "NoSuchTagSet":
            return dict(tags.bucket_mark(name))
        raise
    return dict(tags.as_dict({"Tags": tagging["TagSet"]}))


def _in_route53(route53: Cloud, region: str) -> Iterator[ExternalResource]:
    for zone in route53.request("list_hosted_zones")["HostedZones"]:
        zone_id = zone["Id"].rpartition("/")[2]
        answer = route53.request("list_resource_record_sets", HostedZoneId=zone_id)
        values = {
            (record["Name"].removesuffix("."), record["Type"]): record["ResourceRecords"]
            for record in answer["ResourceRecordSets"]
            if record["Type"] not in _OF_THE_ZONE
        }
        for (name, type), own in values.items():
            comment = values.get((comment_name(name), "TXT"), own)
            yield ExternalResource(
                type=RECORD_SET,
                id=record_set_id(zone_id, name, type),
                tags={"name": name, "type": type, **_whose(comment)},
                region=region,
            )


def _whose(comment: list[Raw]) -> dict[str, str]:
    """Return the owner in the comment of a record."""
    key, found, owner = comment[0]["Value"].strip('"').partition("=")
    return {key: owner} if found else {}
