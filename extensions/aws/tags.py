"""The marks by which everything of ours is found again in the cloud, and never mixed up.

Things are tagged in the request that creates them, so nothing can exist without its mark, not
even after a crash (buckets aside, see `bucket`). What lacks the mark is not ours and is never
adopted. The value "1" is Gardener's; the shoot's own cloud-controller-manager marks what it makes
"owned". A bastion has a mark of its own: it is no part of the network, which has the shoot's.
"""

from __future__ import annotations

from collections.abc import Iterable

from actuator import ActuatorError, ErrorCode
from actuator.meta import Raw

NAME = "Name"
Mark = dict[str, str]
"""The tag that says whose a thing is."""


def mark(technical_id: str) -> Mark:
    """What belongs to a shoot."""
    return {f"kubernetes.io/cluster/{technical_id}": "1"}


def bastion_mark(technical_id: str, name: str) -> Mark:
    """What belongs to the Bastion `name` of a shoot."""
    return {f"bastion.extensions.gardener.cloud/{technical_id}": name}


def bucket_mark(name: str) -> Mark:
    """The bucket of the BackupBucket `name`."""
    return {"backupbucket.extensions.gardener.cloud/name": name}


def text(owner: Mark) -> str:
    """The mark as people write it."""
    return ", ".join(f"{key}={value}" for key, value in owner.items())


def specification(resource_type: str, owner: Mark, name: str) -> list[Raw]:
    """TagSpecifications for a request that creates something in EC2."""
    return [{"ResourceType": resource_type, "Tags": as_list({**owner, NAME: name})}]


def filters(owner: Mark) -> list[Raw]:
    """Filters that find what carries the mark in EC2."""
    return [{"Name": f"tag:{key}", "Values": [value]} for key, value in owner.items()]


def only(owner: Mark, what: str, id_key: str, found: list[Raw]) -> Raw | None:
    """The one thing of those that were found, or None. Raises ActuatorError where there are two."""
    if len(found) > 1:
        ids = ", ".join(sorted(str(thing[id_key]) for thing in found))
        raise ActuatorError(
            f"More than one {what} is tagged {text(owner)}: {ids}; "
            "find out which one is in use and remove the others",
            codes=[ErrorCode.ERR_INFRA_DEPENDENCIES],
        )
    return found[0] if found else None


def as_list(tags: dict[str, str]) -> list[Raw]:
    """Tags as AWS takes them."""
    return [{"Key": key, "Value": value} for key, value in tags.items()]


def as_dict(described: Raw) -> dict[str, str]:
    """The tags of a thing as AWS describes it."""
    tags: Iterable[Raw] = described.get("Tags") or ()
    return {tag["Key"]: tag["Value"] for tag in tags}
