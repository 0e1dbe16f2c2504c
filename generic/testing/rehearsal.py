"""The interface that an extension implements for drills: the outside world (cloud) it works on.

An extension puts a class derived from `Rehearsal` into its own folder; `actuator drill
MODULE:REHEARSAL` loads it by name, so neither this module nor the drill knows a cloud. A drill can
combine several (`CombinedRehearsal`): each shoot then has the kinds of all of them.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any

import attrs

from actuator.errors import ConfigurationError
from actuator.interface import Actuator, Client, ExternalResource, WrappedActuator, object_class
from actuator.meta import Raw
from generic.library.webhooks import Webhook
from generic.testing.shootpart import ShootPart

Around = Callable[[str], AbstractContextManager[None]]
"""Returns the context in which a request is sent; see `Rehearsal.observe`."""


@attrs.frozen(kw_only=True)
class RehearsedShoot:
    """The properties of one shoot of a drill that an extension needs.

    `technical_id` is also the name of its namespace in the seed and of its Cluster. `labels`
    belong on every object of the drill and name the shoot: cluster-scoped objects have no
    namespace that identifies it. `type` is the extension type of its objects.
    """

    technical_id: str
    type: str
    labels: dict[str, str]


class Rehearsal(ABC):
    """Starts, breaks (by scenario), reads and stops the outside world of an extension.

    Methods that are not abstract are optional: their defaults fit an extension that does not need
    them.
    """

    title: str
    """Title for people: "AWS (simulated by moto)"."""

    region: str
    """The region of the rehearsed shoots."""

    scenarios: Mapping[str, str]
    """Name of each scenario, and one sentence that describes its failure."""

    makes: Mapping[str, Sequence[str]] = {}
    """Kinds whose actuator creates objects of other kinds, with these other kinds.

    A created object carries the labels of the object it was created for, which is its controller.
    Where `actuator explore` tests the first kind, the actuators of the others run too.
    """

    reports_exactly: Collection[str] = ()
    """Kinds whose actuator reports exactly the resources that exist, also after a crash.

    Only the resource that was being created or deleted may differ. Their `external_resources` is
    compared with the outside world by `actuator explore`.
    """

    shoots_only: bool = False
    """Whether the outside world is the shoots themselves.

    A force deletion ends the shoot too, so no Orphan is expected except for an unknown resource (of
    an abandoned call), and objects need no state that another seed takes over.
    """

    never_migrates: bool = False
    """Whether its kinds have no migration; a rehearsal of these alone refuses to drill one."""

    type_suffixes: Mapping[type[Actuator[Any]], str] = {}
    """Suffixes of extension types, by the class of the actuator that serves the type.

    They separate actuators of one kind: manifests for such an actuator have the `type` of the
    RehearsedShoot with its suffix.
    """

    takes_over: bool = False
    """Whether it has ManagedResources that Gardener's Go library deploys as well.

    A rehearsal without them refuses the scenario take-over.
    """

    def join(self, earlier: "Rehearsal") -> None:  # noqa: B027 - optional
        """Use the outside world of an earlier rehearsal of a combination, if it is the same one."""

    @abstractmethod
    def start(self, directory: Path) -> None:
        """Start the outside world; it may keep files in `directory`."""

    def stop(self) -> None:  # noqa: B027 - optional
        """Stop it. Safe to call twice, and without `start`."""

    def crds(self) -> Sequence[Raw]:
        """Return CustomResourceDefinitions of other components that the extension needs."""
        return ()

    @abstractmethod
    def actuators(self) -> Sequence[Actuator[Any]]:
        """Return the extension's actuators, set up for this outside world."""

    def webhooks(self) -> Sequence[Webhook]:
        """Return the extension's webhooks, for the scenario webhooks-down."""
        return ()

    @abstractmethod
    def manifests(self, shoot: RehearsedShoot) -> Sequence[Raw]:
        """Return the objects that gardenlet would create for the shoot: Secrets, extensions etc.

        In any order: the drill creates the kinds in gardenlet's order.
        """

    @abstractmethod
    def break_outside(self, scenario: str) -> None:
        """Cause the failure of the scenario. Raises KeyError for a name not in `scenarios`."""

    @abstractmethod
    def left_outside(self) -> Sequence[ExternalResource]:
        """Return all existing external resources with ids and tags, read as administrator.

        Tags contain the shoot's technical ID: a drill takes resources of the same type with the
        same tags for duplicates (invariant I4).
        """

    def mend_outside(self) -> None:  # noqa: B027 - optional
        """Undo the failure; existing resources stay. Safe without an earlier `break_outside`.

        Needed for kinds that force deletion excludes (BackupBucket, BackupEntry): the drill deletes
        them normally once the outside world works again.
        """

    def share(self) -> Mapping[str, str]:
        """Return what another process needs to use the same outside world: addresses, paths.

        Scenario `migration` and `actuator explore` need it: they run managers as separate
        processes in order to kill them. One process calls `start`, reads and stops; the others call
        `attach` in place of `start`, then only `crds` and `actuators`. The result is sent as JSON
        over a pipe; never put a real cloud's secret into it.
        """
        raise ConfigurationError(
            f"the outside of {self.title} cannot be shared with other processes; "
            "give its rehearsal the methods share and attach"
        )

    def attach(self, shared: Mapping[str, str]) -> None:  # noqa: B027 - optional
        """Use the outside world of another process; `shared` is the result of its `share`."""

    def observe(self, around: Around) -> None:  # noqa: B027 - optional
        """Enter `around(text)` for each later request of this process, in the sending thread.

        Called before `actuators`. The context is entered before the request is sent, and left when
        it took effect or failed. The text describes the request, and is the same for each shoot.
        `actuator explore` kills a process before and after each request.
        """

    def other_controllers(self, seed: Client) -> Sequence[Callable[[], None]]:
        """Return simulated external controllers for an embedded seed, each as one round of work.

        A drill repeats each round (`generic.testing.polling`); `seed` has administrator rights.
        """
        return ()

    def shoot_part(self, image: str) -> ShootPart:
        """Return what a real Gardener needs for Shoots with the extension; call it after `start`.

        `image` is the name of the machine image, which is the type of OperatingSystemConfigs.
        """
        raise ConfigurationError(
            f"{self.title} cannot run in a landscape; give its rehearsal the method shoot_part"
        )

    def spoil(self, manifest: Raw) -> None:  # noqa: B027 - optional
        """Change an object without providerConfig so that no extension can accept it.

        The drill itself has already put an invalid value into an existing providerConfig.
        """


