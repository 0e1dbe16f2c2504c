"""pytest fixtures with a real Gardener: `landscape`, `garden` and `real_shoot`.

Activate them in a conftest.py, and name your extensions or rehearsals:

    pytest_plugins = ["generic.tools.landscape_fixtures"]

    @pytest.fixture(scope="session")
    def landscape_extensions():
        return ["my.rehearsal:MyRehearsal"]

A landscape starts once for each test process, in one to two minutes, and needs the machine for
itself: never run such tests in several processes at once. Not here: fast tests, for which
`generic.testing.fixtures` simulate gardenlet.
"""

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import pytest

from actuator.interface import Client
from generic.testing.drill.landscape.world import LandscapeWorld
from generic.testing.landscape.users import ShootOwner, is_gone, is_ready
from generic.tools.cli.landscape_extensions import DEFAULTS, landscape_world, rehearsal_of

CREATE_SECONDS = 900.0
DELETE_SECONDS = 600.0
"""Maximum times on a busy machine."""


@pytest.fixture(scope="session")
def landscape_extensions() -> Sequence[str]:
    """Return the extensions and rehearsals of the landscape; override it. Default: the samples."""
    return DEFAULTS


@pytest.fixture(scope="session")
def landscape(landscape_extensions: Sequence[str]) -> Iterator[LandscapeWorld]:
    """Yield a running landscape with one seed, in which users can create Shoots."""
    rehearsal = rehearsal_of(landscape_extensions)
    with landscape_world(landscape_extensions, rehearsal, 1, print) as world:
        yield world


@pytest.fixture
def garden(landscape: LandscapeWorld) -> Client:
    """Return a client for the administrator of the garden."""
    return landscape.landscape.garden.client


@contextmanager
def _temporary_shoots(landscape: LandscapeWorld) -> Iterator[Callable[[str], ShootOwner]]:
    """Provide a function that creates a Shoot and waits until it is ready.

    At the end the outside world is repaired, and Shoots that exist are deleted.
    """
    owners: list[ShootOwner] = []

    def create(name: str) -> ShootOwner:
        owner = landscape.owner(name)
        owner.create(landscape.installed.offer.shoot(name))
        owners.append(owner)
        assert owner.wait_until(is_ready, CREATE_SECONDS, print), f"Shoot {name}: {owner.view()}"
        return owner

    yield create
    if landscape.rehearsal:
        landscape.rehearsal.repair_failure()
    for owner in owners:
        if (view := owner.view()) is not None and not view.deleting:
            owner.delete()
    for owner in owners:
        assert owner.wait_until(is_gone, DELETE_SECONDS, print), (
            f"Shoot {owner.name}: {owner.view()}"
        )


@pytest.fixture
def new_shoot(landscape: LandscapeWorld) -> Iterator[Callable[[str], ShootOwner]]:
    """Return a function that creates a Shoot and waits until it is ready.

    At the end of the test the outside world is repaired, and Shoots that exist are deleted.
    """
    with _temporary_shoots(landscape) as create:
        yield create


@pytest.fixture
def real_shoot(new_shoot: Callable[[str], ShootOwner]) -> ShootOwner:
    """Return the owner of a new Shoot that is ready; it is deleted at the end of the test."""
    return new_shoot(f"s-{secrets.token_hex(3)}")


@pytest.fixture(scope="module")
def shared_shoot(landscape: LandscapeWorld) -> Iterator[ShootOwner]:
    """Yield the owner of a new Shoot that is ready, and that all tests of a module share."""
    with _temporary_shoots(landscape) as create:
        yield create(f"s-{secrets.token_hex(3)}")
