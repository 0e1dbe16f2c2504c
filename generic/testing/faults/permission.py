"""Permissions taken from a ClusterRole, and given back.

The API server hears of a changed role through a watch, so the effect comes some milliseconds
later. Roles that are aggregated from others are not for this: their rules are overwritten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import attrs

from actuator.errors import Invalid
from actuator.interface import Client, Resource
from actuator.meta import Raw
from generic.kube import patches
from generic.testing.faults.rules import ANY, fits

_ROLES = Resource("rbac.authorization.k8s.io/v1", "clusterroles", namespaced=False)
_ATTEMPTS = 5


@attrs.frozen(kw_only=True)
class Revoked:
    """What a role loses: `verbs` (all if empty) on what fits the patterns.

    `resource` as in a rule, with its subresource: "infrastructures/status", "*/status". Rules that
    say "*" themselves are hit only by a pattern that fits a "*".
    """

    group: str = ANY
    resource: str = ANY
    verbs: list[str] = attrs.field(factory=list)


class Revocation:
    """What is taken from the ClusterRole `role`, and given back.

    `client` needs the permissions that it takes, and those to change roles. Both methods can be
    called again, after they failed too. What others change in the role meanwhile stays changed.
    """

    def __init__(self, client: Client, role: str, revoked: Revoked) -> None:
        self._client = client
        self._role = role
        self._revoked = revoked
        self._lost: list[Raw] = []

    def take(self) -> None:
        """Take it. Raises ApiError."""
        _change(self._client, self._role, self._without)

    def give_back(self) -> None:
        """Give back what was taken. Raises ApiError."""
        _change(self._client, self._role, lambda rules: rules + _new(self._lost, rules))

    def _without(self, rules: list[Raw]) -> list[Raw]:
        kept, lost = _split(rules, self._revoked)
        self._lost += _new(lost, self._lost)  # the answer to an earlier attempt may have been lost
        return kept


def _change(client: Client, role: str, change: Callable[[list[Raw]], list[Raw]]) -> None:
    for attempt in range(1, _ATTEMPTS + 1):
        obj = client.get(_ROLES, role)
        rules: list[Raw] = obj.get("rules") or []
        patch = [
            patches.test("/metadata/uid", obj["metadata"]["uid"]),
            patches.test("/rules", obj.get("rules")),
            patches.add("/rules", change(rules)),
        ]
        try:
            client.patch(_ROLES, role, "", patch)
            return
        except Invalid:  # somebody else changed it in between
            if attempt == _ATTEMPTS:
                raise


def _split(rules: list[Raw], revoked: Revoked) -> tuple[list[Raw], list[Raw]]:
    """The rules that stay, and those that go; rules about URLs stay."""
    kept: list[Raw] = []
    lost: list[Raw] = []
    for rule in rules:
        for one in _single(rule):
            if not _is_about(one, revoked):
                kept.append(one)
                continue
            gone = [verb for verb in one["verbs"] if not revoked.verbs or verb in revoked.verbs]
            stays = [verb for verb in one["verbs"] if verb not in gone]
            kept += [one | {"verbs": stays}] if stays else []
            lost += [one | {"verbs": gone}] if gone else []
    return kept, lost


def _single(rule: Raw) -> Iterator[Raw]:
    """The same rule for each of its groups and resources alone."""
    if not rule.get("resources"):
        yield rule
        return
    for group in rule["apiGroups"]:
        for resource in rule["resources"]:
            yield rule | {"apiGroups": [group], "resources": [resource]}


def _is_about(rule: Raw, revoked: Revoked) -> bool:
    """Whether a rule for one group and one resource fits the patterns."""
    if not rule.get("resources"):
        return False
    return fits(rule["apiGroups"][0], revoked.group) and fits(
        rule["resources"][0], revoked.resource
    )


def _new(rules: list[Raw], known: list[Raw]) -> list[Raw]:
    return [rule for rule in rules if rule not in known]
