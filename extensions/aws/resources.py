"""The resources of one shoot in the cloud: found by tag, requested with tags, deleted.

Any step may be repeated after any crash. AWS's responses lag behind its writes (Amazon EC2 API
reference, "Eventual consistency"): a repetition within that time may create a resource twice. The
next lookup then reports both instead of choosing one. Not here: which resources a shoot needs.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import attrs

from actuator import ActuatorError, ConfigurationError, ErrorCode, Raw, RequeueAfter
from extensions.aws import ec2, iam, parts, tags
from extensions.aws.cloud import Cloud
from extensions.aws.parts import NODE_ROLE
from generic.library import ExternalType, Ids, Task

_LOOK_AGAIN = 10.0
"""Seconds until the next look at a NAT gateway, which takes minutes."""


@attrs.frozen
class ShootResources:
    """The resources of the shoot `technical_id`, in one call of the actuator."""

    cloud: Cloud
    technical_id: str
    _found: dict[str, list[Raw]] = attrs.field(factory=dict)
    """The resources of each type, as AWS described them when they were first looked for, and the
    created ones, as AWS answered."""

    def types(self) -> Iterator[ExternalType]:
        """Yield the types of resources."""
        for type in parts.TYPES:
            find = partial(self._find, type)
            yield ExternalType(name=type.name, find=find, delete=partial(self._delete, type))

    def task(self, name: str, **rest: Any) -> Task:
        """Return the task of a part."""
        part = parts.part(name)
        return Task(name=name, type=part.type.name, needs=part.needs, **rest)

    def full_name(self, name: str) -> str:
        """Return the tag Name of a part."""
        return parts.full_name(self.technical_id, name)

    def _described(self, type: ec2.ResourceType) -> list[Raw]:
        if type.name not in self._found and type.service == "iam":
            name = self.full_name(NODE_ROLE)
            self._found[type.name] = iam.look(self.cloud, type, name)
        elif type.name not in self._found:
            marked = ec2.Marked(self.cloud, tags.mark(self.technical_id))
            self._found[type.name] = marked.find(type)
        return self._found[type.name]

    def item(self, type: ec2.ResourceType, id: str) -> Raw:
        """Return a resource as AWS described it, {} for an unknown one."""
        return next((item for item in self._described(type) if item[type.id_key] == id), {})

    def first(self, type: ec2.ResourceType, filters: list[Raw]) -> str:
        """Return the id of a resource of another owner, or ""."""
        found = ec2.describe(self.cloud, type, filters)
        self._described(type).extend(found[:1])
        return type.ids(found)[0] if found else ""

    def _find(self, type: ec2.ResourceType, name: str, ids: Ids) -> list[str]:
        """Return the ids of the part: by its tag, or by its known id, which Go tags otherwise.

        Raises ActuatorError if the known resource lost its tag: it would never be found again.
        """
        full_name = self.full_name(name)
        known = ids.get(name, "")
        found = [
            item
            for item in self._described(type)
            if tags.as_dict(item).get(tags.NAME) == full_name or item[type.id_key] == known
        ]
        by_id = type.service == "ec2"  # those of IAM were looked for by name
        if by_id and known and not found and ec2.describe(self.cloud, type, [type.with_id(known)]):
            mark = tags.text(tags.mark(self.technical_id))
            raise ActuatorError(
                f"{type.name} {known} has lost its tag {mark}; put it back",
                codes=[ErrorCode.ERR_INFRA_DEPENDENCIES],
            )
        return type.ids(found)

    def creates(
        self, name: str, operation: str, given: Raw | None = None, **of: str
    ) -> Callable[[Ids], str]:
        """Return a function that requests the resource of a part, with its tags.

        `of` are parameters of the request that are the ids of other parts, by their names.
        """
        part = parts.part(name)
        labels = parts.part_tags(self.technical_id, name)

        def create(ids: Ids) -> str:
            others = {parameter: ids[other] for parameter, other in of.items()}
            answer = ec2.create_tagged(
                self.cloud, operation, part.type, labels, **(given or {}), **others
            )
            id_key = part.type.id_key
            kind = id_key.removesuffix("Id").removesuffix("Name")
            described = answer if id_key in answer else answer[kind]
            self._described(part.type).append(described)
            return str(described[id_key])

        return create

    def _delete(self, type: ec2.ResourceType, id: str, _ids: Ids) -> None:
        item = self.item(type, id)
        iam.empty(self.cloud, type, item)
        if type is ec2.INTERNET_GATEWAY:
            for attachment in item.get("Attachments") or ():
                ids = {type.id_key: id, "VpcId": attachment["VpcId"]}
                self.cloud.remove("detach_internet_gateway", **ids)
        if item.get("State") != "deleting":
            self.cloud.service(type.service).remove(type.delete, **{type.id_key: id})
        if type is ec2.NAT_GATEWAY:
            for gateway in ec2.describe(self.cloud, type, [type.with_id(id)]):
                raise waiting(gateway)

    def check_range(self, type: ec2.ResourceType, id: str, cidr: str, field: str) -> None:
        """Refuse another range for an existing resource. Raises ConfigurationError."""
        there = self.item(type, id)["CidrBlock"]
        if there != cidr:
            raise ConfigurationError(
                f"spec.providerConfig.networks.{field}: {cidr} differs from {there} "
                f"of {id}; AWS cannot change it, so set {there} again"
            )


def waiting(nat_gateway: Raw) -> RequeueAfter:
    """Return what to raise for a NAT gateway that is not ready, or not gone: that takes minutes."""
    text = f"Waiting for NAT gateway {nat_gateway['NatGatewayId']}, which is {nat_gateway['State']}"
    return RequeueAfter(_LOOK_AGAIN, text)
