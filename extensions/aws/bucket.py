"""A bucket in S3 and what is under a prefix of one: looked at, made, emptied, deleted.

S3 takes a bucket's tags in a request of their own, after the one that creates it. So a bucket
without any tag may be ours, made just before a crash; whoever knows that it was asked for
(`backupbucket` does, by its status) may mark it as long as it is empty.

Nothing in here knows Kubernetes.
"""

from __future__ import annotations

from enum import Enum

import attrs

from actuator.meta import Raw
from extensions.aws import tags
from extensions.aws.cloud import GLOBAL, Cloud
from extensions.aws.errors import CloudError

BUCKET = "AWS::S3::Bucket"
"""Resource type as AWS CloudFormation names it."""

OBJECTS = "AWS::S3::Object"
"""What is under one prefix, as one thing; AWS CloudFormation has no name for it."""

_AT_ONCE = 1000
"""So many objects S3 lists, and deletes, in one request."""


def objects_id(bucket: str, prefix: str) -> str:
    """The id of what is under a prefix."""
    return f"{bucket}/{prefix}"


class Found(Enum):
    """What is there under a bucket's name."""

    NOTHING = "nothing"
    OURS = "a bucket with our mark"
    UNMARKED = "a bucket without tags"
    FOREIGN = "a bucket of somebody else"


@attrs.frozen
class Bucket:
    """The bucket `name` in S3 of the region that `cloud` is open for."""

    cloud: Cloud
    name: str
    region: str = ""

    def look(self) -> Found:
        """What is there now. Raises CloudError, also for another account's bucket."""
        try:
            answer = self.cloud.request("get_bucket_tagging", Bucket=self.name)
        except CloudError as error:
            if error.code == "NoSuchTagSet":
                return Found.UNMARKED
            if error.is_not_found:
                return Found.NOTHING
            raise
        found = tags.as_dict({"Tags": answer["TagSet"]})
        return Found.OURS if self._mark.items() <= found.items() else Found.FOREIGN

    def create(self) -> None:
        """Afterwards there is a bucket, without a mark yet."""
        where: Raw = {}
        if self.region != GLOBAL:  # S3 refuses to hear it named (API reference, "CreateBucket")
            where["CreateBucketConfiguration"] = {"LocationConstraint": self.region}
        self.cloud.request("create_bucket", Bucket=self.name, **where)

    def mark(self) -> None:
        """Afterwards the bucket has our mark, and no other tag."""
        tagging = {"TagSet": tags.as_list(self._mark)}
        self.cloud.request("put_bucket_tagging", Bucket=self.name, Tagging=tagging)

    def is_empty(self, prefix: str = "") -> bool:
        """Whether nothing is in it, or under a prefix, no old version either."""
        return not self._versions(prefix, at_most=1)

    def delete(self) -> None:
        """Afterwards neither the bucket nor anything in it is there; gone already is success."""
        self.delete_objects("")
        self.cloud.remove("delete_bucket", Bucket=self.name)

    def delete_objects(self, prefix: str) -> None:
        """Afterwards nothing is under the prefix, no old version either; no bucket is success."""
        try:
            while found := self._versions(prefix, at_most=_AT_ONCE):
                self._delete(found)
        except CloudError as error:
            if not error.is_not_found:
                raise

    @property
    def _mark(self) -> tags.Mark:
        return tags.bucket_mark(self.name)

    def _versions(self, prefix: str, at_most: int) -> list[Raw]:
        page = self.cloud.request(
            "list_object_versions", Bucket=self.name, Prefix=prefix, MaxKeys=at_most
        )
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