class _Typed(WrappedActuator):
    """Serves an extension type with a suffix."""

    def __init__(self, inner: Actuator[Any], suffix: str) -> None:
        super().__init__(inner)
        self.suffix = suffix


def types_of(actuator: Actuator[Any], types: Iterable[str]) -> list[str]:
    """Return the extension types that a rehearsed actuator serves in drills of these types."""
    while isinstance(actuator, WrappedActuator) and not isinstance(actuator, _Typed):
        actuator = actuator.inner
    suffix = actuator.suffix if isinstance(actuator, _Typed) else ""
    return [f"{type}{suffix}" for type in types]


class CombinedRehearsal:
    """Several rehearsals as one: each shoot has the kinds of all of them.

    A rehearsal with a kind of an earlier one gets an extension type of its own.
    """

    def __init__(self, parts: Sequence[Rehearsal]) -> None:
        self.parts = parts
        self.title = " and ".join(part.title for part in parts)
        self.region = parts[0].region
        self.scenarios: Mapping[str, str] = {
            name: " ".join(dict.fromkeys(part.scenarios[name] for part in parts))
            for name in parts[0].scenarios
            if all(name in part.scenarios for part in parts)
        }
        self.makes = {kind: made for part in parts for kind, made in part.makes.items()}
        self.reports_exactly = {kind for part in parts for kind in part.reports_exactly}
        self.shoots_only = all(part.shoots_only for part in parts)
        self.never_migrates = all(part.never_migrates for part in parts)
        self.takes_over = any(part.takes_over for part in parts)
        self._suffixes = [""] * len(parts)
        for number, part in enumerate(parts):
            for earlier in parts[:number]:
                part.join(earlier)

    @property
    def references(self) -> list[str]:
        """The class of each rehearsal as MODULE:CLASS, so that another process can create it."""
        return [f"{type(part).__module__}:{type(part).__qualname__}" for part in self.parts]

    @property
    def is_shared(self) -> bool:
        """Whether other processes can use every outside world."""
        return all(type(part).share is not Rehearsal.share for part in self.parts)

    def start(self, directory: Path) -> None:
        """Start each one, with a directory of its own."""
        for number, part in enumerate(self.parts):
            own = directory / f"outside-{number}"
            own.mkdir()
            part.start(own)

    def stop(self) -> None:
        """Stop each one in reverse order, also if one fails."""
        with ExitStack() as stack:
            for part in self.parts:
                stack.callback(part.stop)

    def crds(self) -> Sequence[Raw]:
        """Return the CRDs of all rehearsals, each name once."""
        found = {crd["metadata"]["name"]: crd for part in self.parts for crd in part.crds()}
        return list(found.values())

    def actuators(self) -> Sequence[Actuator[Any]]:
        """Return all actuators. Raises ConfigurationError if two serve one kind and type."""
        found: list[Actuator[Any]] = []
        served: set[tuple[str, str]] = set()
        for number, part in enumerate(self.parts):
            own = [(one, object_class(one).KIND.name) for one in part.actuators()]
            known = {kind for kind, _ in served}
            self._suffixes[number] = f"-{number + 1}" if known & {kind for _, kind in own} else ""
            for actuator, kind in own:
                suffix = self._suffixes[number] + part.type_suffixes.get(type(actuator), "")
                typed = object_class(actuator).KIND.has_operation_annotation
                if (kind, suffix) in served or (suffix and not typed):
                    raise ConfigurationError(
                        f"{self.title}: two actuators for {kind} of one type; separate the types "
                        "with type_suffixes of the rehearsal, or rehearse one after the other"
                    )
                served.add((kind, suffix))
                found.append(_Typed(actuator, suffix) if suffix else actuator)
        return found

    def webhooks(self) -> Sequence[Webhook]:
        """Return the webhooks of all rehearsals."""
        return [webhook for part in self.parts for webhook in part.webhooks()]

    def manifests(self, shoot: RehearsedShoot) -> Sequence[Raw]:
        """Return the manifests of all rehearsals; call it after `actuators`.

        Raises ConfigurationError for two extension objects of one kind and name.
        """
        found: list[Raw] = []
        for part, suffix in zip(self.parts, self._suffixes, strict=True):
            own = part.manifests(attrs.evolve(shoot, type=shoot.type + suffix))
            names = {(one["kind"], one["metadata"]["name"]) for one in found}
            for one in own:
                kind, name = one["kind"], one["metadata"]["name"]
                if suffix and "type" in one.get("spec", {}) and (kind, name) in names:
                    raise ConfigurationError(
                        f"{self.title} both create {kind} {name}; rehearse them one after the other"
                    )
            found += own
        return found

    def other_controllers(self, seed: Client) -> Sequence[Callable[[], None]]:
        """Return the controllers of all rehearsals."""
        return [poll for part in self.parts for poll in part.other_controllers(seed)]

    def shoot_parts(self, image: str) -> Sequence[ShootPart]:
        """Return the parts of all rehearsals. Raises ConfigurationError for one without it."""
        return [part.shoot_part(image) for part in self.parts]

    def spoil(self, manifest: Raw) -> None:
        """Change an object so that no extension can accept it."""
        manifest["spec"]["providerConfig"] = {"kind": "Nonsense", "nonsense": True}
        for part in self.parts:
            part.spoil(manifest)

    def break_outside(self, scenario: str) -> None:
        """Break every outside world. Raises KeyError for a name not in `scenarios`."""
        for part in self.parts:
            part.break_outside(scenario)

    @property
    def all_scenarios(self) -> Mapping[str, str]:
        """The scenarios that at least one rehearsal has, for `break_where_known`."""
        names = dict.fromkeys(name for part in self.parts for name in part.scenarios)
        return {
            name: " ".join(part.scenarios[name] for part in self.parts if name in part.scenarios)
            for name in names
        }

    def break_where_known(self, scenario: str) -> None:
        """Break the outside worlds with this scenario. Raises ConfigurationError without one."""
        if scenario not in self.all_scenarios:
            known = ", ".join(self.all_scenarios)
            raise ConfigurationError(f"no scenario {scenario!r}; the rehearsals have {known}")
        for part in self.parts:
            if scenario in part.scenarios:
                part.break_outside(scenario)

    def left_outside(self) -> Sequence[ExternalResource]:
        """Return the external resources of all rehearsals; those of a common world once."""
        found = [resource for part in self.parts for resource in part.left_outside()]
        return list({(one.type, one.id or id(one)): one for one in found}.values())

    def mend_outside(self) -> None:
        """Undo the failure in every outside world that supports it."""
        for part in self.parts:
            part.mend_outside()

    def share(self) -> list[Mapping[str, str]]:
        """Return the result of each `share`. Raises ConfigurationError for one without it."""
        return [part.share() for part in self.parts]

    def attach(self, shared: Sequence[Mapping[str, str]]) -> None:
        """Use the outside worlds that another process started."""
        for part, what in zip(self.parts, shared, strict=True):
            part.attach(what)

    def observe(self, around: Around) -> None:
        """Observe the requests to every outside world."""
        for part in self.parts:
            part.observe(around)
