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
from extensions.aws.errors import CloudError
from extensions.aws.host import INSTANCE
from extensions.aws.network import ELASTIC_IP, SECURITY_GROUP, SUBNET, VPC
from extensions.aws.records import RECORD_SET, comment_name, record_set_id
from extensions.aws.simulator import Account

_OF_THE_ZONE = frozenset({"NS", "SOA"})


def everything(account: Account, region: str) -> Iterator[ExternalResource]:
    """Yield all resources: EC2 and S3 in one region, Route 53 globally."""
    for type, id_key, things in _in_ec2(account.ec2(region)):
        for thing in things:
            yield ExternalResource(
                type=type, id=str(thing[id_key]), tags=tags.as_dict(thing), region=region
            )
    yield from _in_s3(account.service("s3", region), region)
    yield from _in_route53(account.service("route53", GLOBAL), region)


def vpcs(ec2: Cloud) -> list[Raw]:
    """Return all VPCs except the default one."""
    not_default: list[Raw] = [{"Name": "is-default", "Values": ["false"]}]
    return ec2.describe("describe_vpcs", "Vpcs", not_default)


def _in_ec2(ec2: Cloud) -> Iterator[tuple[str, str, list[Raw]]]:
    yield VPC, "VpcId", vpcs(ec2)
    subnets = ec2.describe("describe_subnets", "Subnets", [])
    yield SUBNET, "SubnetId", [subnet for subnet in subnets if not subnet["DefaultForAz"]]
    groups = ec2.describe("describe_security_groups", "SecurityGroups", [])
    own = [group for group in groups if group["GroupName"] != "default"]
    yield SECURITY_GROUP, "GroupId", own
    yield ELASTIC_IP, "AllocationId", ec2.describe("describe_addresses", "Addresses", [])
    found = ec2.describe("describe_instances", "Reservations", [])
    instances = [one for reservation in found for one in reservation["Instances"]]
    alive = [one for one in instances if one["State"]["Name"] != "terminated"]
    yield INSTANCE, "InstanceId", alive


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
