"""The AWS sample: the network and the control plane of a shoot on AWS.

    actuator run extensions.aws:extension
    actuator drill extensions.aws.rehearsal:AwsRehearsal

Read in this order: `infrastructure` and `controlplane` (the actuators), `config`, `credentials`,
`status`, `seed` (what they read and write in Kubernetes), `network`, `rules`, `address`, `tags`
(what they do in the cloud), `cloud`, `errors` (how), `policy` (with which rights); `rehearsal`
and `simulator` are for drills.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from extensions.aws.controlplane import AwsControlPlane
from extensions.aws.infrastructure import AwsInfrastructure

if TYPE_CHECKING:
    from generic import Manager

__all__ = ["AwsControlPlane", "AwsInfrastructure", "extension"]


def extension(manager: Manager) -> None:
    """Adds the sample's actuators to a manager.

    They talk to AWS, or to what boto3's AWS_ENDPOINT_URL names.
    """
    manager.add(AwsInfrastructure(), type="aws")
    manager.add(AwsControlPlane(), type="aws")
