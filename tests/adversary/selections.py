"""Author predicates and selections: which actuator serves an object, and how often it is called.

Each input is an object and two registrations of random types, namespaces and predicates. A manager
serves many inputs at a time, and another controller writes to their objects meanwhile.
"""

from __future__ import annotations

import math
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any

import attrs

from actuator import Actuator, ActuatorError
from actuator.cluster import Cluster
from actuator.errors import ApiError, NotFound
from actuator.interface import resource_of
from actuator.meta import Raw
from actuator.v1alpha1 import Infrastructure
from generic.controller import predicates as p
from generic.kube.client import HttpClient, connect
from generic.kube.headers import Event, EventType, Header
from generic.manager.manager import Manager
from generic.manager.options import Options
from generic.reconciler.orphans import RECORD_KINDS
from generic.testing.drill.names import Names
from generic.testing.drill.seeds import EmbeddedSeed
from generic.testing.envtest import Environment
from generic.testing.garden import Garden
from generic.testing.seed import install_crds
from generic.tools.drain.survey import survey
from tests.adversary.inputs import rng_of
from tests.adversary.judge import PATIENCE, Report
from tests.support.objects.predicates import finalizers_changed, has_name

__all__ = ["attack_selections", "selected"]

_KIND = Infrastructure.KIND
_OBJECTS = resource_of(_KIND)
_PLACES = ("one", "two", "forced")
_BATCH = 100
_FAILING_SECONDS = 2.0
_PAUSE = 0.1
_FIRST_BACKOFF = 0.004
_SPARE = 5
"""Seconds of the shortest first backoff; attempts that start for another reason."""


@attrs.frozen
class Selected:
    """The arguments of one registration."""

    types: tuple[str, ...]
    places: tuple[str, ...]
    authors: tuple[p.Predicate, ...] = attrs.field(eq=False, repr=False)

    def overlaps(self, other: Selected) -> bool:
        """Whether both would serve some object."""
        same_place = not self.places or not other.places or set(self.places) & set(other.places)
        return bool(set(self.types) & set(other.types) and same_place)


@attrs.frozen
class Selection:
    """One input."""

    number: int
    type: str
    class_: str
    place: str
    is_disturbed: bool
    registrations: tuple[Selected, Selected]

    @property
    def name(self) -> str:
        """The name of the object."""
        return f"o-{self.number}"

    @property
    def added(self) -> Sequence[Selected]:
        """The registrations that a manager accepts."""
        first, second = self.registrations
        return (first,) if first.overlaps(second) else self.registrations

    @property
    def owner(self) -> int | None:
        """The registration that has to serve the object; None if there is none."""
        for index, item in enumerate(self.added):
            here = not item.places or self.place in item.places
            if self.type in item.types and here and self.class_ in ("", "shoot"):
                return index
        return None


def selected(seed: int, number: int) -> Selection:
    """The input of this number."""
    rng = rng_of(seed, "predicates", number)
    types = [f"t-{number}-a", f"t-{number}-b"]
    return Selection(
        number=number,
        type=rng.choice(types),
        class_=rng.choice(("", "shoot", "shoot", "seed")),
        place=rng.choice(_PLACES),
        is_disturbed=rng.random() < 0.3,
        registrations=(_registration(rng, types), _registration(rng, types)),
    )


def _registration(rng: random.Random, types: Sequence[str]) -> Selected:
    return Selected(
        types=tuple(rng.sample(types, rng.choice((1, 1, 2)))),
        places=tuple(rng.sample(_PLACES, rng.choice((0, 0, 1, 2)))),
        authors=tuple(_predicate(rng) for _ in range(rng.randrange(4))),
    )


def _predicate(rng: random.Random, depth: int = 0) -> p.Predicate:
    """A predicate that is plain, mistaken, inconsistent, or a combination of such."""
    kind = rng.choice(("plain", "mistaken", "flipping", "combined"))
    if kind == "combined" and depth < 3:
        parts = [_predicate(rng, depth + 1) for _ in range(rng.randrange(1, 4))]
        return rng.choice((p.all_of(*parts), p.any_of(*parts), p.negate(parts[0])))
    if kind == "flipping":
        return _flipping(rng)
    return rng.choice(_MISTAKEN if kind == "mistaken" else _PLAIN)


def _flipping(rng: random.Random) -> p.Predicate:
    own = random.Random(rng.random())
    share = rng.choice((0.1, 0.5, 0.9))
    seconds = rng.choice((0.05, 0.5))
    by_chance = rng.random() < 0.5
    return lambda _event: (
        own.random() < share if by_chance else time.monotonic() // seconds % 2 == 1
    )


