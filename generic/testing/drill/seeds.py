"""Embedded seeds for drills: a cluster with the kinds of a rehearsal, and who else works there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import attrs

from actuator.cluster import Cluster
from actuator.interface import object_class
from generic.kube.client import HttpClient, connect
from generic.library.machines import MACHINES
from generic.library.managedresources import MANAGED_RESOURCES
from generic.manager.manager import Manager
from generic.manager.rbac import grant
from generic.reconciler.orphans import Orphan
from generic.testing.drill.machines import MachineControllers
from generic.testing.envtest import Environment
from generic.testing.looking import looking
from generic.testing.rehearsal import Together
from generic.testing.resourcemanager import ResourceManager
from generic.testing.seed import install_crds, install_kinds

__all__ = ["EmbeddedSeed", "embedded_seed"]


@attrs.frozen
class EmbeddedSeed:
    """A cluster that is all ours."""

    environment: Environment
    admin: HttpClient

    def admit(self, manager: Manager, name: str) -> Path:
        """The kubeconfig of a user who may do what this manager needs, and nothing more."""
        grant(self.admin, manager, name)
        return self.environment.user_kubeconfig(name)


@contextmanager
def embedded_seed(rehearsal: Together, say: Callable[[str], None]) -> Iterator[EmbeddedSeed]:
    """A running seed with all kinds.

    Where there are ManagedResources, or machine objects, somebody serves them; whom the
    rehearsal plays beside its actuators is at work too.
    """
    with ExitStack() as stack:
        environment = stack.enter_context(Environment(progress=say))
        admin = connect(environment.kubeconfig, connections=40)
        install_kinds(admin, [Cluster, Orphan, *map(object_class, rehearsal.actuators())])
        crds = rehearsal.crds()
        install_crds(admin, crds)
        served = {crd["metadata"]["name"] for crd in crds}
        if str(MANAGED_RESOURCES) in served:
            stack.enter_context(looking(ResourceManager(admin).look, "resource-manager"))
        if str(MACHINES) in served:
            stack.enter_context(looking(MachineControllers(admin).look, "machine-controllers"))
        for look in rehearsal.neighbours(admin):
            stack.enter_context(looking(look, "neighbour"))
        yield EmbeddedSeed(environment, admin)
