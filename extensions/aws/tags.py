"""The mark by which everything of a shoot is found again in the cloud, and never mixed up.

Things are tagged in the request that creates them, so nothing can exist without its mark, not
even after a crash. What lacks the mark is not ours and is never adopted. The value "1" is
Gardener's; the shoot's own cloud-controller-manager marks what it makes "owned".
"""

from __future__ import annotations

from collections.abc import Iterable

from actuator import ExternalResource
from actuator.meta import Raw

__all__ = [
    "NAME",
    "as_dict",
    "filters",
    "mark",
    "specification",
    "text",
    "to_search_for",
]

NAME = "Name"


def mark(technical_id: str) -> dict[str, str]:
    """The tag that says whose a thing is."""
    return {f"kubernetes.io/cluster/{technical_id}": "1"}


def text(technical_id: str) -> str:
    """The mark as people write it."""
    return ", ".join(f"{key}={value}" for key, value in mark(technical_id).items())


def specification(resource_type: str, technical_id: str, name: str) -> list[Raw]:
    """TagSpecifications for a request that creates something."""
    tags = {**mark(technical_id), NAME: name}
    return [
        {
            "ResourceType": resource_type,
            "Tags": [{"Key": key, "Value": value} for key, value in tags.items()],
        }
    ]


def filters(technical_id: str) -> list[Raw]:
    """Filters that find what carries the mark."""
    return [{"Name": f"tag:{key}", "Values": [value]} for key, value in mark(technical_id).items()]


def as_dict(described: Raw) -> dict[str, str]:
    """The tags of a thing as AWS describes it."""
    tags: Iterable[Raw] = described.get("Tags") or ()
    return {tag["Key"]: tag["Value"] for tag in tags}


def to_search_for(type: str, technical_id: str, region: str) -> ExternalResource:
    """What may exist without that its id is known."""
    return ExternalResource(type=type, tags=mark(technical_id), region=region)