def _broken(_event: Event[Header]) -> bool:
    raise LookupError("a mistake of the author")


def _leaving(_event: Event[Header]) -> bool:
    raise SystemExit


class _Undecided:
    def __bool__(self) -> bool:
        raise TypeError("neither true nor false")


_PLAIN: tuple[p.Predicate, ...] = (
    *(p.negate(p.is_deleting), p.is_deleting, p.generation_changed, finalizers_changed),
    *(p.conditions_changed("Healthy"), p.has_operation_annotation, has_name("another")),
    *(p.has_namespace("elsewhere"), p.has_type("another"), p.has_class("garden")),
    *(p.for_event_types(EventType.DELETED), p.for_event_types(EventType.MODIFIED)),
)
_MISTAKEN: tuple[Any, ...] = (
    *(_broken, _leaving, lambda _event: _Undecided(), lambda _event: None, lambda: True),
    lambda event: event.new.annotations["absent"],
)


@attrs.define
class _Calls:
    """The calls of the actuators of a batch; deletions fail until they may succeed."""

    by: Counter[tuple[str, int]] = attrs.field(factory=Counter)
    """By object, and index of the registration."""
    lock: threading.Lock = attrs.field(factory=threading.Lock)
    may_succeed: threading.Event = attrs.field(factory=threading.Event)

    def record(self, name: str, index: int) -> None:
        with self.lock:
            self.by[name, index] += 1


class _Recorder(Actuator[Infrastructure]):
    """Records its calls."""

    def __init__(self, calls: _Calls, index: int) -> None:
        self._calls = calls
        self._index = index

    def reconcile(self, ctx: Any, obj: Infrastructure, cluster: Cluster) -> None:
        """Succeeds; whether it is called depends on the author's predicates."""

    def delete(self, ctx: Any, obj: Infrastructure, cluster: Cluster) -> None:
        """Fails at first."""
        self._calls.record(obj.metadata.name, self._index)
        if not self._calls.may_succeed.is_set():
            raise ActuatorError("not yet")

    def force_delete(self, ctx: Any, obj: Infrastructure, cluster: Cluster) -> None:
        """As `delete`."""
        self.delete(ctx, obj, cluster)


def attack_selections(
    environment: Environment, seed: int, numbers: Sequence[int], report: Report
) -> None:
    """Let the inputs live, many at a time, and report the broken rules."""
    admin = connect(environment.kubeconfig, connections=24)
    install_crds(admin, [Cluster, *RECORD_KINDS, Infrastructure])
    names = Names()
    garden = Garden(admin)
    places = {}
    for place in _PLACES:
        shoot = names.shoot(place, "eu-1")
        garden.create_namespace(shoot)
        places[place] = shoot.technical_id
        if place == "forced":
            garden.force(shoot)
    for start in range(0, len(numbers), _BATCH):
        inputs = [selected(seed, number) for number in numbers[start : start + _BATCH]]
        _Batch(environment, admin, names.type, places, inputs, report).live()
        report.counts["lived"] += len(inputs)
        report.say(f"{report.counts['lived']} of {len(numbers)}, {report}")


