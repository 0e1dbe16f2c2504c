"""NetworkFilterRehearsal: shoots to break, for `actuator drill`, each with a filter."""

from typing import Any

from actuator import Actuator
from extensions.networkfilter.actuator import NetworkFilter
from generic.testing import ShootRehearsal


class NetworkFilterRehearsal(ShootRehearsal):
    """The shoots of the network filter sample."""

    title = "Network filter (only inside the shoots)"

    def actuators(self) -> list[Actuator[Any]]:
        """The extension's only actuator."""
        return [NetworkFilter()]
