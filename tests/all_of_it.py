"""Rehearsals of the local sample that a test can afford to drill with everything."""

from moving import OneNetwork

from actuator.errors import ActuatorError
from generic.testing.rehearsal import Rehearsal


class OneScenario(OneNetwork):
    """One of its scenarios, and an outside that is not shared, so there is no migration."""

    share = Rehearsal.share

    def __init__(self):
        super().__init__()
        self.scenarios = {"deletion-denied": self.scenarios["deletion-denied"]}


class NoOutside(OneScenario):
    """Cannot even be started."""

    def start(self, directory):
        raise ActuatorError("the outside does not start")
