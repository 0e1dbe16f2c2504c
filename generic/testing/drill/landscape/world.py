"""A landscape with the outside world of a rehearsal, and the simulated controllers around it.

Simulated are the controllers whose finalizers are on seed objects of an extension, such as a
cloud's load balancer controller. Not here: the charts of the extensions, and the landscape itself.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from attrs import frozen

from actuator.errors import ActuatorError, ApiError
from actuator.interface import Client, Resource
from actuator.meta import Raw, conditions_in, value_at
from generic.library.machines import MACHINES
from generic.library.managedresources.kind import MANAGED_RESOURCES
from generic.library.programs.cache import Progress
from generic.testing.drill.seeds import other_owners
from generic.testing.landscape.gardenobjects import CORE
from generic.testing.landscape.landscape import Landscape, LandscapeExtension, running_landscape
from generic.testing.landscape.offers import Offer
from generic.testing.landscape.seed import SEEDS
from generic.testing.landscape.users import ShootOwner, first_task
from generic.testing.polling import polling
from generic.testing.rehearsal import CombinedRehearsal
from generic.testing.seed import install_crds

_POLL_SECONDS = 0.5
INSTALLATIONS = Resource(CORE, "controllerinstallations", namespaced=False)
INSTALLATION_SECONDS = 90.0
"""Maximum time for which the same problem may keep an extension from being installed."""
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
        for seed in landscape.seeds:
            try:
                await_seed(landscape.garden.client, seed.plan.name, progress)
            except ActuatorError as error:
                raise landscape.processes.failure(seed.gardenlet, f"failed ({error})") from error
        yield LandscapeWorld(landscape, installed, rehearsal)


def _simulate(stack: ExitStack, client: Client, rehearsal: CombinedRehearsal) -> None:
    """Install the CRDs of other vendors, and run their simulated controllers."""
    foreign = [crd for crd in rehearsal.crds() if not crd["spec"]["group"].endswith(_OF_GARDENER)]
    install_crds(client, foreign)
    for poll in rehearsal.other_controllers(client):
        stack.enter_context(polling(poll, "other-controller"))
    served = (MACHINES.group, MANAGED_RESOURCES.group)
    stack.enter_context(other_owners(client, rehearsal.actuators(), None, served))


def await_seed(garden: Client, name: str, progress: Callable[[str], object]) -> None:
    """Wait until gardenlet has reconciled the Seed, and the bucket of its backups exists.

    Raises ActuatorError if that takes too long, or if an extension cannot be installed.
    """
    said = ""
    problem = ""
    operation = dict[str, Any]()
    deadline = time.monotonic() + SEED_SECONDS
    since = time.monotonic()
    while True:
        text = "gardenlet has not begun"
        with suppress(ApiError):  # it is registered soon
            seed = garden.get(SEEDS, name)
            operation = (seed.get("status") or {}).get("lastOperation") or {}
            text = first_task(str(operation.get("description") or text))
            if operation.get("state") == "Succeeded":
                if has_bucket(seed):
                    return
                text = "Waiting until the bucket for backups exists"
            found = installation_problem(garden.list(INSTALLATIONS)) if operation else ""
            problem, since = found, since if found == problem else time.monotonic()
        if text != said:
            said = text
            progress(f"seed {name}: {operation.get('progress', 0)} % {text}")
        if problem and time.monotonic() - since > INSTALLATION_SECONDS:
            raise ActuatorError(f"an extension cannot be installed: {problem}")
        if time.monotonic() > deadline:
            raise ActuatorError(f"Seed {name} is not ready after {SEED_SECONDS:.0f} s: {text}")
        time.sleep(_POLL_SECONDS)


def has_bucket(seed: Raw) -> bool:
    """Return whether the bucket for the backups of a Seed exists, or it has no backups."""
    status = value_at(conditions_in(seed.get("status")), "BackupBucketsReady", "status")
    return "backup" not in seed["spec"] or status == "True"


def installation_problem(installations: Sequence[Raw]) -> str:
    """Return why the first of these ControllerInstallations is not installed, or ""."""
    for installation in installations:
        for condition in (installation.get("status") or {}).get("conditions") or ():
            if condition["type"] in ("Valid", "Installed") and condition["status"] == "False":
                name = installation["spec"]["registrationRef"]["name"]
                return f"{name}: {condition.get('message', '')}"
    return ""
