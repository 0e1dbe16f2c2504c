"""An extension that works in its shoots, by a ManagedResource and by itself, and its rehearsal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from actuator import (
    SHOOT_ACCESS,
    Actuator,
    ActuatorError,
    Cluster,
    Context,
    ErrorCode,
    ExternalResource,
    Resource,
)
from actuator.meta import Raw
from actuator.v1alpha1 import Extension
from generic.library import managedresources
from generic.library.manifests import manifest
from generic.testing.drill.shoots import extension_object
from generic.testing.rehearsal import Rehearsal, RehearsedShoot

PROFILE = {"kind": "AcmeProfile"}
CONFIG_MAPS = Resource("v1", "configmaps")


class Inside(managedresources.ManagedResourceActuator[Extension]):
    """Deploys one object by a ManagedResource, and another one itself; in a drill also a file."""

    finalizer = "extensions.gardener.cloud/inside"
    permissions = (*managedresources.PERMISSIONS, SHOOT_ACCESS)

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder

    def manifests(self, ctx: Context, obj: Extension, cluster: Cluster) -> list[Raw]:
        return [manifest("v1", "ConfigMap", "managed", "kube-system", data={"a": "b"})]

    def reconcile(self, ctx: Context, obj: Extension, cluster: Cluster) -> None:
        if self._folder and cluster.provider_profile != PROFILE:
            raise ActuatorError(f"the CloudProfile is {cluster.cloud_profile}")
        if not cluster.hibernation_enabled:
            ctx.shoot.apply(CONFIG_MAPS, manifest("v1", "ConfigMap", "own", "kube-system"))
        if self._folder:
            obj.status.state = {"file": obj.metadata.namespace}
            ctx.save(obj)
            (self._folder / obj.metadata.namespace).touch()
        super().reconcile(ctx, obj, cluster)

    def delete(self, ctx: Context, obj: Extension, cluster: Cluster) -> None:
        if self._folder and (self._folder / "refused").exists():
            raise ActuatorError("refused", codes=[ErrorCode.ERR_CLEANUP_CLUSTER_RESOURCES])
        super().delete(ctx, obj, cluster)
        if self._folder:
            (self._folder / obj.metadata.namespace).unlink(missing_ok=True)

    def external_resources(self, obj: Extension) -> list[ExternalResource]:
        return [file_of(obj.status.state["file"])] if obj.status.state else []


def file_of(shoot: str) -> ExternalResource:
    return ExternalResource(type="File", id=shoot, tags={"shoot": shoot})


class InsideRehearsal(Rehearsal):
    """Its shoots have API servers, and a file outside for each."""

    title = "Inside"
    region = "here"
    scenarios = {"refused": "Deletions are refused."}
    with_shoot_api = True

    def start(self, directory: Path) -> None:
        self._folder = directory

    def share(self) -> dict[str, str]:
        return {"folder": str(self._folder)}

    def attach(self, shared: Any) -> None:
        self._folder = Path(shared["folder"])

    def actuators(self) -> list[Actuator[Any]]:
        return [Inside(self._folder)]

    def manifests(self, shoot: RehearsedShoot) -> list[Raw]:
        return [extension_object(Extension, shoot, "x", {})]

    def cluster(self, shoot: RehearsedShoot) -> Raw:
        return {"cloudProfile": {"spec": {"providerConfig": PROFILE}}}

    def inject_failure(self, scenario: str) -> None:
        (self._folder / "refused").touch()

    def repair_failure(self) -> None:
        (self._folder / "refused").unlink(missing_ok=True)

    def remaining_resources(self) -> list[ExternalResource]:
        return [file_of(path.name) for path in self._folder.glob("shoot--*")]
