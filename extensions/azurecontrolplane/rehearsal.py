"""AzureRehearsal: shoots to break, for `actuator drill`, each with an address and a machine.

No remedy controller runs, so its objects keep their finalizers until a force deletion. Nothing here
uses Azure.
"""

from collections.abc import Sequence
from typing import Any

from actuator import Actuator, Object, Raw
from actuator.v1alpha1 import ControlPlane
from extensions.azurecontrolplane.actuator import AzureControlPlane
from extensions.azurecontrolplane.remedies import PublicIPAddress, VirtualMachine
from generic.library import manifest, manifest_of
from generic.testing import RehearsedShoot, ShootRehearsal, extension_object


class AzureRehearsal(ShootRehearsal):
    """The shoots of the override sample."""

    title = "Control plane on Azure (without Azure)"
    takes_over = True
    other_kinds = (PublicIPAddress, VirtualMachine)

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
