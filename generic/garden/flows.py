"""Flow: gardenlet's whole flows for one shoot in one seed; each returns when it is done.

Create, delete, force-delete, migrate, restore: the order is `order`'s, the steps are `Garden`'s.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

from actuator.errors import ActuatorError, NotFound
from actuator.meta import Kind, Raw
from generic.garden import order
from generic.garden.cleanup import (
    clear_machines,
    clear_managed_resources,
    clear_rest,
    hand_over_machines,
    managed_resources_left,
)
from generic.garden.gardenlet import NAMESPACES, Garden
from generic.garden.readiness import error_of, not_migrated_because, not_ready_because
from generic.garden.shoot import Shoot
from generic.garden.state import ShootState, collect, put_back, put_back_resources

__all__ = ["Flow"]

_POLL = 0.2
_CLEARED = 30.0
_DELETED = 300.0


class Flow:
    """What gardenlet does for one shoot, from beginning to end.

    `kinds` are those that extensions serve in this seed. A wait ends after gardenlet's own time,
    or after `patience` seconds if that is less, with an ActuatorError that says what is missing.
    """

    def __init__(
        self, garden: Garden, shoot: Shoot, kinds: Sequence[Kind], *, patience: float = _DELETED
    ) -> None:
        self._garden = garden
        self._client = garden.client
        self._shoot = shoot
        self._kinds = kinds
        self._patience = patience

    def create(self, manifests: Sequence[Raw]) -> None:
        """Namespace, Cluster, then all objects, stage by stage, until they are ready."""
        self._garden.create_namespace(self._shoot)
        names = {kind.name for kind in self._kinds}
        for manifest in manifests:
            if manifest["kind"] not in names:
                self._garden.deploy(manifest)
        for kinds in order.in_stages(order.CREATION, self._kinds):
            self._deploy(kinds, manifests, "reconcile")
            self._wait(kinds, not_ready_because)

    def reconcile(self) -> None:
        """Asks for a reconciliation of all objects, stage by stage, until they are ready."""
        asked = [kind for kind in self._kinds if kind.has_operation_annotation]
        for kinds in order.in_stages(order.CREATION, asked):
            self._ask(kinds, "reconcile")
            self._wait(kinds, not_ready_because)

    def delete(self) -> None:
        """The normal deletion: objects stage by stage, Cluster, namespace."""
        self._garden.mark_deleted(self._shoot)
        self._delete_in(order.DELETION, self._kinds)
        self._garden.finish(self._shoot)
        self._wait_for_namespace()

    def force_delete(self) -> None:
        """The forced one: nearly everything at once, and what holds the namespace is let go of.

        Kinds that have no part in it are still there afterwards; see `delete_afterwards`.
        """
        self._garden.mark_deleted(self._shoot)
        before, *at_once = order.FORCED
        self._delete_in([before], self._kinds, force=True)
        self._garden.force(self._shoot)
        self._delete_in(at_once, self._kinds, force=True)
        self.clear()
        self._wait_for_namespace()

    def clear(self) -> None:
        """Machine objects, ManagedResources, ConfigMaps and Secrets go; Cluster and namespace too.

        The namespace may take some seconds longer.
        """
        namespace = self._shoot.technical_id
        clear_machines(self._client, namespace)
        clear_managed_resources(self._client, namespace)
        self._until(lambda: managed_resources_left(self._client, namespace), _CLEARED)
        clear_rest(self._client, namespace)
        self._garden.finish(self._shoot)

    def delete_afterwards(self) -> None:
        """What a force deletion leaves to the garden is deleted normally."""
        self._delete_in(order.AFTERWARDS, self._kinds)

    def part(self) -> None:
        """What cannot move is deleted, before anything else does; a seed's own things stay."""
        gone = [k for k in self._kinds if not k.migratable and k.name not in order.STAYS]
        self._delete_in(order.DELETION, gone)

    def migrate(self) -> ShootState:
        """Everything lets go of the shoot in this seed; returns what the other seed needs."""
        self.part()
        moving = [kind for kind in self._kinds if kind.migratable]
        state = ShootState()
        for number, kinds in enumerate(order.in_stages(order.MIGRATION, moving)):
            self._ask(kinds, "migrate")
            awaited = [kind for kind in kinds if kind.name not in order.NOT_AWAITED]
            self._wait(awaited, not_migrated_because)
            if number == 0:
                state = collect(self._garden, self._shoot, moving)
            self._delete_in(order.MIGRATION, kinds)
        hand_over_machines(self._client, self._shoot.technical_id)
        self._garden.finish(self._shoot)
        self._wait_for_namespace()
        return state

    def restore(self, manifests: Sequence[Raw], state: ShootState) -> None:
        """Creates the shoot in this seed from what another seed knew, until all is ready."""
        self._garden.create_namespace(self._shoot)
        put_back_resources(self._client, self._shoot, state)
        names = {kind.name for kind in self._kinds}
        there = {(r["kind"], r["metadata"]["name"]) for r in state.resources}
        for manifest in manifests:
            known = (manifest["kind"], manifest["metadata"]["name"]) in there
            if manifest["kind"] not in names and not known:
                self._garden.deploy(manifest)
        moving = [kind for kind in self._kinds if kind.migratable]
        for kinds in order.in_stages(order.CREATION, moving):
            self._deploy(kinds, manifests, "wait-for-state")
            for kind, obj in self._objects(kinds):
                put_back(self._client, kind, obj, state.of(kind.name, obj["metadata"]["name"]))
            self._ask(kinds, "restore")
            self._wait(kinds, not_ready_because)

    def _deploy(self, kinds: Iterable[Kind], manifests: Iterable[Raw], operation: str) -> None:
        names = {kind.name for kind in kinds}
        for manifest in manifests:
            if manifest["kind"] in names:
                self._garden.deploy(manifest, operation)

    def _ask(self, kinds: Iterable[Kind], operation: str) -> None:
        for kind, obj in self._objects(kinds):
            meta = obj["metadata"]
            self._garden.ask(kind, meta.get("namespace", ""), meta["name"], operation)

    def _delete_in(
        self, stages: order.Stages, kinds: Iterable[Kind], *, force: bool = False
    ) -> None:
        for stage in order.in_stages(stages, kinds):
            for kind, obj in self._objects(stage):
                meta = obj["metadata"]
                where = (meta.get("namespace", ""), meta["name"])
                self._garden.delete(kind, *where, force=force)
            self._wait(stage, _still_there)

    def _objects(self, kinds: Iterable[Kind]) -> list[tuple[Kind, Raw]]:
        return [(kind, obj) for kind in kinds for obj in self._garden.objects(kind, self._shoot)]

    def _wait(self, kinds: Sequence[Kind], missing: Callable[[Raw], str | None]) -> None:
        """Until nothing is missing from any object of these kinds."""

        def problems() -> list[str]:
            return [
                f"{kind.name} {obj['metadata']['name']}: {problem}"
                for kind, obj in self._objects(kinds)
                if (problem := missing(obj)) is not None
            ]

        self._until(problems, max(map(order.seconds, kinds), default=0.0))

    def _wait_for_namespace(self) -> None:
        """Nothing holds the namespace."""
        namespace = self._shoot.technical_id

        def still_there() -> list[str]:
            try:
                self._client.get(NAMESPACES, namespace)
            except NotFound:
                return []
            return [f"Namespace {namespace} is still there"]

        self._until(still_there, _DELETED)

    def _until(self, problems: Callable[[], Sequence[str]], seconds: float) -> None:
        limit = min(seconds, self._patience)
        deadline = time.monotonic() + limit
        while left := problems():
            if time.monotonic() > deadline:
                raise ActuatorError(
                    f"shoot {self._shoot.name}: after {limit:.0f} s still waiting for "
                    f"{'; '.join(left)}"
                )
            time.sleep(_POLL)


def _still_there(obj: Raw) -> str:
    error = error_of(obj)
    if error is None:
        return "still there"
    codes = f" ({', '.join(error['codes'])})" if error.get("codes") else ""
    return f"still there: {error.get('description')}{codes}"
