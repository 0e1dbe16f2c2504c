"""Rehearsals of the local sample that a test can afford to drill with everything."""

from moving import OneNetwork

from actuator.errors import ActuatorError
from extensions.networkfilter.actuator import NetworkFilter
from extensions.networkfilter.rehearsal import NetworkFilterRehearsal
from extensions.relations.rehearsal import RelationsRehearsal
from generic.testing.rehearsal import Rehearsal


class OneScenario(OneNetwork):
    """One of its scenarios, and an outside that is not shared, so there is no migration."""

    share = Rehearsal.share

    def __init__(self):
        super().__init__()
        self.scenarios = {"deletion-denied": self.scenarios["deletion-denied"]}


class TakesOverNothing(OneScenario):
    """Says that it has ManagedResources, and has none."""

    takes_over = True


class Unmarked(RelationsRehearsal):
    """Forgets to say that its kinds do not migrate."""

    never_migrates = False


class NoOutside(OneScenario):
    """Cannot even be started."""

    def start(self, directory):
        raise ActuatorError("the outside does not start")


class _NeverReady(NetworkFilter):
    def reconcile(self, ctx, obj, cluster):
        super().reconcile(ctx, obj, cluster)
        raise ActuatorError("the reason")


class NeverReady(NetworkFilterRehearsal):
    """No object becomes ready."""

    def actuators(self):
        return [_NeverReady()]


class AnotherType(NetworkFilterRehearsal):
    """Its manifests have the type of the extension, not that of the drill."""

    def manifests(self, shoot):
        found = list(super().manifests(shoot))
        for one in found:
            if one["kind"] == "Extension":
                one["spec"]["type"] = "filter"
        return found
