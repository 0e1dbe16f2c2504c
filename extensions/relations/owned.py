"""Owned: the children carry owner references, so the garbage collector deletes them.

A Team is cluster-scoped, so it may own objects in any namespace. It is the controller of its own
ConfigMap, and a plain owner of the shared one, like other Teams; the garbage collector deletes that
with the last Team. `delete` and force deletion have nothing to do, because the garbage collector
needs no extension. The user who deletes the Team selects the effect on its children (propagation
Background, Foreground or Orphan).
"""

from actuator import (
    Actuator,
    ActuatorError,
    Cluster,
    Context,
    ErrorCode,
    Raw,
    RequeueAfter,
    Resource,
    is_owned_by,
    with_owner,
)
from extensions.relations.kinds import GROUP, Team
from generic import owns
from generic.library import find, manifest

_CONFIG_MAPS = Resource("v1", "configmaps")
_SHARED = f"{GROUP}/shared"
_LOOK_AGAIN = 5.0


class Teams(Actuator[Team]):
    """A ConfigMap that the Team controls, and one that it owns with others."""

    permissions = (
        # "delete" is required to add an owner to an existing ConfigMap: see
        # `actuator.ownership.owner_permission`.
        _CONFIG_MAPS.permission("get", "create", "patch", "delete"),
    )
    watches = (owns(_CONFIG_MAPS),)

    def reconcile(self, ctx: Context, obj: Team, cluster: Cluster) -> None:
        """Create or update both ConfigMaps with their owner references."""
        own = _config_map(obj, f"team-{obj.metadata.name}", obj.spec.settings)
        _ensure(ctx, obj, own, controller=True)
        if obj.spec.shared:
            shared = _config_map(obj, obj.spec.shared, {}, **{_SHARED: "true"})
            _ensure(ctx, obj, shared, controller=False)

    def delete(self, ctx: Context, obj: Team, cluster: Cluster) -> None:
        """Do nothing: the propagation of the Team's deletion decides about its children."""


def _ensure(ctx: Context, team: Team, wanted: Raw, *, controller: bool) -> None:
    """Create or update the ConfigMap as `wanted`, with the Team among its owners.

    Server-side apply merges owner references by uid, so Teams do not overwrite each other's. Raises
    ActuatorError if it belongs to others, RequeueAfter while it is being deleted.
    """
    owned = with_owner(wanted, team, controller=controller)
    meta = wanted["metadata"]
    there = find(ctx.client, _CONFIG_MAPS, meta["name"], meta["namespace"])
    if there is None:  # not by apply, which would change an object that was created meanwhile
        bare = {key: owned[key] for key in owned if key != "data"}
        there = ctx.client.create(_CONFIG_MAPS, bare)
    meta = there["metadata"]
    if meta.get("deletionTimestamp"):
        raise RequeueAfter(_LOOK_AGAIN, f"Waiting until ConfigMap {meta['name']} is gone")
    ours = is_owned_by(there, team) if controller else _SHARED in (meta.get("labels") or {})
    if not ours:
        raise ActuatorError(
            f"ConfigMap {meta['namespace']}/{meta['name']} exists and does not belong to "
            f"Team {team.key}; rename or remove it",
            codes=[ErrorCode.ERR_CONFIGURATION_PROBLEM],
        )
    ctx.client.apply(_CONFIG_MAPS, owned, field_manager=f"team-{team.metadata.uid}")


def _config_map(team: Team, name: str, data: dict[str, str], **labels: str) -> Raw:
    return manifest("v1", "ConfigMap", name, team.spec.namespace, labels, data=dict(data))
