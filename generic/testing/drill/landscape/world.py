"""A landscape with the outside world of a rehearsal, and the simulated controllers around it.

Simulated are the controllers whose finalizers are on seed objects of an extension, such as a
cloud's load balancer controller. Not here: the charts of the extensions, and the landscape itself.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

from attrs import frozen

from actuator.errors import ActuatorError, ApiError
from actuator.interface import Client
from actuator.meta import Raw
from generic.library.machines import MACHINES
from generic.library.managedresources import MANAGED_RESOURCES
from generic.library.programs.cache import Progress
from generic.testing.drill.seeds import other_owners
from generic.testing.landscape.landscape import Landscape, LandscapeExtension, running_landscape
from generic.testing.landscape.offers import Offer
from generic.testing.landscape.seed import SEEDS
from generic.testing.landscape.users import ShootOwner, first_task
from generic.testing.polling import polling, wait_while
from generic.testing.rehearsal import CombinedRehearsal
from generic.testing.seed import install_crds

SEED_SECONDS = 600.0
"""Maximum time for a Seed to be reconciled, on a busy machine."""
_OF_GARDENER = ("gardener.cloud", "sapcloud.io")
"""Suffixes of the API groups whose CRDs gardenlet installs."""


@frozen
class Installed:
    """The extensions of a landscape, and the offer to users."""

    extensions: Sequence[LandscapeExtension]
    offer: Offer
    simulated: Mapping[str, str]
    """The simulated types, by kind."""


@frozen
class LandscapeWorld:
    """A running landscape, and the outside world of its extensions."""

    landscape: Landscape
    installed: Installed
    rehearsal: CombinedRehearsal | None
    """None if no extension has an outside world."""

    def owner(self, shoot: str) -> ShootOwner:
        """Return the owner of a Shoot, which need not exist."""
        return ShootOwner(self.landscape.garden.client, shoot)


@contextmanager
def running_world(
    installed: Installed,
    rehearsal: CombinedRehearsal | None,
    seeds: Sequence[str],
    progress: Progress,
) -> Iterator[LandscapeWorld]:
    """Start a landscape, and stop it when the context is left; nothing of it remains.

    The outside world of `rehearsal` must be started. It is entered when users can create Shoots.
    Raises EnvtestError or ActuatorError.
    """
    offer = installed.offer
    plans = [offer.seed(name) for name in seeds]
    running = running_landscape(plans, installed.extensions, progress, offer.garden())
    with ExitStack() as stack:
        landscape = stack.enter_context(running)
        if rehearsal:
            for seed in landscape.seeds:
                _simulate(stack, seed.client, rehearsal)
        for name in seeds:
            await_seed(landscape.garden.client, name, progress)
        yield LandscapeWorld(landscape, installed, rehearsal)


def _simulate(stack: ExitStack, client: Client, rehearsal: CombinedRehearsal) -> None:
    """Install the CRDs of other vendors, and run their simulated controllers."""
    foreign = [one for one in rehearsal.crds() if not one["spec"]["group"].endswith(_OF_GARDENER)]
    install_crds(client, foreign)
    for poll in rehearsal.other_controllers(client):
        stack.enter_context(polling(poll, "other-controller"))
    served = (MACHINES.group, MANAGED_RESOURCES.group)
    stack.enter_context(other_owners(client, rehearsal.actuators(), None, served))


def await_seed(garden: Client, name: str, progress: Callable[[str], object]) -> None:
    """Wait until gardenlet has reconciled the Seed. Raises ActuatorError."""
    said = ""

    def unready() -> list[Raw]:
        nonlocal said
        try:
            status = garden.get(SEEDS, name).get("status") or {}
        except ApiError:
            return [{}]
        operation = status.get("lastOperation") or {}
        text = first_task(str(operation.get("description", "")))
        if text != said:
            said = text
            progress(f"seed {name}: {operation.get('progress', 0)} % {text}")
        return [] if operation.get("state") == "Succeeded" else [operation]

    if left := wait_while(unready, SEED_SECONDS, every=0.5):
        why = left[0].get("description") or "gardenlet has not begun"
        raise ActuatorError(f"Seed {name} is not ready after {SEED_SECONDS:.0f} s: {why}")
