"""The network filter sample: an extension that acts only inside the shoot.

    actuator run extensions.networkfilter:extension
    actuator drill --all extensions.networkfilter.rehearsal:NetworkFilterRehearsal

Read `actuator`, then `config` (what users may write) and `shoot` (what gets into the shoot);
`rehearsal` is for drills.
"""

from __future__ import annotations

import generic
from extensions.networkfilter.actuator import NetworkFilter
from extensions.networkfilter.config import FilterConfig

__all__ = ["FilterConfig", "NetworkFilter", "extension"]


def extension(manager: generic.Manager) -> None:
    """Adds the sample's actuator to a manager."""
    manager.add(NetworkFilter(), type="networking-filter")
