"""S3 buckets, and the objects under a prefix of one: look up, create, empty, delete.

S3 sets a bucket's tags in a separate request after its creation. A bucket without tags may thus be
the extension's, created just before a crash. A caller that knows from its status that it requested
the bucket (`backupbucket`) may tag it while it is empty.

Kubernetes does not belong here.
"""

from enum import Enum

import attrs

from actuator import ExternalResource, Raw
from extensions.aws.cloud import GLOBAL, Cloud
from extensions.aws.errors import CloudError
from extensions.aws.tags import Mark, as_dict, as_list, bucket_mark

BUCKET = "AWS::S3::Bucket"
"""Resource type as AWS CloudFormation names it."""

OBJECTS = "AWS::S3::Object"
"""The objects under one prefix, as one resource; AWS CloudFormation has no type for them."""

_AT_ONCE = 1000
"""Maximum number of objects that S3 lists, or deletes, in one request."""


def objects_under(bucket: str, prefix: str, region: str) -> ExternalResource:
    """Return the objects under a prefix as one resource."""
    found = {"bucket": bucket, "prefix": prefix}
    return ExternalResource(type=OBJECTS, id=f"{bucket}/{prefix}", tags=found, region=region)


class BucketState(Enum):
    """The state of a bucket name."""

    NOTHING = "nothing"
    OURS = "a bucket with our mark"
    UNMARKED = "a bucket without tags"
    FOREIGN = "a bucket of another owner"


@attrs.frozen
class Bucket:
    """The bucket `name` in S3, in the region of `cloud`."""

    cloud: Cloud
    name: str
    region: str = ""

    def tags(self) -> dict[str, str]:
        """Return the tags: none after the creation. Raises CloudError."""
        try:
            answer = self.cloud.request("get_bucket_tagging", Bucket=self.name)
        except CloudError as error:
            if error.code == "NoSuchTagSet":
                return {}
            raise
        return as_dict({"Tags": answer["TagSet"]})

    def look(self) -> BucketState:
        """Return the current state. Raises CloudError, also for another account's bucket."""
        try:
            found = self.tags()
        except CloudError as error:
            if error.is_not_found:
                return BucketState.NOTHING
            raise
        if not found:
            return BucketState.UNMARKED
        return BucketState.OURS if self._mark.items() <= found.items() else BucketState.FOREIGN

    def create(self) -> None:
        """Create the bucket, without a tag."""
        where: Raw = {}
        if self.region != GLOBAL:  # S3 rejects this constraint (API reference, "CreateBucket")
            where["CreateBucketConfiguration"] = {"LocationConstraint": self.region}
        self.cloud.request("create_bucket", Bucket=self.name, **where)

    def mark(self) -> None:
        """Set the extension's tag, and remove all others."""
        tagging = {"TagSet": as_list(self._mark)}
        self.cloud.request("put_bucket_tagging", Bucket=self.name, Tagging=tagging)

    def is_empty(self, prefix: str = "") -> bool:
        """Whether the bucket, or the prefix, contains no object and no old version."""
        return not self._versions(prefix, at_most=1)

    def delete(self) -> None:
        """Delete the bucket and its objects; an already deleted bucket is success."""
        self.delete_objects("")
        self.cloud.remove("delete_bucket", Bucket=self.name)

    def delete_objects(self, prefix: str) -> None:
        """Delete all objects and old versions under the prefix; a missing bucket is success."""
        try:
            while found := self._versions(prefix, at_most=_AT_ONCE):
                self._delete(found)
        except CloudError as error:
            if not error.is_not_found:
                raise

    @property
    def _mark(self) -> Mark:
        return bucket_mark(self.name)

    def _versions(self, prefix: str, at_most: int) -> list[Raw]:
        which = {"Bucket": self.name, "Prefix": prefix, "MaxKeys": at_most}
        page = self.cloud.request("list_object_versions", **which)
        return [
            {"Key": version["Key"], "VersionId": version["VersionId"]}
            for kind in ("Versions", "DeleteMarkers")
            for version in page.get(kind) or ()
        ]

    def _delete(self, versions: list[Raw]) -> None:
        wanted = {"Objects": versions, "Quiet": True}
        answer = self.cloud.request("delete_objects", Bucket=self.name, Delete=wanted)
        for error in answer.get("Errors") or ():
            raise CloudError("delete_objects", error.get("Code", "Unknown"), error["Key"])
