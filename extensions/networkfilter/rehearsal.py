"""NetworkFilterRehearsal: shoots to break, for `actuator drill`, each with a filter."""

from collections.abc import Sequence
from typing import Any

from actuator import Actuator
from actuator.meta import Raw
from actuator.v1alpha1 import Extension
from extensions.networkfilter.actuator import NetworkFilter
from extensions.networkfilter.config import API_VERSION
from generic.kube.crds import crd
from generic.library.managedresources import ManagedResource
from generic.testing.drill.shoots import ShootRehearsal, extension_object
from generic.testing.rehearsal import RehearsedShoot

_CONFIG: Raw = {"apiVersion": API_VERSION, "kind": "FilterConfig", "blocked": ["203.0.113.0/24"]}


class NetworkFilterRehearsal(ShootRehearsal):
    """The shoots of the network filter sample."""

    title = "Network filter (only inside the shoots)"

    def crds(self) -> Sequence[Raw]:
        """Gardener's ManagedResource."""
        return [crd(ManagedResource)]

    def actuators(self) -> Sequence[Actuator[Any]]:
        """The extension's only actuator."""
        return [NetworkFilter()]

    def manifests(self, shoot: RehearsedShoot) -> Sequence[Raw]:
        """One Extension."""
        spec: Raw = {"providerConfig": _CONFIG}
        return [extension_object(Extension, shoot, "networking-filter", spec)]
