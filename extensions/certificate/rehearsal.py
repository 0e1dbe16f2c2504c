"""CertificateRehearsal: shoots to break, for `actuator drill`, each with an issuer.

The vendor's controller does not run, so each shoot's Issuer keeps the finalizer that
CertificateService sets, until a force deletion.
"""

from typing import Any

from actuator import Actuator
from extensions.certificate.actuator import CertificateService
from extensions.certificate.issuers import Issuer
from generic.testing import ShootRehearsal


class CertificateRehearsal(ShootRehearsal):
    """The shoots of the certificate sample."""

    title = "Certificates (the controller of the third party does not run)"
    other_kinds = (Issuer,)

    def actuators(self) -> list[Actuator[Any]]:
        """The extension's only actuator; no controller of Issuers."""
        return [CertificateService()]
