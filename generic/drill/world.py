"""The world of a drill: a seed, an outside, a manager; opened in order, closed whatever happens.

On an embedded cluster everything is ours. On a seed that is not, only namespaces, Clusters and
objects labelled with the drill's id are made and removed, no CRD and no Role is installed, and
the drill refuses to start where another controller reacts to its type.
"""

from __future__ import annotations

import secrets
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs

from actuator.cluster import Cluster
from actuator.errors import ActuatorError, ApiError, Conflict, NotFound
from actuator.interface import Actuator, Resource, object_class, resource_of
from actuator.meta import Kind, Raw
from generic.client import HttpClient, connect
from generic.clusters import CLUSTERS
from generic.drill.breaks import Break
from generic.garden import NAMESPACES, Garden, Shoot
from generic.manager import Manager
from generic.options import Options
from generic.rbac import cluster_role, role_binding
from generic.rehearsal import Rehearsal
from generic.seed import CRDS, install_crds, install_kinds

__all__ = ["LABEL", "World", "open_world"]

LABEL = "drill.actuator.extensions.gardener.cloud/id"
_RBAC = "rbac.authorization.k8s.io/v1"
_ROLES = Resource(_RBAC, "clusterroles", namespaced=False)
_BINDINGS = Resource(_RBAC, "clusterrolebindings", namespaced=False)
_CONFIGMAPS = Resource("v1", "configmaps")
_PROBE_SECONDS = 3.0


@attrs.frozen(kw_only=True)
class World:
    """Where a drill takes place."""

    id: str
    admin: HttpClient
    manager: Manager
    actuators: Sequence[Actuator[Any]]

    @property
    def type(self) -> str:
        """The extension type that only this drill uses."""
        return f"drill-{self.id}"

    @property
    def labels(self) -> dict[str, str]:
        """What marks everything of this drill."""
        return {LABEL: self.id}

    @property
    def selector(self) -> str:
        """Finds everything of this drill."""
        return f"{LABEL}={self.id}"

    @property
    def kinds(self) -> list[Kind]:
        """The kinds that are rehearsed."""
        return [object_class(actuator).KIND for actuator in self.actuators]


@contextmanager
def open_world(
    rehearsal: Rehearsal,
    broken: Break,
    kubeconfig: Path | None,
    context: str | None,
    say: Callable[[str], None],
) -> Iterator[World]:
    """A world with a manager that is about to start; cleaned up at the end.

    Without a kubeconfig on an embedded cluster. Raises ActuatorError or ApiError.
    """
    drill = secrets.token_hex(3)
    with tempfile.TemporaryDirectory(prefix="drill-") as directory:
        try:
            say(f"Starting the outside: {rehearsal.title}")
            rehearsal.start(Path(directory))
            actuators = [broken.actuator(actuator) for actuator in rehearsal.actuators()]
            if kubeconfig is None:
                opening = _embedded(drill, rehearsal, actuators, broken, say)
            else:
                opening = _foreign(drill, rehearsal, actuators, broken, (kubeconfig, context))
            with opening as world:
                yield world
        finally:
            rehearsal.stop()


@contextmanager
def _embedded(
    drill: str,
    rehearsal: Rehearsal,
    actuators: Sequence[Actuator[Any]],
    broken: Break,
    say: Callable[[str], None],
) -> Iterator[World]:
    from generic.envtest import Environment

    say("Starting the embedded cluster: etcd, kube-apiserver, kube-controller-manager")
    with Environment(progress=say) as environment:
        admin = connect(environment.kubeconfig, connections=40)
        install_kinds(admin, [Cluster, *(object_class(actuator) for actuator in actuators)])
        install_crds(admin, rehearsal.crds())
        manager = _manager(actuators, drill, broken, environment.kubeconfig, None)
        name = f"drill-{drill}"
        admin.create(_ROLES, cluster_role(manager, name))
        admin.create(_BINDINGS, role_binding(name, user=name))
        mine = environment.user_kubeconfig(name)  # never as administrator
        manager.options = attrs.evolve(manager.options, kubeconfig=mine)
        try:
            yield World(id=drill, admin=admin, manager=manager, actuators=actuators)
        finally:
            manager.stop()


@contextmanager
def _foreign(
    drill: str,
    rehearsal: Rehearsal,
    actuators: Sequence[Actuator[Any]],
    broken: Break,
    where: tuple[Path, str | None],
) -> Iterator[World]:
    kubeconfig, context = where
    admin = connect(kubeconfig, context, connections=40)
    manager = _manager(actuators, drill, broken, kubeconfig, context)
    world = World(id=drill, admin=admin, manager=manager, actuators=actuators)
    _check_kinds(world, rehearsal)
    try:
        _refuse_where_others_react(world, rehearsal)
        yield world
    finally:
        try:
            manager.stop()
        finally:
            _clean_up(world)


