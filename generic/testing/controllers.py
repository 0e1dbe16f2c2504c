"""The simulated controllers of a seed: the same in drills, `actuator dev` and fixtures."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

from actuator.cluster import Cluster
from actuator.interface import Client
from actuator.meta import Object
from generic.library.machines import MACHINE_KINDS
from generic.library.managedresources import ManagedResource
from generic.reconciler.orphans import RECORD_KINDS
from generic.testing.garbagecollector import GarbageCollector
from generic.testing.machinecontroller import MachineControllers
from generic.testing.polling import polling
from generic.testing.resourcemanager import ResourceManager
from generic.testing.shootapi import ServedShoots, ShootServers
from generic.testing.shoots import ShootManager, Shoots

SEED_KINDS: tuple[type[Object], ...] = (Cluster, *RECORD_KINDS, ManagedResource, *MACHINE_KINDS)
"""The kinds that the controllers need, besides those of the extensions."""


@contextmanager
def seed_controllers(
    seed: Client, shoots: Shoots | ShootServers | None, more: Sequence[Callable[[], None]] = ()
) -> Iterator[None]:
    """Serve ManagedResources, machines and garbage until the context is left, and `more` rounds.

    `seed` has an administrator's rights. `shoots` gets the contents of shoots, as a record or in
    API servers; None: `more` serves them.
    """
    polls = [
        ResourceManager(seed).poll,
        GarbageCollector(seed).poll,
        MachineControllers(seed).poll,
        *more,
    ]
    with ExitStack() as stack:
        if isinstance(shoots, ShootServers):  # a call that starts a server is no reason to rest
            poll = ServedShoots(seed, shoots).poll
            stack.enter_context(polling(poll, "served-shoots", rest=0.0))
        elif shoots:
            polls.append(ShootManager(seed, shoots).poll)
        for poll in polls:
            stack.enter_context(polling(poll, "other-controller"))
        yield
