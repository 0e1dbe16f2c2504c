"""The two seeds of a migration, and the data copied from one to the other."""

import random
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import attrs

from actuator.errors import ConfigurationError
from actuator.interface import Client, kind_of
from actuator.meta import Kind, Raw
from generic.library.lookup import find
from generic.manager.options import Options
from generic.testing.drill.kills.calls import ActuatorCall, digest
from generic.testing.drill.kills.child import Order, Task
from generic.testing.drill.kills.processes import Death, Victim
from generic.testing.drill.migration.rules import DESTINATION, SOURCE, Arrival
from generic.testing.drill.names import Names
from generic.testing.drill.seeds import embedded_seed, other_owners
from generic.testing.drill.settings import Settings
from generic.testing.drill.world import manager_for, outside
from generic.testing.garden import Flow, Garden, Shoot, ShootState, resource_of_manifest
from generic.testing.garden.order import STAYS
from generic.testing.rehearsal import CombinedRehearsal


@attrs.frozen(kw_only=True)
class Side:
    """One of the two seeds."""

    garden: Garden
    victim: Victim
    kinds: Sequence[Kind]
    patience: float

    def flow(self, shoot: Shoot) -> Flow:
        """Return gardenlet's flows for the shoot in this seed."""
        return Flow(self.garden, shoot, self.kinds, patience=self.patience)

    def left(self, shoot: Shoot) -> Iterator[str]:
        """Yield a shoot's objects that still exist, except the seed's own. Raises ApiError."""
        for kind in self.kinds:
            if kind.name in STAYS:
                continue
            for obj in self.garden.objects(kind, shoot):
                held = ", ".join(obj["metadata"].get("finalizers") or []) or "no finalizer"
                yield f"{kind.name} {shoot.technical_id} is still there, with {held}"


@attrs.frozen(kw_only=True)
class Sides:
    """Both seeds, with their common clock and file of calls."""

    source: Side
    destination: Side
    began: float
    calls: Path

    @property
    def kinds(self) -> Sequence[Kind]:
        """The kinds that both serve."""
        return self.source.kinds

    @property
    def deaths(self) -> list[Death]:
        """All kills so far, in order."""
        deaths = [*self.source.victim.deaths, *self.destination.victim.deaths]
        return sorted(deaths, key=lambda death: death.at)

    def now(self) -> float:
        """Return the seconds since the drill began."""
        return time.monotonic() - self.began

    @contextmanager
    def endangered(self, phase: str, dice: random.Random) -> Iterator[None]:
        """Kill both managers repeatedly while the context is open."""
        with ExitStack() as stack:
            for side in (self.source, self.destination):
                own = random.Random(dice.random())
                stack.enter_context(side.victim.endangered(phase, own))
            yield


@contextmanager
def open_sides(
    settings: Settings,
    rehearsal: CombinedRehearsal,
    names: Names,
    shoots: Sequence[Shoot],
    say: Callable[[str], None],
) -> Iterator[Sides]:
    """Start two seeds and one outside world. Raises ActuatorError or ApiError."""
    began = time.monotonic()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="migration-")))
        stack.enter_context(outside(rehearsal, say))
        if not any(kind_of(one).migratable for one in rehearsal.actuators()):
            raise ConfigurationError(
                f"{rehearsal.title}: none of its kinds migrates; set never_migrates = True"
            )
        order = Order(
            type=names.type,
            shared=rehearsal.share(),
            calls=str(folder / "calls"),
            break_rule=settings.break_rule or "",
        )
        source, destination = (
            stack.enter_context(
                _side(attrs.evolve(order, seed=seed), settings, rehearsal, shoots, began, say)
            )
            for seed in (SOURCE, DESTINATION)
        )
        yield Sides(source=source, destination=destination, began=began, calls=folder / "calls")


@contextmanager
def _side(
    order: Order,
    settings: Settings,
    rehearsal: CombinedRehearsal,
    shoots: Sequence[Shoot],
    began: float,
    say: Callable[[str], None],
) -> Iterator[Side]:
    """Start a seed with a manager in a separate process, under its generated Role."""
    say(f"Starting the {order.seed}: an embedded cluster, and a manager in a process of its own")
    actuators = rehearsal.actuators()
    namespaces = [shoot.technical_id for shoot in shoots]
    with ExitStack() as stack:
        seed = stack.enter_context(embedded_seed(rehearsal, say))
        stack.enter_context(other_owners(seed.admin, actuators, namespaces))
        user = seed.admit(manager_for(actuators, [order.type], Options()), order.type)
        task = Task(kubeconfig=str(user), rehearsals=rehearsal.references)
        log = Path(order.calls).with_name(f"{order.seed}.log")
        victim = Victim(task, order, log, lambda: time.monotonic() - began)
        stack.callback(victim.close)
        yield Side(
            garden=Garden(seed.admin),
            victim=victim,
            kinds=[kind_of(one) for one in actuators],
            patience=settings.patience,
        )


def arrivals(
    client: Client, shoot: Shoot, state: ShootState, calls: Sequence[ActuatorCall]
) -> Iterator[Arrival]:
    """Compare the sent state and resources with those that the destination first saw."""
    first: dict[tuple[str, str], ActuatorCall] = {}
    for call in calls:
        if (call.seed, call.operation, call.shoot) == (DESTINATION, "restore", shoot.technical_id):
            first.setdefault((call.kind, call.name), call)
    for one in state.extensions:
        if one.state is not None:
            seen = first.get((one.kind, one.name))
            yield Arrival(
                shoot=shoot.technical_id,
                what=f"state of {one.kind} {one.name}",
                sent=digest(one.state),
                came=seen.state if seen else "",
            )
    for resource in state.resources:
        where, name = resource_of_manifest(resource), resource["metadata"]["name"]
        yield Arrival(
            shoot=shoot.technical_id,
            what=f"{resource['kind']} {name}",
            sent=_content(resource),
            came=_content(find(client, where, name, shoot.technical_id)),
        )


def _content(obj: Raw | None) -> str:
    """Return a digest of the object without metadata and status."""
    apart = ("apiVersion", "kind", "metadata", "status")
    return "" if obj is None else digest({k: v for k, v in obj.items() if k not in apart})
