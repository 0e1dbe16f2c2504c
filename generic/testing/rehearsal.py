"""What an extension offers so that a drill can rehearse it: its outside world, on demand.

An extension puts a class of this shape into its own folder; `actuator drill MODULE:REHEARSAL`
loads it by name, so nothing in here, nor in the drill, knows a cloud. Several can be drilled
together (`Together`), so that a shoot has the kinds of all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

import attrs

from actuator.errors import ConfigurationError
from actuator.interface import Actuator, Client, ExternalResource, object_class
from actuator.meta import Raw

__all__ = [
    "Inhabited",
    "Making",
    "Mendable",
    "NeverMigrates",
    "Observed",
    "Rehearsal",
    "RehearsedShoot",
    "Shared",
    "ShootsOnly",
    "Spoiling",
    "TakesOver",
    "Together",
]


@attrs.frozen(kw_only=True)
class RehearsedShoot:
    """One shoot of a drill, as far as an extension has to know it.

    `technical_id` is also the name of its namespace in the seed and of its Cluster. `labels`
    belong on every object of the drill, and name the shoot: cluster-scoped ones have no
    namespace to tell it. `type` is the extension type to ask for.
    """

    technical_id: str
    type: str
    labels: dict[str, str]


class Rehearsal(Protocol):
    """The outside world of an extension: started, broken by scenario, read, stopped."""

    title: str
    """What is rehearsed, for people: "AWS (simulated by moto)"."""

    region: str
    """The region of the rehearsed shoots."""

    scenarios: Mapping[str, str]
    """Name of each scenario, and one sentence on what it breaks."""

    def start(self, directory: Path) -> None:
        """Starts the outside world; it may keep files in `directory`."""

    def stop(self) -> None:
        """Stops it; safe to call twice, and without start."""

    def crds(self) -> Sequence[Raw]:
        """CustomResourceDefinitions of others that the extension needs in a seed."""

    def actuators(self) -> Sequence[Actuator[Any]]:
        """The extension's actuators, set up for this outside world."""

    def manifests(self, shoot: RehearsedShoot) -> Sequence[Raw]:
        """What gardenlet would create for the shoot: Secrets and the like, extension objects.

        In any order: the drill creates the kinds in gardenlet's.
        """

    def break_outside(self, scenario: str) -> None:
        """Brings the scenario about. Raises KeyError for a name not in `scenarios`."""

    def left_outside(self) -> Sequence[ExternalResource]:
        """All that exists outside now, ids and tags included, read as administrator."""


@runtime_checkable
class Mendable(Protocol):
    """A Rehearsal that can undo its break. Optional.

    Needed where it has kinds that force deletion leaves out (BackupBucket, BackupEntry): those
    are deleted normally afterwards, once the outside works again.
    """

    def mend_outside(self) -> None:
        """Everything works again; what exists stays. Safe without a break before."""


@runtime_checkable
class Shared(Protocol):
    """A Rehearsal whose outside world other processes can use. Optional; `migration` needs it.

    There the managers are processes of their own, so that they can be killed. One process calls
    `start`, reads and stops; the others call `attach` in place of `start`, then `crds` and
    `actuators`, and nothing else.
    """

    def share(self) -> Mapping[str, str]:
        """What another process needs to use the same outside: addresses, paths.

        It travels as JSON over a pipe; never put a real cloud's secret into it.
        """

    def attach(self, shared: Mapping[str, str]) -> None:
        """Uses the outside that another process started; `shared` is what `share` said there."""


@runtime_checkable
class Observed(Protocol):
    """A Rehearsal that can tell of each request of its actuators to the outside. Optional.

    `actuator explore` kills a process before and after each of them.
    """

    def observe(self, before: Callable[[str], None], after: Callable[[str], None]) -> None:
        """From now on both hear of each request in this process, in the thread that makes it.

        Called before `actuators`. `before` hears before it is sent, `after` when it took effect
        or failed; both are told what it does, in the same words for each shoot.
        """


@runtime_checkable
class Inhabited(Protocol):
    """A Rehearsal that plays controllers of others, in each embedded seed. Optional."""

    def neighbours(self, seed: Client) -> Sequence[Callable[[], None]]:
        """One look of each of them (`generic.testing.looking`); `seed` has all rights."""


@runtime_checkable
class Making(Protocol):
    """A Rehearsal in which one kind's actuator makes objects of others. Optional.

    `makes` says of which kinds. Made objects carry the labels of the one they are made for, and
    have it as their controller. Where the one kind is explored, the others' actuators work too.
    """

    makes: Mapping[str, Sequence[str]]


@runtime_checkable
class Spoiling(Protocol):
    """A Rehearsal with kinds that have no providerConfig which could be nonsense. Optional."""

    def spoil(self, manifest: Raw) -> None:
        """Changes an object of these kinds so that no extension can accept it."""


@runtime_checkable
class ShootsOnly(Protocol):
    """A Rehearsal whose outside is the shoots themselves. Optional.

    A shoot outlives no force deletion, so nothing may be put on record but what nobody can say
    (a call that never came back); and nothing in it has to be found again, so objects need no
    state that another seed takes over.
    """

    shoots_only: Literal[True]


