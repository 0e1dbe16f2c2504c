"""Tags that identify the owner of a cloud resource, in the formats of AWS.

The value "1" of a shoot's tag is Gardener's; the shoot's own cloud-controller-manager uses "owned".
A bastion has its own tag: it is not part of the network, which has the shoot's. See `ec2` and
`bucket` for their use.
"""

from collections.abc import Iterable

from actuator import Raw

NAME = "Name"
Mark = dict[str, str]
"""The tag that identifies the owner of a resource."""


def mark(technical_id: str) -> Mark:
    """Return the tag of a shoot's resources."""
    return {f"kubernetes.io/cluster/{technical_id}": "1"}


def address_mark(technical_id: str) -> Mark:
    """Return the tags of the address of a shoot's control plane: NAT gateways have others."""
    return {**mark(technical_id), NAME: technical_id}


def bastion_mark(technical_id: str, name: str) -> Mark:
    """Return the tag of the resources of a shoot's Bastion `name`."""
    return {f"bastion.extensions.gardener.cloud/{technical_id}": name}


def bucket_mark(name: str) -> Mark:
    """Return the tag of the bucket of the BackupBucket `name`."""
    return {"backupbucket.extensions.gardener.cloud/name": name}


def text(owner: Mark) -> str:
    """Format the tag for users."""
    return ", ".join(f"{key}={value}" for key, value in owner.items())


def filters(owner: Mark) -> list[Raw]:
    """Return filters that find resources with the tag in EC2."""
    return [{"Name": f"tag:{key}", "Values": [value]} for key, value in owner.items()]


def as_list(tags: dict[str, str]) -> list[Raw]:
    """Return tags in the format of AWS."""
    return [{"Key": key, "Value": value} for key, value in tags.items()]


def as_dict(described: Raw) -> dict[str, str]:
    """Return the tags of a resource as AWS describes it."""
    tags: Iterable[Raw] = described.get("Tags") or ()
    return {tag["Key"]: tag["Value"] for tag in tags}
