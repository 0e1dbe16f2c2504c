"""Flow: gardenlet's complete flows for one shoot in one seed; each returns when it is finished.

Create, reconcile, hibernate, delete, force-delete, migrate, restore: the order is in `order`, the
steps are in `Garden`, and in `cleanup.OWN` for the objects that gardenlet deletes itself.
"""

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial

from actuator.cluster import Cluster
from actuator.codec import decode
from actuator.errors import ActuatorError
from actuator.interface import resource_of
from actuator.meta import Kind, Raw
from generic.kube.clusters import CLUSTERS, NAMESPACES
from generic.library.lookup import find
from generic.testing.garden import order
from generic.testing.garden.cleanup import OWN
from generic.testing.garden.gardenlet import Garden, SeedShoot, create_missing
from generic.testing.garden.readiness import (
    error_of,
    not_migrated_because,
    not_ready_because,
    progress_of,
)
from generic.testing.garden.state import ShootState, collect, put_back, put_back_resources
from generic.testing.polling import wait_while

_POLL = 0.2
_DELETED = 300.0
_NAMESPACE_DELETED = 900.0
_LAST = {"cluster": CLUSTERS, "namespace": NAMESPACES}


class GardenletFlows:
    """gardenlet's flows for one shoot.

    `kinds` are those that extensions serve in this seed. A wait ends after gardenlet's timeout, or
    after `patience` seconds if that is less, with an ActuatorError that names the missing state.
    `scale` multiplies gardenlet's timeouts, and its thresholds for errors, which apply only then.
    `progress` receives the states that a wait sees, at each look.
    """

    def __init__(
        self,
        garden: Garden,
        shoot: SeedShoot,
        kinds: Sequence[Kind],
        *,
        patience: float = _DELETED,
        progress: Callable[[str], None] = lambda _: None,
        scale: float | None = None,
    ) -> None:
        self._garden = garden
        self._client = garden.client
        self._shoot = shoot
        self._kinds = order.distinct(kinds)
        self._moving = [kind for kind in self._kinds if kind.migratable]
        self._patience = patience
        self._progress = progress
        self._scale = scale
        self._sync = partial(garden.sync, shoot)

    def create(self, manifests: Sequence[Raw]) -> None:
        """Create namespace and Cluster, then all objects, stage by stage, until they are ready."""
        self._garden.create_namespace(self._shoot)
        self.reconcile(manifests, type="Create")

    def reconcile(
        self, manifests: Sequence[Raw], *, type: str = "Reconcile", hibernated: bool = False
    ) -> None:
        """Reconcile all objects, stage by stage, until they are ready; create the missing ones.

        Also for a retry after an error, and to wake up a shoot. `hibernated`: the shoot
        hibernates; its DNSRecords are deleted at the end.
        """
        resting = order.ON_REQUEST - (order.WOKEN if self._wakes(hibernated) else frozenset())
        self._sync(type, spec={"hibernation": {"enabled": hibernated}})
        self._deploy_others(manifests)
        asleep = order.ASLEEP[0] if hibernated else frozenset()
        awake = [kind for kind in self._kinds if kind.name not in asleep]
        stages = order.CREATION if type == "Create" else order.LATER
        for kinds in order.in_stages(stages, awake):
            self.deploy(kinds, manifests, "reconcile", resting)
            self.wait(kinds, not_ready_because, manifests)
        self._check_there(self._objects(awake), manifests, awake)
        self._go([asleep], self._kinds)
        self._sync(type, "Succeeded", status={"hibernated": hibernated})

    def delete(self, manifests: Sequence[Raw] = ()) -> None:
        """Delete normally, or retry: objects stage by stage, then namespace and Cluster.

        With `manifests`, deploy the control plane and DNSRecords of a hibernated shoot first.
        """
        self._go(order.DELETION[:1], self._kinds)
        self._garden.mark_deleted(self._shoot)
        self._redeploy(manifests)
        self._go(order.DELETION[1:], self._kinds)

    def force_delete(self) -> None:
        """Force-delete: nearly all kinds at once, and the finalizers that block the namespace.

        Kinds without force deletion remain; see `delete_afterwards`.
        """
        self._go(order.FORCED[:1], self._kinds, force=True)
        self._garden.force(self._shoot)
        self._go(order.FORCED[1:], self._kinds, force=True)

    def clear(self) -> None:
        """Force-delete the shoot without its kinds; the namespace may take some seconds longer."""
        self._go(order.FORCED[:-1], ())
        self._garden.finish(self._shoot, [NAMESPACES])

    def delete_afterwards(self) -> None:
        """Delete the kinds that a force deletion leaves to the garden normally."""
        self._go(order.AFTERWARDS, self._kinds)

    def part(self) -> None:
        """Delete the kinds that cannot migrate, before the others migrate; the seed's own stay."""
        gone = [k for k in self._kinds if k not in self._moving and k.name not in order.STAYS]
        self._go(order.STAYING, gone)

    def begin_migration(self) -> ShootState:
        """Migrate the first stage; return the state for the other seed."""
        self._sync("Migrate")
        self.part()
        self._migrate(order.MIGRATION[0])
        return collect(self._garden, self._shoot, self._moving)

    def migrate(self) -> ShootState:
        """Migrate all objects and delete them in this seed; return the state for the other."""
        state = self.begin_migration()
        self.end_migration()
        return state

    def end_migration(self) -> None:
        """Migrate the other stages too, and delete all objects."""
        for stage, deletion in zip(order.MIGRATION, order.MIGRATED, strict=True):
            if stage is not order.MIGRATION[0]:
                self._migrate(stage)
            self._go(deletion, self._moving)

    def restore(self, manifests: Sequence[Raw], state: ShootState) -> None:
        """Create the shoot in this seed from the state of another, until all objects are ready."""
        create_missing(self._client, self._shoot.cluster("Restore"), self._shoot.namespace())
        self._sync("Restore")
        put_back_resources(self._client, self._shoot, state)
        self._deploy_others(manifests)
        for kinds in order.in_stages(order.LATER, self._moving):
            self.deploy(kinds, manifests, "wait-for-state")
            for kind, obj in self._objects(kinds):
                put_back(self._client, kind, obj, state.of(kind.name, obj["metadata"]["name"]))
            self.ask(kinds, "restore")
            self.wait(kinds, not_ready_because, manifests)
        self._check_there(self._objects(self._moving), manifests, self._moving)
        self._sync("Restore", "Succeeded")

    def _wakes(self, hibernated: bool) -> bool:
        """Whether the shoot hibernates, and shall not any longer."""
        found = None if hibernated else find(self._client, CLUSTERS, self._shoot.technical_id)
        return found is not None and decode(Cluster, found).is_hibernated

    def _deploy_others(self, manifests: Iterable[Raw]) -> None:
        served = {kind.name for kind in self._kinds}
        for manifest in manifests:
            if manifest["kind"] not in served:
                self._garden.deploy(manifest)

    def deploy(
        self,
        kinds: Iterable[Kind],
        manifests: Iterable[Raw],
        operation: str,
        resting: Collection[str] = order.ON_REQUEST,
    ) -> None:
        """Create the objects of these kinds, or request the operation for existing ones."""
        names = {kind.name for kind in kinds}
        for manifest in manifests:
            if manifest["kind"] in names:
                self._garden.deploy(manifest, operation, resting)

    def ask(self, kinds: Iterable[Kind], operation: str) -> None:
        """Request an operation for all objects of these kinds."""
        for kind, obj in self._objects(kinds):
            meta = obj["metadata"]
            self._garden.ask(kind, meta.get("namespace", ""), meta["name"], operation)

    def remove(self, kinds: Iterable[Kind], *, force: bool = False) -> None:
        """Request the deletion of all objects of these kinds, forced or not."""
        for kind, obj in self._objects(kinds):
            meta = obj["metadata"]
            self._garden.delete(kind, meta.get("namespace", ""), meta["name"], force=force)

    def _redeploy(self, manifests: Sequence[Raw]) -> None:
        """Wake the control plane, unless it was never complete or its deletion has begun."""
        there = [(kind.name, obj) for kind, obj in self._objects(self._kinds)]
        planes = [obj["metadata"] for name, obj in there if name == "ControlPlane"]
        networks = [obj.get("status") or {} for name, obj in there if name == "Infrastructure"]
        complete = all("providerStatus" in status for status in networks)
        if planes and complete and not any("deletionTimestamp" in meta for meta in planes):
            for kinds in order.in_stages(order.REDEPLOYED, self._kinds):
                self.deploy(kinds, manifests, "reconcile")
                self.wait(kinds, not_ready_because)

    def _migrate(self, stage: frozenset[str]) -> None:
        kinds = next(order.in_stages([stage], self._moving), [])
        self.ask(kinds, "migrate")
        self.wait([k for k in kinds if k.name not in order.NOT_AWAITED], not_migrated_because)

    def _go(self, stages: order.Stages, kinds: Sequence[Kind], *, force: bool = False) -> None:
        """Delete the objects of the kinds and gardenlet's own, stage by stage."""
        seed = (self._client, self._shoot.technical_id)
        for stage in stages:
            found = next(order.in_stages([stage], kinds), [])
            self.remove(found, force=force)
            own = [item for name in sorted(stage & OWN.keys()) for item in OWN[name]]
            for item in own:
                item.act(*seed)
            self.wait(found, still_there)
            for element in own:
                self._until(partial(element.left, *seed), element.seconds)
            self._garden.finish(self._shoot, [_LAST[name] for name in stage & _LAST.keys()])
            if "namespace" in stage:
                self._until(self._namespace_left, _NAMESPACE_DELETED)

    def _objects(self, kinds: Iterable[Kind]) -> list[tuple[Kind, Raw]]:
        return [(kind, obj) for kind in kinds for obj in self._garden.objects(kind, self._shoot)]

    def wait(
        self,
        kinds: Sequence[Kind],
        missing: Callable[[Raw], str | None],
        manifests: Sequence[Raw] = (),
    ) -> None:
        """Wait until `missing` returned None for each of these objects.

        Raises ActuatorError, also if an object of the manifests is deleted meanwhile.
        """
        awaited = {kind.name for kind in kinds}
        began = time.monotonic()

        def problems() -> list[str]:
            looked_at = [kind for kind in kinds if kind.name in awaited]
            objects = self._objects(looked_at)
            self._check_there(objects, manifests, looked_at)
            found = [
                (kind.name, obj, problem)
                for kind, obj in objects
                if (problem := missing(obj)) is not None
            ]
            awaited.intersection_update({kind for kind, _, _ in found})
            if missing is not_ready_because:
                self._check_errors([(kind, obj) for kind, obj, _ in found], began)
            return [f"{kind} {obj['metadata']['name']}: {problem}" for kind, obj, problem in found]

        self._until(problems, max(map(order.seconds, kinds), default=0.0))
        if missing is not_ready_because:
            self._forget_machines(kinds)

    def _check_there(
        self,
        objects: Iterable[tuple[Kind, Raw]],
        manifests: Iterable[Raw],
        kinds: Iterable[Kind],
    ) -> None:
        """Raise ActuatorError if one of the manifests of these kinds has no lasting object."""
        names = {kind.name for kind in kinds}
        wanted = {(manifest["kind"], manifest["metadata"]["name"]) for manifest in manifests}
        there = {
            (kind.name, obj["metadata"]["name"])
            for kind, obj in objects
            if "deletionTimestamp" not in obj["metadata"]
        }
        if lost := sorted(item for item in wanted - there if item[0] in names):
            listed = ", ".join(map(" ".join, lost))
            why = f"another client deleted {listed}; repeat the command once it has finished"
            raise ActuatorError(f"shoot {self._shoot.name}: {why}")

    def _forget_machines(self, kinds: Iterable[Kind]) -> None:
        """Clear the state of restored machines, as gardenlet does once a Worker is ready."""
        for kind, obj in self._objects(kind for kind in kinds if kind.name == "Worker"):
            meta = obj["metadata"]
            if (obj.get("status") or {}).get("state") is not None:
                where = (resource_of(kind), meta["name"], meta.get("namespace", ""))
                self._client.patch(*where, {"status": {"state": None}}, subresource="status")

    def _check_errors(self, unready: Iterable[tuple[str, Raw]], began: float) -> None:
        """Raise ActuatorError if gardenlet would not tolerate an error any longer."""
        if self._scale is None:
            return
        for kind, obj in unready:
            severe = order.severe_seconds(kind)
            error = error_of(obj)
            if error is not None and time.monotonic() - began >= severe * self._scale:
                raise ActuatorError(
                    f"shoot {self._shoot.name}: {kind} {obj['metadata']['name']}: "
                    f"{error.get('description')} (gardenlet tolerates an error for {severe:.0f} s, "
                    f"here {severe * self._scale:g} s)"
                )

    def _namespace_left(self) -> list[str]:
        name = self._shoot.technical_id
        found = find(self._client, NAMESPACES, name)
        return [f"Namespace {name} is still there"] if found else []

    def _until(self, problems: Callable[[], Sequence[str]], seconds: float) -> None:
        limit = min(seconds * (self._scale or 1), self._patience)

        def reported() -> Sequence[str]:
            for problem in (found := problems()):
                self._progress(problem)
            return found

        if left := wait_while(reported, limit, _POLL):
            waited = f"after {limit:.0f} s still waiting for {'; '.join(left)}"
            raise ActuatorError(f"shoot {self._shoot.name}: {waited}")


def still_there(obj: Raw) -> str:
    """Describe what a deletion waits for, with the error or progress that the object reports."""
    error = error_of(obj)
    if error is None:
        return f"still there{progress_of(obj)}"
    codes = f" ({', '.join(error['codes'])})" if error.get("codes") else ""
    return f"still there: {error.get('description')}{codes}"
