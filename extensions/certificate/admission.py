"""The admission of this extension, in the garden: users learn of mistakes when they write a Shoot.

actuator chart extensions.certificate.admission:admission --admission --output charts
"""

import generic
from actuator.v1alpha1 import Extension
from extensions.certificate.config import CertificateConfig
from generic.library.webhooks import ConfigAdmission

ISSUERS = ConfigAdmission(
    kind=Extension, config=CertificateConfig, type="certificate-service", defaults=True
)


def admission(manager: generic.Manager) -> None:
    """Add the admission of the configuration to a manager that runs against the garden."""
    manager.add_admission(ISSUERS)
