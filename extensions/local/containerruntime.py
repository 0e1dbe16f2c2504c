"""LocalContainerRuntime: a runtime beside containerd on one worker pool, asked for by a
ContainerRuntime.

In the shoot a DaemonSet that puts the binary onto the pool's nodes, and the RuntimeClass by which
pods choose it there; a ManagedResource of its own for each object. gardenlet asks once for every
pool, so everything, the RuntimeClass too, is named after the object: taking the runtime from one
pool leaves the others theirs.

A force deletion does nothing: what is in the shoot vanishes with the shoot, and gardenlet removes
the ManagedResource (Gardener documentation, "Force Deletion").
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from actuator import Actuator, Cluster, Context, FieldProblem
from actuator.meta import Raw
from actuator.v1alpha1 import ContainerRuntime
from extensions.local import shoot
from extensions.local.config import check_none
from generic.library.imagevector import load_images
from generic.library.managedresources import PERMISSIONS

_HANDLER = "local"


class LocalContainerRuntime(Actuator[ContainerRuntime]):
    """A DaemonSet and a RuntimeClass in the shoot."""

    permissions = PERMISSIONS

    def __init__(self) -> None:
        self._images = load_images(__file__)

    def validate(
        self, ctx: Context, obj: ContainerRuntime, cluster: Cluster
    ) -> Iterable[FieldProblem]:
        """What in the spec cannot work."""
        yield from check_none(obj.spec)
        yield from _problems(obj)

    def reconcile(self, ctx: Context, obj: ContainerRuntime, cluster: Cluster) -> None:
        """Afterwards the runtime is on its way to the pool's nodes."""
        image = self._images.find("local-runtime", cluster.kubernetes_version).reference
        shoot.deploy(ctx, obj, _managed_name(obj), _manifests(obj, image))

    def delete(self, ctx: Context, obj: ContainerRuntime, cluster: Cluster) -> None:
        """Afterwards this pool has no such runtime any more."""
        shoot.withdraw(ctx, obj, _managed_name(obj))

    def migrate(self, ctx: Context, obj: ContainerRuntime, cluster: Cluster) -> None:
        """Afterwards the nodes keep the runtime, and this seed does not touch it any more."""
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
    binaries = {"hostPath": {"path": obj.spec.binary_path, "type": "DirectoryOrCreate"}}
    return [
        shoot.daemon_set(name, image, node_selector=nodes, mounts={"/target": binaries}),
        shoot.runtime_class(name, _HANDLER, nodes),
    ]
