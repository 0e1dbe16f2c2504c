"""Embedded seeds for drills: a cluster with a rehearsal's kinds and simulated controllers."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

import attrs

from actuator.errors import ApiError
from actuator.interface import Actuator, Client, object_class
from actuator.meta import Raw
from generic.kube.client import HttpClient, connect
from generic.kube.crds import crd
from generic.library.machines import MACHINES
from generic.manager.manager import Manager
from generic.manager.rbac import grant
from generic.testing.controllers import SEED_KINDS, seed_controllers
from generic.testing.drill.shoots import ShootRehearsal
from generic.testing.envtest import Environment
from generic.testing.garden.cleanup import Own
from generic.testing.polling import polling
from generic.testing.rehearsal import CombinedRehearsal
from generic.testing.seed import install_crds
from generic.testing.shootapi import ShootServers
from generic.testing.shoots import Shoots


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
    classes = dict.fromkeys(map(object_class, rehearsal.actuators()))
    crds = [*map(crd, classes), *rehearsal.crds()]
    shoots: Shoots | ShootServers | None = Shoots()
    if rehearsal.with_shoot_api:
        shoots = rehearsal.servers
    elif any(isinstance(part, ShootRehearsal) for part in rehearsal.parts):
        shoots = None  # its own controllers serve them
    return running_seed(crds, shoots, say, rehearsal.other_controllers)


@contextmanager
def running_seed(
    crds: Sequence[Raw],
    shoots: Shoots | ShootServers | None,
    say: Callable[[str], None],
    other_controllers: Callable[[Client], Sequence[Callable[[], None]]] = lambda _: (),
) -> Iterator[EmbeddedSeed]:
    """Run a seed with SEED_KINDS, these CRDs and simulated controllers until the context is left.

    `shoots` as for `seed_controllers`.
    """
    with Environment(progress=say) as environment:
        admin = connect(environment.kubeconfig, connections=40)
        install_crds(admin, [*SEED_KINDS, *crds])
        with seed_controllers(admin, shoots, other_controllers(admin)):
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
        if group.finalizers and group.resource.namespaced and group.resource.group not in served
    ]

    def poll() -> None:
        for owner in owners:
            with suppress(ApiError):  # the next group may succeed
                owner.act(client, "")

    return polling(poll, "owners")
