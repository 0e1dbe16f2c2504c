"""Embedded seeds for drills: a cluster with a rehearsal's kinds and simulated controllers."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import attrs

from actuator.cluster import Cluster
from actuator.errors import ApiError
from actuator.interface import Actuator, Client, object_class
from actuator.meta import Raw
from generic.kube.client import HttpClient, connect
from generic.kube.crds import crd
from generic.library.machines import MACHINES
from generic.library.managedresources import MANAGED_RESOURCES
from generic.manager.manager import Manager
from generic.manager.rbac import grant
from generic.reconciler.orphans import Orphan
from generic.testing.envtest import Environment
from generic.testing.garbagecollector import GarbageCollector
from generic.testing.garden.cleanup import Own
from generic.testing.machinecontroller import MachineControllers
from generic.testing.polling import polling
from generic.testing.rehearsal import CombinedRehearsal
from generic.testing.resourcemanager import ResourceManager
from generic.testing.seed import install_crds


@attrs.frozen
class EmbeddedSeed:
    """An embedded cluster that serves as a seed."""

    environment: Environment
    admin: HttpClient

    def admit(self, manager: Manager, name: str) -> Path:
        """Return the kubeconfig of a user with exactly the permissions that the manager needs."""
        grant(self.admin, manager, name)
        return self.environment.user_kubeconfig(name)


def embedded_seed(
    rehearsal: CombinedRehearsal, say: Callable[[str], None]
) -> AbstractContextManager[EmbeddedSeed]:
    """Run a seed with the kinds and the simulated controllers of a rehearsal, as `running_seed`."""
    classes = [Cluster, Orphan, *map(object_class, rehearsal.actuators())]
    crds = [*map(crd, dict.fromkeys(classes)), *rehearsal.crds()]
    return running_seed(crds, rehearsal.other_controllers, say)


@contextmanager
def running_seed(
    crds: Sequence[Raw],
    other_controllers: Callable[[Client], Sequence[Callable[[], None]]],
    say: Callable[[str], None],
) -> Iterator[EmbeddedSeed]:
    """Run a seed with these CRDs and simulated controllers until the context is left.

    Simulated controllers serve ManagedResources and machine objects if their CRDs are installed.
    """
    with ExitStack() as stack:
        environment = stack.enter_context(Environment(progress=say))
        admin = connect(environment.kubeconfig, connections=40)
        install_crds(admin, crds)
        served = {one["metadata"]["name"] for one in crds}
        polls = list(other_controllers(admin))
        if str(MANAGED_RESOURCES) in served:
            polls += [ResourceManager(admin).poll, GarbageCollector(admin).poll]
        if str(MACHINES) in served:
            polls.append(MachineControllers(admin).poll)
        for poll in polls:
            stack.enter_context(polling(poll, "other-controller"))
        yield EmbeddedSeed(environment, admin)


def other_owners(
    client: Client,
    actuators: Sequence[Actuator[Any]],
    namespaces: Sequence[str] | None,
    served: Sequence[str] = (MACHINES.group,),
) -> AbstractContextManager[None]:
    """Simulate the controllers whose finalizers are on an extension's seed objects.

    While open, they release objects under deletion at once: only finalizers that an actuator
    declares in `seed_objects`, only objects in these namespaces (None: in all). API groups that
    are `served` have controllers of their own. `client` needs administrator rights.
    """

    def is_deleted(obj: Raw) -> bool:
        meta = obj["metadata"]
        ours = namespaces is None or meta.get("namespace") in namespaces
        return ours and "deletionTimestamp" in meta

    owners = [
        Own(
            of=[group.resource],
            selector=group.label_selector,
            which=is_deleted,
            deletes=False,
            strips=frozenset(group.finalizers),
        )
        for actuator in actuators
        for group in actuator.seed_objects
        if group.finalizers and group.namespaced and group.resource.group not in served
    ]

    def poll() -> None:
        for owner in owners:
            with suppress(ApiError):  # the next group may succeed
                owner.act(client, "")

    return polling(poll, "owners")
