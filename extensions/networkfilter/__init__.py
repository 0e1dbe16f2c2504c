"""The network filter sample: an extension that acts only inside the shoot.

    actuator run extensions.networkfilter:extension
    actuator drill --all extensions.networkfilter.rehearsal:NetworkFilterRehearsal

Read `actuator`, then `config` (providerConfig); `rehearsal` is for drills.
"""

import generic
from extensions.networkfilter.actuator import NetworkFilter


def extension(manager: generic.Manager) -> None:
    """Add the sample's actuator to a manager."""
    manager.add(NetworkFilter(), type="networking-filter")
