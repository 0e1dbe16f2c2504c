"""Rehearsals of the local sample that a test can afford to drill with everything."""

import itertools

import attrs

from actuator import Actuator, Resource, SeedObjects
from actuator.errors import ActuatorError
from actuator.meta import Raw
from actuator.v1alpha1 import Extension
from extensions.networkfilter.actuator import NetworkFilter
from extensions.networkfilter.rehearsal import NetworkFilterRehearsal
from extensions.relations.rehearsal import RelationsRehearsal
from generic.library import managedresources
from generic.library.manifests import manifest
from generic.library.references import GARBAGE_COLLECTABLE
from generic.testing.drill.shoots import extension_object
from generic.testing.rehearsal import Rehearsal
from tests.support.drills.moving_rehearsal import OneNetwork


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


class _First(Actuator[Extension, Raw]):
    """An object in the shoot, by a ManagedResource with the name of the type."""

    finalizer = "extensions.gardener.cloud/first"
    permissions = managedresources.PERMISSIONS

    def reconcile(self, ctx, obj, cluster):
        name = obj.metadata.name
        where = obj.metadata.namespace
        wanted = [manifest("v1", "ConfigMap", name, "kube-system", data=self.content())]
        managedresources.deploy_for_shoot(ctx.client, name, where, wanted, origin=name)

    def content(self):
        return {}

    def delete(self, ctx, obj, cluster):
        name = obj.metadata.name
        where = obj.metadata.namespace
        managedresources.delete(ctx.client, name, where, origin=name)
        if not cluster.needs_force_deletion:
            managedresources.check_deleted(
                ctx.client, ctx.clock, name, namespace=where, origin=name
            )

    def force_delete(self, ctx, obj, cluster):
        self.delete(ctx, obj, cluster)


class _Second(_First):
    finalizer = "extensions.gardener.cloud/second"


class _Rewriting(_First):
    """Replaces its objects, and so a Secret, in each reconciliation."""

    seed_objects = [SeedObjects(Resource("v1", "secrets"), label_selector=GARBAGE_COLLECTABLE)]
    _numbers = itertools.count()

    def reconcile(self, ctx, obj, cluster):
        for _ in range(2):
            super().reconcile(ctx, obj, cluster)

    def content(self):
        return {"number": str(next(self._numbers))}


class Rewriting(NetworkFilterRehearsal):
    """Leaves Secrets to the garbage collector of gardener-resource-manager."""

    title = "Rewriting"

    def actuators(self):
        return [_Rewriting()]

    def manifests(self, shoot):
        return [extension_object(Extension, shoot, "first", {"providerConfig": {"kind": "None"}})]


class TwoTypes(NetworkFilterRehearsal):
    """Two types of Extension, each with an actuator."""

    title = "Two types"
    type_suffixes = {_Second: "-second"}

    def actuators(self):
        return [_First(), _Second()]

    def manifests(self, shoot):
        second = attrs.evolve(shoot, type=f"{shoot.type}-second")
        given = {"providerConfig": {"kind": "None"}}
        return [
            extension_object(Extension, shoot, "first", given),
            extension_object(Extension, second, "second", given),
        ]


class _Keeping(_Second):
    """Deletes nothing."""

    def delete(self, ctx, obj, cluster): ...


class OneKeeps(TwoTypes):
    """The same, and the second actuator has a bug."""

    type_suffixes = {_Keeping: "-second"}

    def actuators(self):
        return [_First(), _Keeping()]


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
        for obj in found:
            if obj["kind"] == "Extension":
                obj["spec"]["type"] = "filter"
        return found
