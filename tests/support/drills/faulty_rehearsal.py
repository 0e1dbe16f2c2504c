"""A rehearsal with a bug in each operation; most show only after a crash at the right moment."""

from __future__ import annotations

import uuid
from typing import Any

from actuator import Actuator
from actuator.interface import ExternalResource, resource_of
from actuator.meta import Raw
from actuator.v1alpha1 import Network
from extensions.local.outside import Outside, OutsideResource
from extensions.local.rehearsal import LocalRehearsal
from generic.testing.rehearsal import RehearsedShoot

NETWORK = "Local::Network"


class Careless(Actuator[Network]):
    """One thing outside, and no care."""

    def __init__(self, outside: Outside) -> None:
        self.outside = outside

    def reconcile(self, ctx: Any, obj: Any, cluster: Any) -> None:
        """Makes a thing before it looks for its own mark."""
        if obj.status.state is None:
            mark = {"shoot": obj.metadata.namespace}
            id = uuid.uuid4().hex
            self.outside.ensure(OutsideResource(type=NETWORK, id=id, tags=mark))
            obj.status.state = {"id": id}

    def delete(self, ctx: Any, obj: Any, cluster: Any) -> None:
        """Lets the object go before it cleans up."""
        meta = obj.metadata
        kind = obj.KIND
        rest = [finalizer for finalizer in meta.finalizers if finalizer != kind.finalizer]
        patch = {"metadata": {"finalizers": rest}}
        ctx.client.patch(resource_of(kind), meta.name, meta.namespace, patch)
        for thing in self.outside.find({"shoot": obj.metadata.namespace}):
            self.outside.delete(thing.id, thing.tags)

    def force_delete(self, ctx: Any, obj: Any, cluster: Any) -> None:
        """Leaves the thing where it is."""

    def external_resources(self, obj: Any) -> list[ExternalResource]:
        """Says nothing of it."""
        return []

    def migrate(self, ctx: Any, obj: Any, cluster: Any) -> None:
        """Removes all finalizers, as Go's library does."""
        meta = obj.metadata
        patch = {"metadata": {"finalizers": None}}
        ctx.client.patch(resource_of(obj.KIND), meta.name, meta.namespace, patch)

    def restore(self, ctx: Any, obj: Any, cluster: Any) -> None:
        """Never gets through once it was interrupted."""
        known = obj.status.state
        if "begun" in known:
            raise RuntimeError("somebody was here before")
        obj.status.state = {**known, "begun": True}
        ctx.save(obj)
        obj.status.state = known


class CarelessRehearsal(LocalRehearsal):
    """The local sample's outside, with that instead of its actuators."""

    def actuators(self) -> list[Actuator[Any]]:
        return [Careless(self._open(self._outside))]

    def manifests(self, shoot: RehearsedShoot) -> list[Raw]:
        return [
            manifest
            for manifest in super().manifests(shoot)
            if manifest["kind"] == Network.KIND.name
        ]
