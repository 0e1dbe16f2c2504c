"""Play all flows on a landscape, and record them: two shoots for each flow, at the same time."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from functools import partial

from actuator import v1alpha1
from actuator.errors import NotFound
from actuator.interface import Resource, resource_of
from generic.kube.client import HttpClient
from generic.kube.clusters import CLUSTERS, NAMESPACES
from generic.testing.drill.landscape.world import LandscapeWorld
from generic.testing.landscape.garden import SHOOTS
from generic.testing.landscape.users import ShootView, is_gone, is_ready
from generic.tools.cli.landscape_extensions import landscape_world, rehearsal_of
from hack.gardenlet.watching import Log, watched

_SECONDS = 900.0
_NORMAL, _FORCIBLE, _FAILING = ["a", "b"], ["c", "d"], "e"
RECORDED = [f"shoot--dev--{name}" for name in (*_NORMAL, *_FORCIBLE)]
"""The namespaces of the shoots whose flows are recorded; of the failing one only errors are."""
_EXTENSIONS = ["hack.gardenlet.slow:SlowAws"]
_SCENARIO, _REVOKED = "credentials-revoked", "ERR_INFRA_UNAUTHENTICATED"


def play(of_seed: Log, of_garden: Log, say: Callable[[str], None]) -> None:
    """Create, delete and force-delete shoots; the logs get the versions of seed and garden."""
    rehearsal = rehearsal_of(_EXTENSIONS)
    assert rehearsal is not None, "the samples have one"
    with ExitStack() as stack:
        world = stack.enter_context(landscape_world(_EXTENSIONS, rehearsal, 1, say))
        seed = world.landscape.seeds[0].client
        stack.enter_context(watched(seed, [*_served(seed), CLUSTERS, NAMESPACES], of_seed))
        stack.enter_context(watched(world.landscape.garden.client, [SHOOTS], of_garden))
        player = _Player(world, say)
        player.begin(_NORMAL)
        player.wait_created(_NORMAL)
        player.begin(_FORCIBLE)
        player.delete(_NORMAL)
        player.wait_created(_FORCIBLE)
        rehearsal.break_where_known(_SCENARIO)
        player.begin([_FAILING])
        player.force_delete(_FORCIBLE)
        player.wait_for_error(_FAILING, "Infrastructure")


def _served(seed: HttpClient) -> Iterator[Resource]:
    """Yield the kinds of extensions that the seed has."""
    for cls in v1alpha1.KINDS:
        resource = resource_of(cls.KIND)
        try:
            seed.list(resource)
        except NotFound:
            continue
        yield resource


class _Player:
    """The owner of the Shoots."""

    def __init__(self, world: LandscapeWorld, say: Callable[[str], None]) -> None:
        self._world = world
        self._say = say

    def wait(self, title: str, name: str, reached: Callable[[ShootView | None], bool]) -> None:
        """Wait, and say how long it took. Raises TimeoutError."""
        began = time.monotonic()
        while not reached(self._world.owner(name).look()):
            if time.monotonic() - began > _SECONDS:
                raise TimeoutError(f"waited {_SECONDS:.0f} s for {title} of {name}")
            time.sleep(1)
        self._say(f"{title} of {name}: {time.monotonic() - began:.0f} s")

    def begin(self, names: Iterable[str]) -> None:
        """Create Shoots, without waiting."""
        for name in names:
            self._world.owner(name).create(self._world.installed.offer.shoot(name))

    def wait_created(self, names: Iterable[str]) -> None:
        """Wait until Shoots are created."""
        for name in names:
            self.wait("creation", name, is_ready)

    def delete(self, names: list[str]) -> None:
        """Delete Shoots normally; the load balancer controller is simulated."""
        for name in names:
            self._world.owner(name).delete()
        for name in names:
            self.wait("deletion", name, is_gone)

    def force_delete(self, names: list[str]) -> None:
        """Delete Shoots, and force it once they show an error of their credentials."""
        for name in names:
            self._world.owner(name).delete()
        for name in names:
            self.wait("error", name, lambda view: view is not None and _REVOKED in view.codes)
            refusal = self._world.owner(name).force()
            assert not refusal, refusal
        for name in names:
            self.wait("forced deletion", name, is_gone)

    def wait_for_error(self, name: str, kind: str) -> None:
        """Wait until a Shoot shows an error of a kind."""
        shows = partial(_shows, kind)
        self.wait(f"{kind}'s error", name, shows)


def _shows(text: str, view: ShootView | None) -> bool:
    return view is not None and any(text in error for error in view.errors)
