"""The environment of a drill on an existing seed.

The drill creates and removes only namespaces, Clusters and objects labelled with its id. It
installs no CRD and no Role, and refuses to start if another controller reacts to its type.
"""

import builtins
import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import attrs

from actuator.cluster import Cluster
from actuator.errors import ActuatorError, ApiError
from actuator.interface import CONFIG_MAPS, Client, Resource, resource_of
from generic.kube.client import connect
from generic.kube.clusters import CLUSTERS
from generic.kube.delegating import DelegatingClient
from generic.library.lookup import find
from generic.library.machines import MACHINES
from generic.manager.options import Options
from generic.reconciler.orphans import FORCE_DELETIONS, ORPHANS, RECORD_KINDS, SHOOT_LABEL
from generic.reconciler.reporter import DeletionEnded
from generic.testing.drill.names import Names
from generic.testing.drill.seedlist import identity_of
from generic.testing.drill.world import DrillWorld, beside, manager_for, outside, target_of
from generic.testing.garden import NAMESPACES, Garden
from generic.testing.garden.cleanup import ALL, CONFIRM, Own
from generic.testing.machinecontroller import MachineControllers
from generic.testing.polling import polling
from generic.testing.rehearsal import CombinedRehearsal
from generic.testing.seed import CRDS

_PROBE_SECONDS = 3.0


@contextmanager
def foreign_world(
    rehearsal: CombinedRehearsal, kubeconfig: Path, context: str | None, say: Callable[[str], None]
) -> Iterator[DrillWorld]:
    """Open a world whose manager is not started yet. Raises ActuatorError or ApiError."""
    if rehearsal.with_shoot_api:
        raise ActuatorError(
            f"{rehearsal.title}: a drill starts API servers of shoots only for an embedded seed; "
            "leave out --kubeconfig, or use --landscape"
        )
    names = Names()
    with outside(rehearsal, say):
        actuators = rehearsal.actuators()
        admin = connect(kubeconfig, context, connections=40)
        facts = {"context": context or "", "identity": identity_of(admin)}
        target = attrs.evolve(target_of(admin), **facts)
        options = Options(kubeconfig=kubeconfig, context=context, outcome_events="all")
        ended: list[DeletionEnded] = []
        manager = manager_for(actuators, [names.type], options, None, ended.append)
        world = DrillWorld(
            names=names,
            admin=admin,
            direct=admin,
            target=target,
            manager=manager,
            actuators=actuators,
            ended=ended,
        )
        flags = ["--kubeconfig", str(kubeconfig), *(["--context", context] if context else [])]
        _check_kinds(world, rehearsal, flags)
        say(f"Using {target}: {beside(names)}")
        try:
            _refuse_where_others_react(world, rehearsal)
            with _simulated_controllers(rehearsal, OfDrill(admin, names)):
                yield world
        finally:
            try:
                manager.stop()
            finally:
                _clean_up(world)


class OfDrill(DelegatingClient):
    """A client whose lists have only the objects of one drill.

    Simulated controllers use it, so that they serve no other shoot of the seed.
    """

    def __init__(self, inner: Client, names: Names) -> None:
        super().__init__(inner)
        self._names = names

    def list(self, resource: Any, namespace: str = "", **selection: Any) -> builtins.list[Any]:
        """See Client."""
        if namespace or not resource.namespaced:
            found = self._inner.list(resource, namespace, **selection)
            return [item for item in found if self._names.owns(item)]
        mine = self._inner.list(NAMESPACES, label_selector=self._names.selector)
        return [
            obj
            for item in mine
            for obj in self._inner.list(resource, item["metadata"]["name"], **selection)
        ]


@contextmanager
def _simulated_controllers(rehearsal: CombinedRehearsal, client: OfDrill) -> Iterator[None]:
    """Simulate the controllers that gardenlet would deploy for the drill's shoots."""
    polls = list(rehearsal.other_controllers(client))
    if any(crd["metadata"]["name"] == str(MACHINES) for crd in rehearsal.crds()):
        polls.append(MachineControllers(client).poll)
    with ExitStack() as stack:
        for poll in polls:
            stack.enter_context(polling(poll, "other-controller"))
        yield


def _check_kinds(world: DrillWorld, rehearsal: CombinedRehearsal, cluster: Sequence[str]) -> None:
    """Raise ActuatorError if the seed lacks a CRD: a drill installs none on existing seeds."""
    kinds = [Cluster.KIND, *(cls.KIND for cls in RECORD_KINDS), *world.kinds]
    wanted = [f"{kind.plural}.{kind.group}" for kind in kinds]
    wanted += [crd["metadata"]["name"] for crd in rehearsal.crds()]
    missing = [name for name in dict.fromkeys(wanted) if find(world.admin, CRDS, name) is None]
    if missing:
        flags = [flag for reference in rehearsal.references for flag in ("--rehearsal", reference)]
        flags += [flag for name in missing for flag in ("--only", name)]
        raise ActuatorError(
            f"the seed has no CRD {', '.join(missing)}, and a drill installs none on a cluster "
            f"that is not its own; run: {shlex.join(['actuator', 'crds', *flags])} | "
            f"{shlex.join(['kubectl', *cluster, 'apply', '--server-side', '-f', '-'])}"
        )


def _refuse_where_others_react(world: DrillWorld, rehearsal: CombinedRehearsal) -> None:
    """Raise ActuatorError if another controller changes an object of our type."""
    shoot = world.names.shoot("probe", rehearsal.region)
    garden = Garden(world.admin)
    garden.create_namespace(shoot)
    kinds = {kind.name: kind for kind in world.kinds if kind.namespaced}
    manifests = rehearsal.manifests(world.names.rehearsed(shoot))
    probe = next(manifest for manifest in manifests if manifest["kind"] in kinds)
    kind = kinds[probe["kind"]]
    name = probe["metadata"]["name"]
    # The version of the creation itself: a controller may react before a read after it.
    version = garden.deploy(probe)["metadata"]["resourceVersion"]
    time.sleep(_PROBE_SECONDS)
    now = world.admin.get(resource_of(kind), name, shoot.technical_id)["metadata"]
    if now["resourceVersion"] != version:
        who = ", ".join(sorted({str(m.get("manager")) for m in now.get("managedFields") or ()}))
        raise ActuatorError(
            f"another controller reacts to {kind.name} objects of type {world.names.type} ({who});"
            " a drill here would rehearse that one: stop it, or choose another seed"
        )
    garden.delete(kind, shoot.technical_id, name)
    garden.finish(shoot)


def _clean_up(world: DrillWorld) -> None:
    """Remove only objects with the drill's label, and objects in its namespaces."""
    client = world.admin
    labelled = world.names.selector

    def remove(*of: Resource, namespace: str = "", selector: str = "") -> None:
        Own(of=of, selector=selector, patch=CONFIRM, strips=ALL).act(client, namespace)

    shoots = client.list(NAMESPACES, label_selector=labelled)
    remove(*map(resource_of, world.kinds), CONFIG_MAPS, selector=labelled)
    for namespace in (shoot["metadata"]["name"] for shoot in shoots):
        remove(ORPHANS, FORCE_DELETIONS, selector=f"{SHOOT_LABEL}={namespace}")
        for group in (group for actuator in world.actuators for group in actuator.seed_objects):
            with suppress(ApiError):  # the extension creates them without our label
                remove(group.resource, namespace=namespace, selector=group.label_selector)
    remove(CLUSTERS, selector=labelled)
    Own(of=[NAMESPACES], selector=labelled, patch=CONFIRM).act(client, "")
