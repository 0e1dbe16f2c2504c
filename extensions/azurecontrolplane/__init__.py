"""The override sample: the generic ControlPlane actuator, with additions for Azure.

    actuator run extensions.azurecontrolplane:extension
    actuator drill --all extensions.azurecontrolplane.rehearsal:AzureRehearsal

Read `actuator` (the override), then `remedies` (custom resources with finalizers of a control plane
controller) and `parts` (the manifests); `rehearsal` is for drills.
"""

import generic
from extensions.azurecontrolplane.actuator import AzureControlPlane


def extension(manager: generic.Manager) -> None:
    """Add the sample's actuator to a manager."""
    manager.add(AzureControlPlane(), type="azure")