@runtime_checkable
class NeverMigrates(Protocol):
    """A Rehearsal of kinds that know no migration. Optional; by itself there is none to drill."""

    never_migrates: Literal[True]


@runtime_checkable
class TakesOver(Protocol):
    """A Rehearsal with ManagedResources that Gardener's Go library deploys, too. Optional."""

    takes_over: Literal[True]


class Together:
    """Several rehearsals as one: shoots have the kinds of all of them.

    Raises ConfigurationError where two bring the same kind.
    """

    def __init__(self, parts: Sequence[Rehearsal]) -> None:
        self.parts = parts
        self.title = " and ".join(part.title for part in parts)
        self.region = parts[0].region
        self.scenarios: Mapping[str, str] = {
            name: " ".join(part.scenarios[name] for part in parts)
            for name in parts[0].scenarios
            if all(name in part.scenarios for part in parts)
        }

    @property
    def references(self) -> list[str]:
        """The class of each as MODULE:CLASS, from which another process can make it."""
        return [f"{type(part).__module__}:{type(part).__qualname__}" for part in self.parts]

    @property
    def shoots_only(self) -> bool:
        """Whether each has nothing outside but the shoots; see `ShootsOnly`."""
        return all(isinstance(part, ShootsOnly) for part in self.parts)

    @property
    def makes(self) -> Mapping[str, Sequence[str]]:
        """Which kinds are made by the actuator of which; see `Making`."""
        return {
            kind: made
            for part in self.parts
            if isinstance(part, Making)
            for kind, made in part.makes.items()
        }

    def spoil(self, manifest: Raw) -> None:
        """Makes an object one that no extension can accept; see `Spoiling`."""
        manifest["spec"]["providerConfig"] = {"kind": "Nonsense", "nonsense": True}
        for part in self.parts:
            if isinstance(part, Spoiling):
                part.spoil(manifest)

    @property
    def never_migrates(self) -> bool:
        """Whether no kind of any knows migration; see `NeverMigrates`."""
        return all(isinstance(part, NeverMigrates) for part in self.parts)

    def start(self, directory: Path) -> None:
        """Starts each, with a directory of its own."""
        for number, part in enumerate(self.parts):
            own = directory / f"outside-{number}"
            own.mkdir()
            part.start(own)

    def stop(self) -> None:
        """Stops each, the last one first, also where one fails."""
        with ExitStack() as stack:
            for part in self.parts:
                stack.callback(part.stop)

    def crds(self) -> Sequence[Raw]:
        """Those of each, once."""
        found = {crd["metadata"]["name"]: crd for part in self.parts for crd in part.crds()}
        return list(found.values())

    def actuators(self) -> Sequence[Actuator[Any]]:
        """Those of each. Raises ConfigurationError for a kind that two bring."""
        found = [actuator for part in self.parts for actuator in part.actuators()]
        kinds = Counter(object_class(actuator).KIND.name for actuator in found)
        twice = sorted(kind for kind, count in kinds.items() if count > 1)
        if twice:
            raise ConfigurationError(
                f"{self.title} both have an actuator for {', '.join(twice)}; "
                "rehearse them one after the other"
            )
        return found

    def manifests(self, shoot: RehearsedShoot) -> Sequence[Raw]:
        """Those of each."""
        return [manifest for part in self.parts for manifest in part.manifests(shoot)]

    def neighbours(self, seed: Client) -> Sequence[Callable[[], None]]:
        """Those of each; see `Inhabited`."""
        inhabited = (part for part in self.parts if isinstance(part, Inhabited))
        return [look for part in inhabited for look in part.neighbours(seed)]

    def break_outside(self, scenario: str) -> None:
        """Breaks each. Raises KeyError for a name not in `scenarios`."""
        for part in self.parts:
            part.break_outside(scenario)

    def left_outside(self) -> Sequence[ExternalResource]:
        """What exists in each."""
        return [resource for part in self.parts for resource in part.left_outside()]

    def mend_outside(self) -> None:
        """Undoes the break in each that can; see `Mendable`."""
        for part in self.parts:
            if isinstance(part, Mendable):
                part.mend_outside()

    def share(self) -> list[Mapping[str, str]]:
        """What another process needs, part by part.

        Raises ConfigurationError for a part that cannot be shared.
        """
        return [_shared(part).share() for part in self.parts]

    def attach(self, shared: Sequence[Mapping[str, str]]) -> None:
        """Uses the outsides that another process started; see `Shared`."""
        for part, what in zip(self.parts, shared, strict=True):
            _shared(part).attach(what)

    def observe(self, before: Callable[[str], None], after: Callable[[str], None]) -> None:
        """Hears of the requests to each outside that can be heard; see `Observed`."""
        for part in self.parts:
            if isinstance(part, Observed):
                part.observe(before, after)


def _shared(part: Rehearsal) -> Shared:
    if isinstance(part, Shared):
        return part
    raise ConfigurationError(
        f"the outside of {part.title} cannot be shared with other processes; "
        "give its rehearsal the methods share and attach"
    )
