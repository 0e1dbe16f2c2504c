"""The certificate sample: backed by another vendor's controller, in the seed and in the shoot.

    actuator run extensions.certificate:extension
    actuator drill --all extensions.certificate.rehearsal:CertificateRehearsal

Read `actuator`, then `config` (providerConfig) and `admission` (its checks in the garden).
`issuers` stands in for the vendor's kind and controller; `rehearsal` is for drills.
"""

import generic
from extensions.certificate.actuator import CertificateService
from extensions.certificate.issuers import IssuerController


def extension(manager: generic.Manager) -> None:
    """Add the sample's actuator, and the simulated controller of the vendor, to a manager."""
    manager.add(CertificateService(), type="certificate-service")
    manager.add(IssuerController())
