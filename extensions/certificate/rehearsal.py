"""CertificateRehearsal: shoots to break, for `actuator drill`, each with an issuer.

The vendor's controller does not run, so each shoot's Issuer keeps the finalizer that
CertificateService sets, until a force deletion.
"""

from collections.abc import Sequence
from typing import Any

from actuator import Actuator
from actuator.meta import Raw
from actuator.v1alpha1 import Extension
from extensions.certificate.actuator import CertificateService
from extensions.certificate.config import API_VERSION
from extensions.certificate.issuers import Issuer
from generic.kube.crds import crd
from generic.library.managedresources import ManagedResource
from generic.testing.drill.shoots import ShootRehearsal, extension_object
from generic.testing.rehearsal import RehearsedShoot

_CONFIG: Raw = {
    "apiVersion": API_VERSION,
    "kind": "CertificateConfig",
    "issuers": [{"name": "rehearsed", "server": "https://acme.example.org/directory"}],
}


class CertificateRehearsal(ShootRehearsal):
    """The shoots of the certificate sample."""

    title = "Certificates (the controller of the third party does not run)"

    def crds(self) -> Sequence[Raw]:
        """The vendor's Issuer, and Gardener's ManagedResource."""
        return [crd(Issuer), crd(ManagedResource)]

    def actuators(self) -> Sequence[Actuator[Any]]:
        """The extension's only actuator; no controller of Issuers."""
        return [CertificateService()]

    def manifests(self, shoot: RehearsedShoot) -> Sequence[Raw]:
        """One Extension."""
        spec: Raw = {"providerConfig": _CONFIG}
        return [extension_object(Extension, shoot, "certificate-service", spec)]
