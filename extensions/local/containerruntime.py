"""LocalContainerRuntime: a runtime beside containerd on one worker pool, for a ContainerRuntime.

In the shoot: a DaemonSet that installs the binary on the pool's nodes, and the RuntimeClass with
which pods select it; each object has its own ManagedResource. gardenlet creates an object per pool,
so all resources, including the RuntimeClass, are named after the object: removing the runtime from
one pool does not affect the others.
"""

from collections.abc import Iterator

from actuator import Cluster, Context, FieldProblem, Raw
from actuator.v1alpha1 import ContainerRuntime
from extensions.local import shoot
from generic.library import load_images, manifest
from generic.library.managedresources import ManagedResourceActuator

_HANDLER = "local"
_IMAGE = "local-runtime"


class LocalContainerRuntime(ManagedResourceActuator[ContainerRuntime]):
    """A DaemonSet and a RuntimeClass in the shoot."""

    managed_name = "extension-runtime-{name}"
    origin = shoot.ORIGIN

    def __init__(self) -> None:
        self._images = load_images(__file__)

    def validate(
        self, ctx: Context, obj: ContainerRuntime, cluster: Cluster
    ) -> Iterator[FieldProblem]:
        """Yield the problems of the spec."""
        if not obj.spec.binary_path.startswith("/"):
            detail = f"{obj.spec.binary_path!r} is no absolute path; begin it with /"
            yield FieldProblem(field="spec.binaryPath", detail=detail)
        if not obj.spec.worker_pool.selector.match_labels:
            detail = "it matches no label; name those of the pool's nodes"
            yield FieldProblem(field="spec.workerPool.selector.matchLabels", detail=detail)

    def manifests(self, ctx: Context, obj: ContainerRuntime, cluster: Cluster) -> list[Raw]:
        """Return the program for the pool's nodes, and its RuntimeClass."""
        image = self._images.references(cluster, _IMAGE, in_shoot=True)[_IMAGE]
        name = f"local-runtime-{obj.metadata.name}"
        nodes = obj.spec.worker_pool.selector.match_labels
        binaries = {"hostPath": {"path": obj.spec.binary_path, "type": "DirectoryOrCreate"}}
        pool = {"nodeSelector": dict(nodes)}
        return [
            shoot.daemon_set(name, image, node_selector=nodes, mounts={"/target": binaries}),
            manifest("node.k8s.io/v1", "RuntimeClass", name, handler=_HANDLER, scheduling=pool),
        ]
