"""Tags that identify the extension's resources in the cloud.

Create requests set the tags, so no resource can exist without its tag, even after a crash (for
buckets, see `bucket`). A resource without the tag is not the extension's and is never adopted. The
value "1" is Gardener's; the shoot's own cloud-controller-manager uses "owned". A bastion has its
own tag: it is not part of the network, which has the shoot's.
"""

from collections.abc import Iterable

from actuator import ActuatorError, ErrorCode
from actuator.meta import Raw

NAME = "Name"
Mark = dict[str, str]
"""The tag that identifies the owner of a resource."""


def mark(technical_id: str) -> Mark:
    """Return the tag of a shoot's resources."""
    return {f"kubernetes.io/cluster/{technical_id}": "1"}


def bastion_mark(technical_id: str, name: str) -> Mark:
    """Return the tag of the resources of a shoot's Bastion `name`."""
    return {f"bastion.extensions.gardener.cloud/{technical_id}": name}


def bucket_mark(name: str) -> Mark:
    """Return the tag of the bucket of the BackupBucket `name`."""
    return {"backupbucket.extensions.gardener.cloud/name": name}


def text(owner: Mark) -> str:
    """Format the tag for users."""
    return ", ".join(f"{key}={value}" for key, value in owner.items())


def specification(resource_type: str, owner: Mark, name: str) -> list[Raw]:
    """Return TagSpecifications for a create request of EC2."""
    return [{"ResourceType": resource_type, "Tags": as_list({**owner, NAME: name})}]


def filters(owner: Mark) -> list[Raw]:
    """Return filters that find resources with the tag in EC2."""
    return [{"Name": f"tag:{key}", "Values": [value]} for key, value in owner.items()]


def only(owner: Mark, what: str, id_key: str, found: list[Raw]) -> Raw | None:
    """Return the only resource found, or None. Raises ActuatorError if there are two."""
    if len(found) > 1:
        ids = ", ".join(sorted(str(thing[id_key]) for thing in found))
        raise ActuatorError(
            f"More than one {what} is tagged {text(owner)}: {ids}; "
            "find out which one is in use and remove the others",
            codes=[ErrorCode.ERR_INFRA_DEPENDENCIES],
        )
    return found[0] if found else None


def as_list(tags: dict[str, str]) -> list[Raw]:
    """Return tags in the format of AWS."""
    return [{"Key": key, "Value": value} for key, value in tags.items()]


def as_dict(described: Raw) -> dict[str, str]:
    """Return the tags of a resource as AWS describes it."""
    tags: Iterable[Raw] = described.get("Tags") or ()
    return {tag["Key"]: tag["Value"] for tag in tags}
