"""AzureRehearsal: shoots to break, for `actuator drill`, each with an address and a machine.

No remedy controller runs, so its objects keep their finalizers until a force deletion. Nothing here
uses Azure.
"""

from collections.abc import Sequence
from typing import Any

from actuator import Actuator
from actuator.meta import Object, Raw
from actuator.v1alpha1 import ControlPlane
from extensions.azurecontrolplane.actuator import AzureControlPlane
from extensions.azurecontrolplane.remedies import PublicIPAddress, VirtualMachine
from generic.kube.crds import crd
from generic.library.managedresources import ManagedResource
from generic.library.manifests import manifest, manifest_of
from generic.testing.drill.shoots import ShootRehearsal, extension_object
from generic.testing.rehearsal import RehearsedShoot


class AzureRehearsal(ShootRehearsal):
    """The shoots of the override sample."""

    title = "Control plane on Azure (without Azure)"
    takes_over = True

    def crds(self) -> Sequence[Raw]:
        """The remedy controller's kinds, and Gardener's ManagedResource."""
        return [crd(cls) for cls in (PublicIPAddress, VirtualMachine, ManagedResource)]

    def actuators(self) -> Sequence[Actuator[Any]]:
        """The extension's only actuator; no remedy controller."""
        return [AzureControlPlane()]

    def manifests(self, shoot: RehearsedShoot) -> Sequence[Raw]:
        """A ControlPlane with its credentials, and objects of a former remedy controller."""
        secret = {"name": "cloudprovider", "namespace": shoot.technical_id}
        spec: Raw = {"region": self.region, "secretRef": secret}
        return [
            manifest("v1", "Secret", **secret, labels=shoot.labels),
            extension_object(ControlPlane, shoot, "azure", spec),
            _held(PublicIPAddress, shoot, {"ipAddress": "203.0.113.7"}),
            _held(VirtualMachine, shoot, {"hostname": "node-1"}),
        ]


def _held(cls: type[Object], shoot: RehearsedShoot, spec: Raw) -> Raw:
    held = manifest_of(cls, "rehearsed", shoot.technical_id, shoot.labels, spec=spec)
    held["metadata"]["finalizers"] = [cls.KIND.finalizer]
    return held
