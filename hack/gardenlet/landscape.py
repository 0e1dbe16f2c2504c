"""Start a landscape of two seeds, play all flows on it, and record them."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack

from attrs import field, frozen

from actuator import v1alpha1
from actuator.errors import NotFound
from actuator.interface import Resource, resource_of
from generic.kube.client import HttpClient
from generic.kube.clusters import CLUSTERS, NAMESPACES
from generic.testing.landscape.garden import SHOOTS
from generic.tools.cli.landscape_extensions import landscape_world, rehearsal_of
from hack.gardenlet.player import Player
from hack.gardenlet.watching import WatchLog, watched

_EXTENSIONS = ["hack.gardenlet.slow:SlowAws"]


@frozen
class Logs:
    """The versions of all objects, of the garden and of each seed."""

    garden: WatchLog = field(factory=WatchLog)
    seeds: Sequence[WatchLog] = field(factory=lambda: [WatchLog(), WatchLog()])


def play(logs: Logs, say: Callable[[str], None]) -> None:
    """Play the flows."""
    rehearsal = rehearsal_of(_EXTENSIONS)
    assert rehearsal is not None, "the samples have one"
    with ExitStack() as stack:
        running = landscape_world(_EXTENSIONS, rehearsal, len(logs.seeds), say)
        world = stack.enter_context(running)
        for seed, log in zip(world.landscape.seeds, logs.seeds, strict=True):
            resources = [*_served(seed.client), CLUSTERS, NAMESPACES]
            stack.enter_context(watched(seed.client, resources, log))
        garden = world.landscape.garden.client
        stack.enter_context(watched(garden, [SHOOTS], logs.garden))
        Player(garden, world.installed.offer.shoot, rehearsal, say).play()


def _served(seed: HttpClient) -> Iterator[Resource]:
    """Yield the kinds of extensions that the seed has."""
    for cls in v1alpha1.KINDS:
        resource = resource_of(cls.KIND)
        try:
            seed.list(resource)
        except NotFound:
            continue
        yield resource
