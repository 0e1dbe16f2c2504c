"""GuardsSecret: keeps the credentials Secret until the object no longer needs it.

The finalizer of the kind is added to the Secret in spec.secretRef before the first call of the
actuator, and removed after a deletion or a migration. For BackupBucket and BackupEntry Gardener
does so (`extensions/pkg/controller/backupbucket` and `backupentry`); any other kind with a
spec.secretRef may enable it (`Manager.add(..., guards_secret=True)`), so that a namespace can be
deleted in any order.

There is one finalizer per kind, as in Gardener. A `shared` guard is removed with the last object of
the kind, of any actuator, that needs the Secret: one list request in each deletion. A guard that is
not shared is removed with the first object, and the others add it again when they reconcile, as
Gardener does for its backup kinds.

Assumption: objects of a namespaced kind refer to a Secret of their own namespace.
Caveats: a force deletion releases the Secret first, since it needs no credentials and an
unresponsive call must not hold the Secret for ever; if its budget ends before the actuator is
called, the finalizer stays until gardenlet removes it. It also stays on a Secret that an object no
longer refers to.
"""

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from actuator.cluster import Cluster
from actuator.errors import ActuatorError, ConfigurationError, NotFound
from actuator.interface import SECRETS, Actuator, Context, Result, WrappedActuator, resource_of
from actuator.meta import Object, Raw
from generic.kube.finalizers import Stale, patch_tested, put_on, strip
from generic.kube.headers import Request, header

_ROUNDS = 5
T = TypeVar("T")


class GuardsSecret(WrappedActuator):
    """Keeps the Secret of spec.secretRef while the inner actuator may need it.

    With `needed_to_delete`, an object whose Secret is deleted anyway is not cleaned up.
    """

    def __init__(
        self, inner: Actuator[Any], *, shared: bool = False, needed_to_delete: bool = False
    ) -> None:
        super().__init__(inner)
        self.permissions = (*inner.permissions, SECRETS.permission("get", "patch"))
        self._needed_to_delete = needed_to_delete
        self._dependants = _Dependants() if shared else None

    def reconcile(self, ctx: Context, obj: Any, cluster: Cluster, /) -> Result | None:
        """Guard the Secret first: resources created from now on need it for their deletion."""
        self._guard(ctx, obj)
        return self.inner.reconcile(ctx, obj, cluster)

    def restore(self, ctx: Context, obj: Any, cluster: Cluster, /) -> Result | None:
        """See reconcile."""
        self._guard(ctx, obj)
        return self.inner.restore(ctx, obj, cluster)

    def delete(self, ctx: Context, obj: Any, cluster: Cluster, /) -> None:
        """Release the Secret last; without one, a BackupEntry is released without cleanup."""
        if self._needed_to_delete and _read(ctx, obj) is None:
            ctx.event(
                "CleanupSkipped",
                f"Secret {_secret_of(obj)} not found: external resources are not deleted",
                warning=True,
            )
            return None
        return self._release_after(ctx, obj, lambda: self.inner.delete(ctx, obj, cluster))

    def migrate(self, ctx: Context, obj: Any, cluster: Cluster, /) -> None:
        """Release the Secret after the migration: the destination has its own."""
        return self._release_after(ctx, obj, lambda: self.inner.migrate(ctx, obj, cluster))

    def force_delete(self, ctx: Context, obj: Any, cluster: Cluster, /) -> None:
        """Release the Secret first."""
        self._let_go(ctx, obj)
        return self.inner.force_delete(ctx, obj, cluster)

    def _release_after(self, ctx: Context, obj: Any, work: Callable[[], T]) -> T:
        """Release the Secret once `work` is done; a result means that it is not (`Invoker`)."""
        result = work()
        if result is None:
            self._let_go(ctx, obj)
        return result

    def _guard(self, ctx: Context, obj: Any) -> None:
        finalizer = self._finalizer(obj)
        for _ in range(_ROUNDS):
            secret = _read(ctx, obj)
            if secret is None:
                raise ConfigurationError(
                    f"{obj.KIND.name} {obj.key}: spec.secretRef: Secret {_secret_of(obj)} not "
                    "found; create it, or reference another Secret"
                )
            meta = secret["metadata"]
            finalizers = meta.get("finalizers") or []
            deleting = meta.get("deletionTimestamp") is not None  # no finalizer can be added
            if finalizer in finalizers or deleting:
                return
            patch = put_on(finalizer, meta["uid"], finalizers)
            with suppress(Stale, NotFound):
                patch_tested(ctx.client, SECRETS, meta["name"], meta["namespace"], patch)
                return
        raise ActuatorError(f"Secret {_secret_of(obj)}: too many concurrent changes")

    def _let_go(self, ctx: Context, obj: Any) -> None:
        """Release the Secret, read again: other clients write it during a long deletion."""
        finalizer = self._finalizer(obj)
        if self._dependants is not None and self._dependants.any_beside(ctx, obj, finalizer):
            return
        secret = _read(ctx, obj)
        if secret is not None:
            with suppress(NotFound):
                strip(ctx.client, SECRETS, secret, [finalizer])

    def _finalizer(self, obj: Object) -> str:
        return self.finalizer or obj.KIND.finalizer


class _Dependants:
    """Finds other objects that need a Secret; of concurrent deletions the last one finds none."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._leaving: dict[Request, set[str]] = {}  # uids: finished, with our finalizer still on

    def any_beside(self, ctx: Context, obj: Object, finalizer: str) -> bool:
        """Whether another object still needs the Secret that this one no longer needs."""
        secret, uid = _secret_of(obj), obj.metadata.uid
        with self._lock:  # before the list: later lists must not wait for us
            self._leaving.setdefault(secret, set()).add(uid)
        found = map(header, ctx.client.list(resource_of(obj.KIND), obj.metadata.namespace))
        needing = {one.uid for one in found if one.secret == secret and finalizer in one.finalizers}
        with self._lock:
            leaving = self._leaving.get(secret, set()) & needing
            others = needing - leaving - {uid}
            if others:
                self._leaving[secret] = leaving
            else:
                self._leaving.pop(secret, None)
        return bool(others)


def _secret_of(obj: Any) -> Request:
    reference = obj.spec.secret_ref
    return Request(reference.namespace or obj.metadata.namespace, reference.name)


def _read(ctx: Context, obj: Any) -> Raw | None:
    """Return the Secret, or None if it does not exist."""
    namespace, name = _secret_of(obj)
    if not name or not namespace:
        return None
    try:
        return ctx.client.get(SECRETS, name, namespace)
    except NotFound:
        return None
