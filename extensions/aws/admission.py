"""The admission of this extension, in the garden: users learn of mistakes when they write a Shoot.

actuator chart extensions.aws.admission:admission --admission --output charts
"""

import generic
from actuator.v1alpha1 import ControlPlane, Infrastructure, Worker
from extensions.aws import config
from generic.library.webhooks import CloudProfile, ConfigAdmission

ADMISSIONS = [
    ConfigAdmission(kind=Infrastructure, config=config.InfrastructureConfig, type="aws"),
    ConfigAdmission(kind=ControlPlane, config=config.ControlPlaneConfig, type="aws"),
    ConfigAdmission(kind=Worker, config=config.WorkerConfig, type="aws"),
    ConfigAdmission(kind=CloudProfile, config=config.CloudProfileConfig, type="aws"),
]


def admission(manager: generic.Manager) -> None:
    """Add the admission of the configurations to a manager that runs against the garden."""
    manager.add_admission(*ADMISSIONS)
