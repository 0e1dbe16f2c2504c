"""The local sample: an actuator for each kind that the AWS sample does not cover.

    actuator run extensions.local:extension
    actuator drill extensions.local.rehearsal:LocalRehearsal --scenario everything-fails

Read in this order: `operatingsystem`, `network`, `containerruntime`, `exposure`, `share` (the
actuators), `config` (providerConfig), `seed`, `shoot` and `holding` (resources in the seed, in the
shoot, outside), `outside` (a folder instead of a cloud), `userdata`; `mounts` stands in for another
controller, and `rehearsal` is for drills.
"""

import os
from pathlib import Path

import generic
from extensions.local.containerruntime import LocalContainerRuntime
from extensions.local.exposure import LocalExposure
from extensions.local.mounts import MountController
from extensions.local.network import LocalNetwork
from extensions.local.operatingsystem import LocalOperatingSystem
from extensions.local.outside import VARIABLE, Outside
from extensions.local.share import LocalExtension


def extension(manager: generic.Manager) -> None:
    """Add the sample's actuators, and the storage vendor's controller, to a manager.

    The outside is the folder that the environment variable LOCAL_OUTSIDE names, by default
    `local-outside` in the user's home; it is created if it does not exist. Raises OSError.
    """
    directory = Path(os.environ.get(VARIABLE) or Path.home() / "local-outside")
    directory.mkdir(parents=True, exist_ok=True)
    outside = Outside(directory)
    manager.add(LocalOperatingSystem(), type="local-os")
    manager.add(LocalNetwork(outside), type="local-net")
    manager.add(LocalContainerRuntime(), type="local-runtime")
    manager.add(LocalExposure(), type="local-exposure")
    manager.add(LocalExtension(outside), type="local-extension")
    manager.add(MountController())
