"""Manifests for the shoot, deployed and removed by a ManagedResource.

In a force deletion gardenlet removes the ManagedResource, so it is not declared as a seed object.
"""

from collections.abc import Iterable, Mapping

from actuator import Context, Object
from actuator.meta import Raw
from generic.library.managedresources import (
    check_deleted,
    delete,
    deploy_for_shoot,
    set_keep_objects,
)
from generic.library.manifests import manifest

NAMESPACE = "kube-system"
_ORIGIN = "extension-local"


def deploy(ctx: Context, obj: Object, name: str, manifests: Iterable[Raw]) -> None:
    """Deploy exactly these manifests to the shoot, without waiting for it."""
    deploy_for_shoot(ctx.client, obj.metadata.namespace, name, manifests, origin=_ORIGIN)


def withdraw(ctx: Context, obj: Object, name: str, *, keep_objects: bool = False) -> None:
    """Delete the ManagedResource and its objects in the shoot, and wait for it.

    With `keep_objects` the shoot keeps the objects for another seed. Raises RequeueAfter, and
    ActuatorError if the resource manager fails, or takes too long.
    """
    namespace = obj.metadata.namespace
    if keep_objects:
        set_keep_objects(ctx.client, namespace, name, keep=True, origin=_ORIGIN)
    delete(ctx.client, namespace, name, origin=_ORIGIN)
    check_deleted(ctx.client, ctx.clock, namespace, name, origin=_ORIGIN)


def daemon_set(
    name: str, image: str, *, node_selector: Mapping[str, str], mounts: Mapping[str, Raw]
) -> Raw:
    """Return a program for each node; `mounts` maps paths in it to volumes of a pod."""
    labels = {"app.kubernetes.io/name": name}
    volumes = [{"name": f"v{index}", **volume} for index, volume in enumerate(mounts.values())]
    paths = [{"name": f"v{index}", "mountPath": path} for index, path in enumerate(mounts)]
    container = {"name": "local", "image": image, "volumeMounts": paths}
    pod = {"nodeSelector": dict(node_selector), "containers": [container], "volumes": volumes}
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    return manifest("apps/v1", "DaemonSet", name, NAMESPACE, spec=spec)
