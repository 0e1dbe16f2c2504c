"""LocalContainerRuntime: a runtime beside containerd on one worker pool, for a ContainerRuntime.

In the shoot: a DaemonSet that installs the binary on the pool's nodes, and the RuntimeClass with
which pods select it; each object has its own ManagedResource. gardenlet creates an object per pool,
so all resources, including the RuntimeClass, are named after the object: removing the runtime from
one pool does not affect the others.

A force deletion does nothing: the resources in the shoot are deleted with the shoot, and gardenlet
removes the ManagedResource (Gardener documentation, "Force Deletion").
"""

from collections.abc import Iterable, Iterator

from actuator import Actuator, Cluster, Context, FieldProblem
from actuator.meta import Raw
from actuator.provider_config import refuse_config
from actuator.v1alpha1 import ContainerRuntime
from extensions.local import shoot
from generic.library.imagevector import load_images
from generic.library.managedresources import PERMISSIONS
from generic.library.manifests import manifest

_HANDLER = "local"
_IMAGE = "local-runtime"


class LocalContainerRuntime(Actuator[ContainerRuntime]):
    """A DaemonSet and a RuntimeClass in the shoot."""

    permissions = PERMISSIONS

    def __init__(self) -> None:
        self._images = load_images(__file__)

    def validate(
        self, ctx: Context, obj: ContainerRuntime, cluster: Cluster
    ) -> Iterable[FieldProblem]:
        """Yield the problems of the spec."""
        yield from refuse_config(obj.spec)
        yield from _problems(obj)

    def reconcile(self, ctx: Context, obj: ContainerRuntime, cluster: Cluster) -> None:
        """Deploy the runtime to the pool's nodes, without waiting for it."""
        images = self._images.references(cluster, _IMAGE, in_shoot=True)
        shoot.deploy(ctx, obj, _managed_name(obj), _manifests(obj, images[_IMAGE]))

    def delete(self, ctx: Context, obj: ContainerRuntime, cluster: Cluster) -> None:
        """Remove the runtime from this pool."""
        shoot.withdraw(ctx, obj, _managed_name(obj))

    def migrate(self, ctx: Context, obj: ContainerRuntime, cluster: Cluster) -> None:
        """Keep the runtime on the nodes, and stop managing it from this seed."""
        shoot.withdraw(ctx, obj, _managed_name(obj), keep_objects=True)


def _managed_name(obj: ContainerRuntime) -> str:
    return f"extension-runtime-{obj.metadata.name}"


def _problems(obj: ContainerRuntime) -> Iterator[FieldProblem]:
    if not obj.spec.binary_path.startswith("/"):
        detail = f"{obj.spec.binary_path!r} is no absolute path; begin it with /"
        yield FieldProblem(field="spec.binaryPath", detail=detail)
    if not obj.spec.worker_pool.selector.match_labels:
        detail = "it matches no label; name those of the pool's nodes"
        yield FieldProblem(field="spec.workerPool.selector.matchLabels", detail=detail)


def _manifests(obj: ContainerRuntime, image: str) -> list[Raw]:
    name = f"local-runtime-{obj.metadata.name}"
    nodes = obj.spec.worker_pool.selector.match_labels
    scheduling = {"nodeSelector": dict(nodes)}
    binaries = {"hostPath": {"path": obj.spec.binary_path, "type": "DirectoryOrCreate"}}
    return [
        shoot.daemon_set(name, image, node_selector=nodes, mounts={"/target": binaries}),
        manifest("node.k8s.io/v1", "RuntimeClass", name, handler=_HANDLER, scheduling=scheduling),
    ]
