"""Rehearsals with a bug each that only a crash at the right moment shows, for the explorer."""

from __future__ import annotations

import uuid
from typing import Any

from actuator import Actuator
from actuator.interface import ExternalResource, resource_of
from actuator.meta import Raw
from actuator.v1alpha1 import Network
from extensions.local.outside import Outside, Thing
from extensions.local.rehearsal import LocalRehearsal
from generic.rehearsal import RehearsedShoot

NETWORK = "Local::Network"


class Forgetful(Actuator[Network]):
    """Makes a thing before it looks for its own mark."""

    def __init__(self, outside: Outside) -> None:
        self.outside = outside

    def reconcile(self, ctx: Any, obj: Any, cluster: Any) -> None:
        if obj.status.state is None:
            mark = {"shoot": obj.metadata.namespace}
            id = uuid.uuid4().hex
            self.outside.ensure(Thing(type=NETWORK, id=id, tags=mark))
            obj.status.state = {"id": id}

    def delete(self, ctx: Any, obj: Any, cluster: Any) -> None:
        for thing in self.outside.find({"shoot": obj.metadata.namespace}):
            self.outside.delete(thing.id, thing.tags)

    def external_resources(self, obj: Any) -> list[ExternalResource]:
        mark = {"shoot": obj.metadata.namespace}
        return [ExternalResource(type=NETWORK, tags=mark)] if obj.status.state else []


class Hasty(Forgetful):
    """Lets the object go before it cleans up."""

    def delete(self, ctx: Any, obj: Any, cluster: Any) -> None:
        meta, kind = obj.metadata, obj.KIND
        rest = [one for one in meta.finalizers if one != kind.finalizer]
        patch = {"metadata": {"finalizers": rest}}
        ctx.client.patch(resource_of(kind), meta.name, meta.namespace, patch)
        super().delete(ctx, obj, cluster)


class Wiping(Forgetful):
    """Takes everybody's finalizers off, as Go's library does on migrate."""

    def migrate(self, ctx: Any, obj: Any, cluster: Any) -> None:
        meta = obj.metadata
        patch = {"metadata": {"finalizers": None}}
        ctx.client.patch(resource_of(obj.KIND), meta.name, meta.namespace, patch)


class Silent(Forgetful):
    """Says nothing of what it leaves outside."""

    def external_resources(self, obj: Any) -> list[ExternalResource]:
        return []


class Stubborn(Forgetful):
    """Never gets through once it was interrupted."""

    def reconcile(self, ctx: Any, obj: Any, cluster: Any) -> None:
        mark = {"shoot": obj.metadata.namespace}
        if self.outside.find(mark) and obj.status.state is None:
            raise RuntimeError("somebody was here before")
        super().reconcile(ctx, obj, cluster)


class _Rehearsal(LocalRehearsal):
    actuator: type[Forgetful]

    def actuators(self) -> list[Actuator[Any]]:
        found = super().actuators()
        outside = next(one for one in found if type(one).__name__ == "LocalNetwork")._outside
        return [self.actuator(outside)]

    def manifests(self, shoot: RehearsedShoot) -> list[Raw]:
        return [one for one in super().manifests(shoot) if one["kind"] == Network.KIND.name]


class ForgetfulRehearsal(_Rehearsal):
    actuator = Forgetful


class HastyRehearsal(_Rehearsal):
    actuator = Hasty


class WipingRehearsal(_Rehearsal):
    actuator = Wiping


class SilentRehearsal(_Rehearsal):
    actuator = Silent


class StubbornRehearsal(_Rehearsal):
    actuator = Stubborn
