"""LocalExtension: storage that a shoot shares with others, requested by an Extension.

Outside: a share. In the shoot's namespace in the seed: a Mount of it, which another controller
reconciles. The Mount is created with that controller's finalizer, so that it cannot be deleted
unnoticed. A normal deletion waits for that controller; only a force deletion removes the finalizer.

Flow of delete: delete the Mount → release the share → wait for the Mount. A failing step does not
prevent the others, so the error names the actual cause.
"""

from collections.abc import Iterable

from actuator import (
    Actuator,
    Cluster,
    ConfigurationError,
    Context,
    ExternalResource,
    NamedResourceReference,
    Raw,
    RequeueAfter,
    Resource,
    ResourceReference,
    locate_referenced,
)
from actuator.v1alpha1 import Extension
from extensions.local import seed
from extensions.local.config import ShareConfig
from extensions.local.holding import hold, recorded, release
from extensions.local.mounts import MOUNTS, Mount
from extensions.local.outside import Outside
from generic.library import find, manifest_of, seedobjects

SHARE = "Local::Share"
_SECRETS = Resource("v1", "secrets")
_PASSWORD = "password"  # noqa: S105 - the key in the Secret
_LOOK_AGAIN = 5.0


class LocalExtension(Actuator[Extension, ShareConfig]):
    """A share outside, a Mount in the seed."""

    finalizer = "extensions.gardener.cloud/local-extension"
    seed_objects = (seed.group(Extension.KIND, MOUNTS, [Mount.KIND.finalizer]),)
    permissions = (
        seedobjects.permission(seed_objects[0]),
        _SECRETS.permission("get"),
    )

    def __init__(self, outside: Outside) -> None:
        self._outside = outside

    def reconcile(self, ctx: Context[ShareConfig], obj: Extension, cluster: Cluster) -> None:
        """Ensure that the share exists outside and is mounted."""
        config = ctx.config
        secret_name = _credentials(ctx, obj, cluster, config.credentials)
        properties = {"capacity": config.capacity}
        hold(ctx, self._outside, obj, cluster, type=SHARE, properties=properties)
        (mounts,) = seed.narrowed(self.seed_objects, obj)
        seedobjects.ensure(ctx.client, mounts, _mount(obj, secret_name))

    def delete(self, ctx: Context, obj: Extension, cluster: Cluster) -> None:
        """Delete share and Mount."""
        mounts = seed.narrowed(self.seed_objects, obj)
        seedobjects.delete(ctx.client, mounts, obj.metadata.namespace)
        release(ctx, self._outside, obj, cluster)
        seedobjects.check_deleted(
            ctx, mounts, obj.metadata.namespace, patience=seed.MAX_WAIT_SECONDS
        )

    def migrate(self, ctx: Context, obj: Extension, cluster: Cluster) -> None:
        """Delete the Mount; keep the share for the next seed."""
        mounts = seed.narrowed(self.seed_objects, obj)
        seedobjects.delete(ctx.client, mounts, obj.metadata.namespace)
        seedobjects.check_deleted(
            ctx, mounts, obj.metadata.namespace, patience=seed.MAX_WAIT_SECONDS
        )

    def force_delete(self, ctx: Context, obj: Extension, cluster: Cluster) -> None:
        """Delete the Mount despite its finalizer; the share may remain."""
        ctx.delete_seed_objects(seed.narrowed(self.seed_objects, obj))

    def external_resources(self, obj: Extension) -> Iterable[ExternalResource]:
        """Return the share."""
        return recorded(obj, SHARE)


def _credentials(ctx: Context, obj: Extension, cluster: Cluster, name: str) -> str:
    """Return the name in the seed of the Secret that the user calls `name`; "" for none.

    status.resources names it, so that control plane migration transfers it.
    """
    obj.status.resources = []
    if not name:
        return ""
    where = f"Extension {obj.key}: spec.providerConfig.credentials"
    resource, actual = locate_referenced(cluster, name)
    if resource != _SECRETS:
        raise ConfigurationError(f"{where}: {name!r} is no Secret; name one")
    secret = find(ctx.client, resource, actual, obj.metadata.namespace)
    if secret is None:
        raise RequeueAfter(_LOOK_AGAIN, f"Waiting for Secret {actual}")
    if _PASSWORD not in (secret.get("data") or {}):
        raise ConfigurationError(f"{where}: Secret {name!r} has no key {_PASSWORD!r}; add it")
    reference = ResourceReference(api_version="v1", kind="Secret", name=actual)
    obj.status.resources = [NamedResourceReference(name=name, resource_ref=reference)]
    return actual


def _mount(obj: Extension, secret_name: str) -> Raw:
    spec: Raw = {"share": (obj.status.state or {})["id"]}
    if secret_name:
        spec["secretName"] = secret_name
    return manifest_of(Mount, f"share-{obj.metadata.name}", obj.metadata.namespace, spec=spec)
