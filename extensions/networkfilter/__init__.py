"""The network filter sample: an extension that acts inside the shoot, and on its nodes.

    actuator run extensions.networkfilter:extension
    actuator drill --all extensions.networkfilter.rehearsal:NetworkFilterRehearsal

Read `actuator`, then `config` (providerConfig) and `webhooks` (nodes); `rehearsal` is for drills.
"""

import generic
from extensions.networkfilter.actuator import NetworkFilter
from extensions.networkfilter.webhooks import TYPE, add_filter


def extension(manager: generic.Manager) -> None:
    """Add the sample's actuator and webhook to a manager."""
    manager.add(NetworkFilter(), type=TYPE)
    manager.add_webhooks(add_filter)
