"""The environment of a drill: a seed, an outside world, a manager; always closed at the end.

Here on an embedded cluster; for other seeds see `foreign`.
"""

import json
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import attrs
from msgspec.structs import replace

from actuator.errors import ActuatorError, AlreadyExists, TooManyRequests, Unavailable
from actuator.interface import Actuator, Client, Resource, kind_of, object_class
from actuator.meta import Kind, Raw
from generic.kube.client import HttpClient
from generic.kube.delegating import DelegatingClient
from generic.kube.selfreview import user_name
from generic.manager.manager import Manager
from generic.manager.options import Options
from generic.reconciler.reporter import DeletionEnded, Listener
from generic.testing.drill.evidence import DrillCluster
from generic.testing.drill.names import Names, of_drills
from generic.testing.drill.seeds import embedded_seed
from generic.testing.drill.settings import DrillSettings
from generic.testing.drill.trouble import TroubledManager, Troublemaker, causing
from generic.testing.rehearsal import CombinedRehearsal, types_of

_AGAIN_SECONDS = 0.2
_SYNC_SECONDS = 60.0
T = TypeVar("T")


class PatientClient(DelegatingClient):
    """A Client that retries while no API server answers, for at most `patience` seconds.

    Only for repeatable requests: if a create succeeded but its response was lost, the existing
    object is returned, so names must be unique. A repeated JSON patch with tests may fail.
    """

    def __init__(self, inner: Client, patience: float = 60.0) -> None:
        super().__init__(inner)
        self._patience = patience

    def create(self, resource: Resource, obj: Raw) -> Raw:
        """See Client. Raises AlreadyExists if it existed before the first attempt."""
        attempts = 0

        def create() -> Raw:
            nonlocal attempts
            attempts += 1
            try:
                return self._inner.create(resource, obj)
            except AlreadyExists:
                if attempts == 1:
                    raise
                meta = obj["metadata"]
                return self._inner.get(resource, meta["name"], meta.get("namespace", ""))

        return self._around(create)

    def _around(self, request: Callable[[], T]) -> T:
        deadline = time.monotonic() + self._patience
        while True:
            try:
                return request()
            except (Unavailable, TooManyRequests) as error:
                if time.monotonic() > deadline or "webhook" in error.message:  # it did answer
                    raise
                time.sleep(_AGAIN_SECONDS)


@attrs.frozen(kw_only=True)
class DrillWorld:
    """The environment of one drill."""

    names: Names
    admin: Client
    direct: HttpClient
    """The same without retries, for watches."""
    manager: Manager
    actuators: Sequence[Actuator[Any]]
    target: DrillCluster
    ended: Sequence[DeletionEnded] = ()
    """Grows with every outcome that the manager reports."""
    trouble: Troublemaker = attrs.field(factory=Troublemaker)

    @property
    def kinds(self) -> list[Kind]:
        """The rehearsed kinds, each once."""
        return kinds_of(self.actuators)


def kinds_of(actuators: Iterable[Actuator[Any]]) -> list[Kind]:
    """Return each kind once, also if several actuators serve types of it."""
    return list({kind.name: kind for kind in map(kind_of, actuators)}.values())


@contextmanager
def outside(rehearsal: CombinedRehearsal, say: Callable[[str], None]) -> Iterator[None]:
    """Run the outside world of a rehearsal until the context is left."""
    with tempfile.TemporaryDirectory(prefix="drill-") as directory:
        try:
            say(f"Starting the outside: {rehearsal.title}")
            rehearsal.start(Path(directory))
            yield
        finally:
            rehearsal.stop()


@contextmanager
def embedded_world(
    rehearsal: CombinedRehearsal, settings: DrillSettings, say: Callable[[str], None]
) -> Iterator[DrillWorld]:
    """Open a world whose manager is not started yet. Raises ActuatorError or ApiError."""
    names = Names()
    broken = settings.broken
    trouble = settings.trouble
    with outside(rehearsal, say):
        say("Starting the embedded cluster: etcd, kube-apiserver, kube-controller-manager")
        with (
            embedded_seed(rehearsal, say) as seed,
            causing(trouble, seed.environment) as maker,
        ):
            actuators = [
                maker.actuator(broken.actuator(actuator)) for actuator in rehearsal.actuators()
            ]
            options = Options(force_delete_budget=trouble.budget, outcome_events="all")
            ended: list[DeletionEnded] = []
            make = partial(TroubledManager, maker)
            manager = manager_for(
                actuators, [names.type], options, broken.client, ended.append, make=make
            )
            mine = seed.admit(manager, names.type)  # not as administrator
            manager.options = attrs.evolve(manager.options, kubeconfig=mine)
            try:
                yield DrillWorld(
                    names=names,
                    admin=PatientClient(seed.admin),
                    direct=seed.admin,
                    target=target_of(seed.admin),
                    manager=manager,
                    actuators=actuators,
                    ended=ended,
                    trouble=maker,
                )
            finally:
                manager.stop()


def target_of(client: HttpClient) -> DrillCluster:
    """Ask the API server who it is, and who its client is. Raises ApiError."""
    version = json.loads(client.send("GET", "/version"))["gitVersion"]
    return DrillCluster(host=client.host, user=user_name(client), server_version=version)


def beside(names: Names) -> str:
    """Describe the manager of a drill on a seed that is not its own."""
    return (
        f"the drill runs a manager of its own, for the extension type {names.type}, beside the "
        "extensions that are deployed"
    )


@contextmanager
def serving(manager: Manager) -> Iterator[None]:
    """Run a manager until the context is left. Raises ActuatorError if it does not start."""
    manager.start()
    try:
        if not manager.wait_synced(_SYNC_SECONDS):
            raise ActuatorError(f"a manager is not synced within {_SYNC_SECONDS:.0f} s")
        yield
    finally:
        manager.stop()


def manager_for(
    actuators: Sequence[Actuator[Any]],
    types: Sequence[str],
    options: Options,
    intercept: Callable[[Client], Client] | None = None,
    *listeners: Listener,
    make: Callable[..., Manager] = Manager,
) -> Manager:
    """Return a manager for these extension types, without ports and with a short shutdown."""
    quiet = attrs.evolve(
        options, metrics_bind_address="0", health_bind_address="0", shutdown_timeout=3.0
    )
    manager = make(quiet, intercept=intercept, listeners=listeners)
    for actuator in actuators:
        if object_class(actuator).KIND.has_operation_annotation:
            manager.add(actuator, type=types_of(actuator, types))
        else:
            manager.add(actuator)
            manager.registrations[-1] = replace(manager.registrations[-1], scope=of_drills(types))
    return manager
