"""Which traffic reaches the nodes: ingress rules of their security group, as data.

Only rules are added, none is removed: the shoot's cloud-controller-manager has its own in there.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from actuator.meta import Raw

_NODE_PORTS = (30000, 32767)
"""Kubernetes documentation, "Service", type NodePort."""

_ANYWHERE = "0.0.0.0/0"
_ALL_PROTOCOLS = "-1"


@attrs.frozen
class _Rule:
    """One source, a range or a security group, and what may come from it."""

    protocol: str
    ports: tuple[int, int] | None
    range: str = ""
    group_id: str = ""

    def permission(self) -> Raw:
        """The rule as AWS takes it."""
        permission: Raw = {"IpProtocol": self.protocol}
        if self.ports is not None:
            permission["FromPort"], permission["ToPort"] = self.ports
        if self.range:
            return {**permission, "IpRanges": [{"CidrIp": self.range}]}
        return {**permission, "UserIdGroupPairs": [{"GroupId": self.group_id}]}


def missing_rules(group: Raw) -> list[Raw]:
    """The IpPermissions that a security group, as AWS describes it, still needs."""
    there = set(_rules_of(group))
    return [rule.permission() for rule in _wanted(str(group["GroupId"])) if rule not in there]


def _wanted(group_id: str) -> Iterator[_Rule]:
    yield _Rule(_ALL_PROTOCOLS, None, group_id=group_id)  # nodes among themselves
    yield _Rule("tcp", _NODE_PORTS, range=_ANYWHERE)
    yield _Rule("udp", _NODE_PORTS, range=_ANYWHERE)


def _rules_of(group: Raw) -> Iterator[_Rule]:
    for permission in group.get("IpPermissions") or ():
        protocol = str(permission["IpProtocol"])
        ports = None
        if protocol != _ALL_PROTOCOLS and "FromPort" in permission:
            ports = (int(permission["FromPort"]), int(permission["ToPort"]))
        for source in permission.get("IpRanges") or ():
            yield _Rule(protocol, ports, range=str(source["CidrIp"]))
        for source in permission.get("UserIdGroupPairs") or ():
            yield _Rule(protocol, ports, group_id=str(source.get("GroupId", "")))
