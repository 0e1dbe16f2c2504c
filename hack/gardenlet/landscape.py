"""Play all flows on a landscape, and record them: two shoots for each flow, at the same time."""

import importlib
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from actuator import v1alpha1
from actuator.errors import NotFound
from actuator.interface import Resource, resource_of
from actuator.meta import Raw
from extensions.aws.controlplane import AwsControlPlane
from generic.kube.client import HttpClient
from generic.kube.clusters import CLUSTERS, NAMESPACES
from generic.testing.drill.seeds import other_owners
from generic.testing.landscape.garden import SHOOTS
from generic.testing.landscape.seed import SEEDS
from hack.gardenlet.watching import Log, watched

_TESTS = Path(__file__).parents[2] / "tests"
_SECONDS = 900.0
_CONFIRMED = {"confirmation.gardener.cloud/deletion": "true"}
_FORCED = {"confirmation.gardener.cloud/force-deletion": "true"}
_NORMAL, _FORCIBLE, _FAILING = ["a", "b"], ["c", "d"], "e"
RECORDED = [f"shoot--dev--{name}" for name in (*_NORMAL, *_FORCIBLE)]
"""The namespaces of the shoots whose flows are recorded; of the failing one only errors are."""
_REVOKED = "ERR_INFRA_UNAUTHENTICATED"


def play(of_seed: Log, of_garden: Log, say: Callable[[str], None]) -> None:
    """Create, delete and force-delete shoots; the logs get the versions of seed and garden."""
    sys.path[:0] = [str(_TESTS), str(_TESTS / "landscape")]
    sample: Any = importlib.import_module("aws_landscape")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        running = stack.enter_context(sample.aws_landscape(folder, "hack.gardenlet.slow:{}"))
        garden, seed = running.landscape.garden.client, running.seed.client
        player = _Player(garden, seed, sample, say)
        player.wait("the Seed", lambda: _succeeded(garden.get(SEEDS, "seed")))
        stack.enter_context(watched(seed, [*_served(seed), CLUSTERS, NAMESPACES], of_seed))
        stack.enter_context(watched(garden, [SHOOTS], of_garden))
        player.begin(_NORMAL)
        player.wait_created(_NORMAL)
        player.begin(_FORCIBLE)
        player.delete(_NORMAL)
        player.wait_created(_FORCIBLE)
        running.allow(active=False)
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
    """A user of the garden."""

    def __init__(
        self, garden: HttpClient, seed: HttpClient, sample: Any, say: Callable[[str], None]
    ) -> None:
        self._garden = garden
        self._seed = seed
        self._shoot: Callable[[str], Raw] = sample.shoot
        self._namespace: str = sample.NAMESPACE
        self._say = say

    def wait(self, title: str, condition: Callable[[], object]) -> None:
        """Wait, and say how long it took. Raises TimeoutError."""
        began = time.monotonic()
        while not condition():
            if time.monotonic() - began > _SECONDS:
                raise TimeoutError(f"waited {_SECONDS:.0f} s for {title}")
            time.sleep(1)
        self._say(f"{title}: {time.monotonic() - began:.0f} s")

    def begin(self, names: Iterable[str]) -> None:
        """Create Shoots, without waiting."""
        for name in names:
            self._garden.create(SHOOTS, self._shoot(name))

    def wait_created(self, names: Iterable[str]) -> None:
        """Wait until Shoots are created."""
        for name in names:
            self.wait(f"creation of {name}", partial(self._is_ready, name))

    def delete(self, names: list[str]) -> None:
        """Delete Shoots normally, with a simulated load balancer controller."""
        self._confirm(names)
        with other_owners(self._seed, [AwsControlPlane()], [f"shoot--dev--{n}" for n in names]):
            self._wait_gone(names)

    def force_delete(self, names: list[str]) -> None:
        """Delete Shoots, and force it once they show an error of their credentials."""
        self._confirm(names)
        for name in names:
            self.wait(f"error of {name}", partial(self._shows, name, _REVOKED))
            self._annotate(name, _FORCED)
        self._wait_gone(names)

    def wait_for_error(self, name: str, kind: str) -> None:
        """Wait until a Shoot shows an error of a kind."""
        self.wait(f"{kind}'s error of {name}", partial(self._shows, name, kind))

    def read(self, name: str) -> Raw:
        """Return a Shoot; empty if it does not exist."""
        try:
            return self._garden.get(SHOOTS, name, self._namespace)
        except NotFound:
            return {}

    def _is_ready(self, name: str) -> bool:
        return _succeeded(self.read(name))

    def _is_gone(self, name: str) -> bool:
        return not self.read(name)

    def _shows(self, name: str, text: str) -> bool:
        return text in str((self.read(name).get("status") or {}).get("lastErrors"))

    def _confirm(self, names: list[str]) -> None:
        for name in names:
            self._annotate(name, _CONFIRMED)
            self._garden.delete(SHOOTS, name, self._namespace)

    def _annotate(self, name: str, annotations: dict[str, str]) -> None:
        patch: Raw = {"metadata": {"annotations": annotations}}
        self._garden.patch(SHOOTS, name, self._namespace, patch)

    def _wait_gone(self, names: list[str]) -> None:
        for name in names:
            self.wait(f"deletion of {name}", partial(self._is_gone, name))


def _succeeded(obj: Raw) -> bool:
    operation = (obj.get("status") or {}).get("lastOperation") or {}
    return bool(operation.get("state") == "Succeeded")
