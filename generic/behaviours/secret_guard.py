"""BackupBucket and BackupEntry: the Secret with the credentials outlives the object.

The finalizer of the kind is put on the Secret that spec.secretRef names before the actuator is
called, and comes off when a deletion or a migration is done (Gardener's extension library,
`extensions/pkg/controller/backupbucket` and `backupentry`). As in Gardener it is one finalizer
for each kind: objects of a kind that share a Secret share its guard.
"""

from __future__ import annotations

from typing import Any

from actuator.cluster import Cluster
from actuator.errors import ConfigurationError, NotFound
from actuator.interface import Actuator, Context, Permission, Resource, Result, WrappedActuator
from actuator.meta import Object, Raw, SecretReference
from generic.finalizers import Stale, patch_tested, put_on, take_off

__all__ = ["GuardsSecret"]

_SECRETS = Resource("v1", "secrets")
_ROUNDS = 5


class GuardsSecret(WrappedActuator):
    """Keeps the Secret of spec.secretRef for as long as the inner actuator may need it."""

    def __init__(self, inner: Actuator[Any], *, needed_to_delete: bool = False) -> None:
        super().__init__(inner)
        self.permissions = (
            *inner.permissions,
            Permission(api_version="v1", resource="secrets", verbs=["get", "patch"]),
        )
        self._needed_to_delete = needed_to_delete

    def reconcile(self, ctx: Context, obj: Any, cluster: Cluster, /) -> Result | None:
        """Guards first: what is made from now on needs these credentials to be deleted."""
        self._guard(ctx, obj)
        return self.inner.reconcile(ctx, obj, cluster)

    def restore(self, ctx: Context, obj: Any, cluster: Cluster, /) -> Result | None:
        """See reconcile."""
        self._guard(ctx, obj)
        return self.inner.restore(ctx, obj, cluster)

    def delete(self, ctx: Context, obj: Any, cluster: Cluster, /) -> None:
        """Lets the Secret go last; a BackupEntry without one cannot be cleaned up, and goes."""
        if self._needed_to_delete and _read(ctx, obj.spec.secret_ref) is None:
            ctx.event(
                "CleanupSkipped",
                f"Secret {_name(obj.spec.secret_ref)} is gone: what is outside stays there",
                warning=True,
            )
            return
        self.inner.delete(ctx, obj, cluster)
        self._let_go(ctx, obj)

    def migrate(self, ctx: Context, obj: Any, cluster: Cluster, /) -> None:
        """The destination has a Secret of its own."""
        self.inner.migrate(ctx, obj, cluster)
        self._let_go(ctx, obj)

    def _guard(self, ctx: Context, obj: Any) -> None:
        finalizer = self._finalizer(obj)
        for _ in range(_ROUNDS):
            meta = _read(ctx, obj.spec.secret_ref)
            if meta is None:
                raise ConfigurationError(
                    f"{obj.KIND.name} {obj.key}: spec.secretRef: there is no Secret "
                    f"{_name(obj.spec.secret_ref)}; create it, or name another"
                )
            finalizers = meta.get("finalizers") or []
            deleting = meta.get("deletionTimestamp") is not None  # takes no finalizer any more
            if finalizer in finalizers or deleting:
                return
            if _patched(ctx, meta, put_on(finalizer, meta["uid"], finalizers)):
                return
        raise _Contended(obj)

    def _let_go(self, ctx: Context, obj: Any) -> None:
        """Reads the Secret anew: others write it while a long deletion runs."""
        finalizer = self._finalizer(obj)
        for _ in range(_ROUNDS):
            meta = _read(ctx, obj.spec.secret_ref)
            finalizers = (meta or {}).get("finalizers") or []
            if meta is None or finalizer not in finalizers:
                return
            if _patched(ctx, meta, take_off([finalizer], meta["uid"], finalizers)):
                return
        raise _Contended(obj)

    def _finalizer(self, obj: Object) -> str:
        return self.finalizer or obj.KIND.finalizer


class _Contended(Exception):
    """Others change the Secret faster than we can: tried again, with backoff."""

    def __init__(self, obj: Any) -> None:
        super().__init__(f"Secret {_name(obj.spec.secret_ref)} keeps changing")


def _read(ctx: Context, reference: SecretReference) -> Raw | None:
    """The Secret's metadata; None where there is none."""
    try:
        secret = ctx.client.get(_SECRETS, reference.name, reference.namespace)
    except NotFound:
        return None
    meta: Raw = secret["metadata"]
    return meta


def _patched(ctx: Context, meta: Raw, patch: list[Raw]) -> bool:
    """Whether the patch applied; False when the Secret changed since it was read."""
    try:
        patch_tested(ctx.client, _SECRETS, meta["name"], meta["namespace"], patch)
    except (Stale, NotFound):
        return False
    return True


def _name(reference: SecretReference) -> str:
    return f"{reference.namespace}/{reference.name}"
