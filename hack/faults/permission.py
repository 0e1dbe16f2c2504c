"""Permissions removed from a ClusterRole, and restored.

The API server sees a changed role through a watch, so the effect is delayed by some milliseconds.
Not for aggregated roles: their rules are overwritten.
"""

from collections.abc import Callable, Iterator
from itertools import product

import attrs

from actuator.errors import Invalid
from actuator.interface import Client, Resource
from actuator.meta import Raw
from generic.kube import patches
from hack.faults.rules import ANY, fits

_ROLES = Resource("rbac.authorization.k8s.io/v1", "clusterroles", namespaced=False)
_ATTEMPTS = 5


@attrs.frozen(kw_only=True)
class Revoked:
    """The permissions to remove: `verbs` (all if empty) on resources that match the patterns.

    `resource` as in a rule, with its subresource: "infrastructures/status", "*/status". A rule
    with "*" is hit only by a pattern that matches "*".
    """

    group: str = ANY
    resource: str = ANY
    verbs: list[str] = attrs.field(factory=list)

    def hits(self, rule: Raw) -> bool:
        """Return whether a rule for one group, resource and verb is removed."""
        if not rule.get("resources"):
            return False
        [group] = rule["apiGroups"]
        [resource] = rule["resources"]
        [verb] = rule["verbs"]
        named = not self.verbs or verb in self.verbs
        return named and fits(group, self.group) and fits(resource, self.resource)


class Revocation:
    """Removes permissions from the ClusterRole `role`, and restores them.

    `client` needs the removed permissions, and those to change roles. Both methods can be called
    again, also after a failure. Changes of other clients to the role are kept.
    """

    def __init__(self, client: Client, role: str, revoked: Revoked) -> None:
        self._client = client
        self._role = role
        self._revoked = revoked
        self._lost: list[Raw] = []

    def take(self) -> None:
        """Remove the permissions. Raises ApiError."""
        _change(self._client, self._role, self._without)

    def give_back(self) -> None:
        """Restore the removed permissions. Raises ApiError."""
        _change(self._client, self._role, lambda rules: rules + _new(self._lost, rules))

    def _without(self, rules: list[Raw]) -> list[Raw]:
        kept, lost = _split(rules, self._revoked)
        self._lost += _new(lost, self._lost)  # the response to an earlier attempt may be lost
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
        except Invalid:  # another client changed it in between
            if attempt == _ATTEMPTS:
                raise


def _split(rules: list[Raw], revoked: Revoked) -> tuple[list[Raw], list[Raw]]:
    """Return the rules to keep and those to remove; rules about URLs are kept."""
    single = [item for rule in rules for item in _single(rule)]
    lost = [rule for rule in single if revoked.hits(rule)]
    return _new(single, lost), lost


def _single(rule: Raw) -> Iterator[Raw]:
    """Split a rule into one for each group, resource and verb."""
    if not rule.get("resources"):
        yield rule
        return
    for group, resource, verb in product(rule["apiGroups"], rule["resources"], rule["verbs"]):
        yield rule | {"apiGroups": [group], "resources": [resource], "verbs": [verb]}


def _new(rules: list[Raw], known: list[Raw]) -> list[Raw]:
    return [rule for rule in rules if rule not in known]
