"""GuardsSecret: keeps the credentials Secret until the object no longer needs it.

The finalizer of the kind is added to the Secret in spec.secretRef before the first call of the
actuator, and removed after a deletion or a migration. For BackupBucket and BackupEntry Gardener
does so (`extensions/pkg/controller/backupbucket` and `backupentry`); any other kind with a
spec.secretRef may enable it (`Manager.add(..., guards_secret=True)`), so that a namespace can be
deleted in any order.

There is one finalizer per kind, as in Gardener. A `shared` guard is removed from every Secret that
no object of the kind, of any actuator, needs any more, when an object is reconciled or released.
Both look in the namespace of the Secret. They cost one list of the Secrets' metadata, and one of
the objects if a guarded Secret may be unneeded. A guard that is not shared is removed with the
first object, and the others add it again when they reconcile, as Gardener does for its backup
kinds. When a manager starts, it releases all unneeded Secrets (`generic.manager.guards`).

Assumption: objects of a namespaced kind refer to a Secret of their own namespace.
Caveat: a force deletion releases the Secret first, since it needs no credentials and an
unresponsive call must not hold the Secret without limit; if its budget ends before the actuator is
called, the finalizer stays until the next of these looks, or until gardenlet removes it.
"""

import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, TypeVar

from actuator.cluster import Cluster
from actuator.errors import ActuatorError, ConfigurationError, Conflict, NotFound
from actuator.interface import (
    SECRETS,
    Actuator,
    Client,
    Context,
    Result,
    WrappedActuator,
    resource_of,
)
from actuator.meta import Object, Raw
from generic.kube.finalizers import add_finalizer, remove_finalizers
from generic.kube.headers import Header, Request, header, request_of

PERMISSION = SECRETS.permission("get", "list", "patch")
"""The permission for releasing Secrets."""
_MAX_ROUNDS = 5
T = TypeVar("T")


class GuardsSecret(WrappedActuator):
    """Keeps the Secret of spec.secretRef while the inner actuator may need it.

    With `needed_to_delete`, an object whose Secret is deleted anyway is not cleaned up.
    """

    def __init__(
        self, inner: Actuator[Any], *, shared: bool = False, needed_to_delete: bool = False
    ) -> None:
        super().__init__(inner)
        self._shared = shared
        self.permissions = (
            *inner.permissions,
            PERMISSION if shared else SECRETS.permission("get", "patch"),
        )
        self._needed_to_delete = needed_to_delete
        self._lock = threading.Lock()
        self._leaving: dict[str, set[str]] = {}
        """The uids of finished objects whose finalizer may still be on, by namespace."""

    def reconcile(self, ctx: Context, obj: Any, cluster: Cluster, /) -> Result | None:
        """Guard the Secret first: resources created from now on need it for their deletion."""
        self._guard(ctx, obj)
        self._release_former(ctx, obj)
        return self.inner.reconcile(ctx, obj, cluster)

    def restore(self, ctx: Context, obj: Any, cluster: Cluster, /) -> Result | None:
        """See reconcile."""
        self._guard(ctx, obj)
        self._release_former(ctx, obj)
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
        self._release_all(ctx, obj)
        return self.inner.force_delete(ctx, obj, cluster)

    def _release_after(self, ctx: Context, obj: Any, work: Callable[[], T]) -> T:
        """Release the Secret once `work` is done; a result means that it is not (`Invoker`)."""
        result = work()
        if result is None:
            self._release_all(ctx, obj)
        return result

    def _guard(self, ctx: Context, obj: Any) -> None:
        finalizer = self._finalizer(obj)
        for _ in range(_MAX_ROUNDS):
            secret = _read(ctx, obj)
            if secret is None:
                raise ConfigurationError(
                    f"{obj.KIND.name} {obj.key}: spec.secretRef: Secret {_secret_of(obj)} not "
                    "found; create it, or reference another Secret"
                )
            with suppress(Conflict, NotFound):
                add_finalizer(ctx.client, SECRETS, secret, finalizer)
                return  # also for a Secret under deletion, which can get none
        raise ActuatorError(f"Secret {_secret_of(obj)}: too many concurrent changes")

    def _release_former(self, ctx: Context, obj: Any) -> None:
        """Release the Secrets of former references."""
        if self._shared:
            with self._lock:
                self._leaving.get(obj.metadata.namespace, set()).discard(obj.metadata.uid)
            self._release(ctx, obj, but=_secret_of(obj))

    def _release_all(self, ctx: Context, obj: Any) -> None:
        """Release the Secrets that no other object needs; one that is not shared, at once."""
        if not self._shared:
            strip_all(ctx.client, filter(None, [_read(ctx, obj)]), self._finalizer(obj))
            return
        where = obj.metadata.namespace
        uid = obj.metadata.uid
        with self._lock:  # before the list: later lists must not wait for us
            self._leaving.setdefault(where, set()).add(uid)
        if not self._release(ctx, obj):
            with self._lock:
                self._leaving.pop(where, None)

    def _release(self, ctx: Context, obj: Any, but: Request | None = None) -> bool:
        """Release each Secret but one that no object needs; return whether others remain."""
        where = obj.metadata.namespace
        namespace = _secret_of(obj).namespace
        metas = ctx.client.list(SECRETS, namespace, metadata_only=True) if namespace else []
        secrets = [item for item in guarded(metas, self._finalizer(obj)) if request_of(item) != but]
        if not secrets:
            return False
        found = needing(ctx.client.list(resource_of(obj.KIND), where), self._finalizer(obj))
        with self._lock:
            leaving = self._leaving.get(where, set())
            leaving &= {item.uid for _, item in found}
            needed = {item.secret for _, item in found if item.uid not in leaving}
        unneeded = [secret for secret in secrets if request_of(secret) not in needed]
        strip_all(ctx.client, unneeded, self._finalizer(obj))
        return bool(needed)

    def _finalizer(self, obj: Object) -> str:
        return self.finalizer or obj.KIND.finalizer


class ReleasesSecrets(WrappedActuator):
    """Guards no Secret, but a former version did: a start of the manager removes its guards."""

    def __init__(self, inner: Actuator[Any]) -> None:
        super().__init__(inner)
        self.permissions = (*inner.permissions, PERMISSION)


def guarded(secrets: Iterable[Raw], finalizer: str) -> list[Raw]:
    """Return the Secrets with the finalizer."""
    return [
        secret for secret in secrets if finalizer in (secret["metadata"].get("finalizers") or ())
    ]


def needing(objects: Iterable[Raw], finalizer: str) -> list[tuple[Request, Header]]:
    """Return the objects that may need a Secret; each has the finalizer before its Secret."""
    found = ((request_of(object_), header(object_)) for object_ in objects)
    return [(request, item) for request, item in found if finalizer in item.finalizers]


def strip_all(client: Client, secrets: Iterable[Raw], finalizer: str) -> None:
    """Remove the finalizer from these Secrets; a deleted one counts as success."""
    for secret in secrets:
        with suppress(NotFound):
            remove_finalizers(client, SECRETS, secret, [finalizer])


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