def _manager(
    actuators: Sequence[Actuator[Any]],
    drill: str,
    broken: Break,
    kubeconfig: Path,
    context: str | None,
) -> Manager:
    options = Options(
        kubeconfig=kubeconfig,
        context=context,
        metrics_bind_address="0",
        health_bind_address="0",
        shutdown_timeout=3.0,
    )
    manager = Manager(options, intercept=broken.client)
    for actuator in actuators:
        manager.add(actuator, type=f"drill-{drill}")
    return manager


def _check_kinds(world: World, rehearsal: Rehearsal) -> None:
    """Raises ActuatorError where the seed lacks a CRD: a drill installs none on others' seeds."""
    wanted = [f"{kind.plural}.{kind.group}" for kind in [Cluster.KIND, *world.kinds]]
    wanted += [crd["metadata"]["name"] for crd in rehearsal.crds()]
    for name in wanted:
        try:
            world.admin.get(CRDS, name)
        except NotFound:
            raise ActuatorError(
                f"the seed has no CRD {name}, and a drill installs none on a cluster that is not "
                "its own; choose a seed that has it"
            ) from None


def _refuse_where_others_react(world: World, rehearsal: Rehearsal) -> None:
    """Raises ActuatorError where somebody touches an object of our type."""
    shoot = Shoot(
        technical_id=f"shoot--drill-{world.id}--probe",
        name="probe",
        project=f"drill-{world.id}",
        region=rehearsal.region,
        labels=world.labels,
    )
    garden = Garden(world.admin)
    garden.create_namespace(shoot)
    kind = world.kinds[0]
    probe: Raw = {
        "apiVersion": kind.api_version,
        "kind": kind.name,
        "metadata": {"name": "probe", "namespace": shoot.technical_id, "labels": world.labels},
        "spec": {"type": world.type, "region": rehearsal.region, "secretRef": {"name": "probe"}},
    }
    garden.deploy(probe)
    resource = resource_of(kind)
    version = world.admin.get(resource, "probe", shoot.technical_id)["metadata"]["resourceVersion"]
    time.sleep(_PROBE_SECONDS)
    now = world.admin.get(resource, "probe", shoot.technical_id)["metadata"]
    if now["resourceVersion"] != version:
        who = ", ".join(sorted({str(m.get("manager")) for m in now.get("managedFields") or ()}))
        raise ActuatorError(
            f"another controller reacts to {kind.name} objects of type {world.type} ({who}); "
            "a drill here would rehearse that one: stop it, or choose another seed"
        )
    garden.delete(kind, shoot.technical_id, "probe")
    garden.finish(shoot)


def _clean_up(world: World) -> None:
    """Removes what carries the drill's label, and nothing else."""
    for resource in [*(resource_of(kind) for kind in world.kinds), _CONFIGMAPS]:
        _remove_all(world, resource)
    for actuator in world.actuators:
        for group in actuator.seed_objects:
            _remove_in_namespaces(world, group.resource)
    for resource in (CLUSTERS, NAMESPACES):
        _remove_all(world, resource)


def _remove_in_namespaces(world: World, resource: Resource) -> None:
    """Seed objects are made by the extension, without our label, but in our namespaces."""
    for namespace in world.admin.list(NAMESPACES, label_selector=world.selector):
        try:
            found = world.admin.list(resource, namespace["metadata"]["name"])
        except ApiError:
            continue
        for obj in found:
            _remove(world, resource, obj)


def _remove_all(world: World, resource: Resource) -> None:
    for obj in world.admin.list(resource, label_selector=world.selector):
        _remove(world, resource, obj)


def _remove(world: World, resource: Resource, obj: Raw) -> None:
    """Deletes an object of the drill, finalizers and all, if it is still that one."""
    meta = obj["metadata"]
    name, namespace = meta["name"], meta.get("namespace", "")
    annotations = {"confirmation.gardener.cloud/deletion": "true"}
    try:
        world.admin.patch(resource, name, namespace, {"metadata": {"annotations": annotations}})
        world.admin.delete(resource, name, namespace, uid=meta["uid"])
        patch = {"metadata": {"finalizers": None, "uid": meta["uid"]}}
        if resource != NAMESPACES:
            world.admin.patch(resource, name, namespace, patch)
    except (NotFound, Conflict):
        pass