@attrs.define
class _Batch:
    """Inputs that one manager serves at a time."""

    environment: Environment
    admin: HttpClient
    user: str
    places: dict[str, str]
    inputs: Sequence[Selection]
    report: Report
    calls: _Calls = attrs.field(factory=_Calls)

    def live(self) -> None:
        """Create, delete while it fails, let it succeed, and judge."""
        with ThreadPoolExecutor(16) as pool, self._manager() as manager:
            list(pool.map(self._create, self.inputs))
            self._judge_drain(manager)
            since = time.monotonic()
            list(pool.map(self._delete, self.inputs))
            with self._disturbed():
                time.sleep(_FAILING_SECONDS)
            attempts = Counter(self.calls.by)
            seconds = time.monotonic() - since
            self.calls.may_succeed.set()
            self._wait_for_releases()
            self._judge(attempts, seconds)
        for input_ in self.inputs:
            with suppress(NotFound):
                patch = {"metadata": {"finalizers": None}}
                self.admin.patch(_OBJECTS, input_.name, self.places[input_.place], patch)

    @contextmanager
    def _manager(self) -> Iterator[Manager]:
        options = Options(
            metrics_bind_address="0",
            health_bind_address="0",
            leader_election=False,
            shutdown_timeout=5.0,
        )
        manager = Manager(options)
        for input_ in self.inputs:
            self._register(manager, input_)
        admitted = EmbeddedSeed(self.environment, self.admin).admit(manager, self.user)
        manager.options = attrs.evolve(options, kubeconfig=admitted)
        manager.start()
        try:
            if not manager.wait_synced():
                raise ActuatorError("the caches are not filled")
            yield manager
        finally:
            manager.stop()

    def _register(self, manager: Manager, one: Selection) -> None:
        for index, wanted in enumerate(one.registrations):
            try:
                manager.add(
                    _Recorder(self.calls, index),
                    type=wanted.types,
                    namespaces=[self.places[place] for place in wanted.places],
                    name=f"c-{one.number}-{index}",
                    workers=1,
                    predicates=wanted.authors,
                )
                refused = False
            except ValueError:
                refused = True
            if refused is (index < len(one.added)):
                self._complain("alone", one, f"registration {index} is refused: {refused}")

    def _create(self, one: Selection) -> None:
        meta = {"name": one.name, "namespace": self.places[one.place]}
        spec = {"type": one.type, "region": "eu-1", "secretRef": {"name": "cloudprovider"}}
        manifest: Raw = {"apiVersion": _KIND.api_version, "kind": _KIND.name}
        manifest |= {"metadata": meta | {"finalizers": [_KIND.finalizer, "a/a"]}}
        self.admin.create(_OBJECTS, manifest | {"spec": spec | {"class": one.class_ or None}})

    def _delete(self, one: Selection) -> None:
        self.admin.delete(_OBJECTS, one.name, self.places[one.place])

    @contextmanager
    def _disturbed(self) -> Iterator[None]:
        """Another controller writes to the disturbed objects."""
        over = threading.Event()
        many = [input_ for input_ in self.inputs if input_.is_disturbed]

        def disturb(some: Sequence[Selection]) -> None:
            number = 0
            while not over.wait(_PAUSE):
                number += 1
                for item in some:
                    with suppress(ApiError):
                        self._write(item, str(number))

        threads = [threading.Thread(target=disturb, args=(many[n::6],)) for n in range(6)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            over.set()
            for thread in threads:
                thread.join()

    def _write(self, one: Selection, text: str) -> None:
        where = (_OBJECTS, one.name, self.places[one.place])
        noted = {"example.org/a": text, "gardener.cloud/b": text}
        self.admin.patch(*where, {"metadata": {"labels": {"a": text}, "annotations": noted}})
        self.admin.patch(*where, {"status": {"state": {"a": text}}}, subresource="status")

    def _judge_drain(self, manager: Manager) -> None:
        """`actuator drain` has to list exactly the objects that the manager serves."""
        found = survey(self.admin, manager.registrations, manager.options.extension_classes)
        listed = {item.request.name for item in found.held}
        for input_ in self.inputs:
            if (input_.name in listed) is (input_.owner is None):
                self._complain("alone", input_, f"listed by drain: {input_.name in listed}")

    def _wait_for_releases(self) -> None:
        deadline = time.monotonic() + PATIENCE
        wanted = {input_.name for input_ in self.inputs if input_.owner is not None}
        while time.monotonic() < deadline and wanted & self._held():
            time.sleep(0.2)

    def _held(self) -> set[str]:
        """The objects of all inputs that carry our finalizer."""
        return {
            found["metadata"]["name"]
            for namespace in self.places.values()
            for found in self.admin.list(_OBJECTS, namespace)
            if _KIND.finalizer in found["metadata"].get("finalizers", ())
        }

    def _judge(self, attempts: Counter[tuple[str, int]], seconds: float) -> None:
        held = self._held()
        most = math.log2(seconds / _FIRST_BACKOFF + 1) + _SPARE
        for input_ in self.inputs:
            by = {index for index in (0, 1) if self.calls.by[input_.name, index]}
            wanted = set() if input_.owner is None else {input_.owner}
            if by != wanted:
                self._complain("alone", input_, f"called by {by}, and not by {wanted}")
            if (input_.name in held) is (input_.owner is not None):
                self._complain("released", input_, f"still held: {input_.name in held}")
            count = sum(attempts[input_.name, index] for index in (0, 1))
            if count > most:
                self._complain("rate", input_, f"{count} attempts in {seconds:.1f} s")

    def _complain(self, rule: str, one: Selection, problem: str) -> None:
        self.report.complain(rule, f"--only {one.number} ({one})", problem)
