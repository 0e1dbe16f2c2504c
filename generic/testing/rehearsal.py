"""What an extension offers so that a drill can rehearse it: its outside world, on demand.

An extension puts a class derived from `Rehearsal` into its own folder; `actuator drill
MODULE:REHEARSAL` loads it by name, so nothing in here, nor in the drill, knows a cloud. Several
can be drilled together (`CombinedRehearsal`), so that a shoot has the kinds of all of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import attrs

from actuator.errors import ConfigurationError
from actuator.interface import Actuator, Client, ExternalResource, object_class
from actuator.meta import Raw


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


class Rehearsal(ABC):
    """The outside world of an extension: started, broken by scenario, read, stopped.

    Methods that are not abstract are optional: their defaults fit an extension that does not need
    them.
    """

    title: str
    """What is rehearsed, for people: "AWS (simulated by moto)"."""

    region: str
    """The region of the rehearsed shoots."""

    scenarios: Mapping[str, str]
    """Name of each scenario, and one sentence on what it breaks."""

    makes: Mapping[str, Sequence[str]] = {}
    """Kinds whose actuator makes objects of other kinds, and which kinds these are.

    Made objects carry the labels of the object they are made for, and have it as their controller.
    Where the one kind is explored, the others' actuators work too.
    """

    shoots_only: bool = False
    """Whether the outside is the shoots themselves.

    A shoot outlives no force deletion, so no Orphan is expected but for an unknown resource (of a
    call that never came back), and objects need no state that another seed takes over.
    """

    never_migrates: bool = False
    """Whether its kinds know no migration; by itself there is none to drill."""

    takes_over: bool = False
    """Whether it has ManagedResources that Gardener's Go library deploys, too."""

    @abstractmethod
    def start(self, directory: Path) -> None:
        """Starts the outside world; it may keep files in `directory`."""

    @abstractmethod
    def stop(self) -> None:
        """Stops it; safe to call twice, and without start."""

    @abstractmethod
    def crds(self) -> Sequence[Raw]:
        """CustomResourceDefinitions of others that the extension needs in a seed."""

    @abstractmethod
    def actuators(self) -> Sequence[Actuator[Any]]:
        """The extension's actuators, set up for this outside world."""

    @abstractmethod
    def manifests(self, shoot: RehearsedShoot) -> Sequence[Raw]:
        """What gardenlet would create for the shoot: Secrets and the like, extension objects.

        In any order: the drill creates the kinds in gardenlet's.
        """

    @abstractmethod
    def break_outside(self, scenario: str) -> None:
        """Brings the scenario about. Raises KeyError for a name not in `scenarios`."""

    @abstractmethod
    def left_outside(self) -> Sequence[ExternalResource]:
        """All that exists outside now, ids and tags included, read as administrator."""

    def mend_outside(self) -> None:  # noqa: B027 - optional
        """Everything works again; what exists stays. Safe without a break before.

        Needed where it has kinds that force deletion leaves out (BackupBucket, BackupEntry): those
        are deleted normally afterwards, once the outside works again.
        """

    def share(self) -> Mapping[str, str]:
        """What another process needs to use the same outside: addresses, paths.

        Scenario `migration` and `actuator explore` need it: there the managers are processes of
        their own, so that they can be killed. One process calls `start`, reads and stops; the
        others call `attach` in place of `start`, then `crds` and `actuators`, and nothing else. It
        travels as JSON over a pipe; never put a real cloud's secret into it.
        """
        raise ConfigurationError(
            f"the outside of {self.title} cannot be shared with other processes; "
            "give its rehearsal the methods share and attach"
        )

    def attach(self, shared: Mapping[str, str]) -> None:  # noqa: B027 - optional
        """Uses the outside that another process started; `shared` is what `share` said there."""

    def observe(  # noqa: B027 - optional
        self, before: Callable[[str], None], after: Callable[[str], None]
    ) -> None:
        """From now on both hear of each request in this process, in the thread that makes it.

        Called before `actuators`. `before` hears before it is sent, `after` when it took effect
        or failed; both are told what it does, in the same words for each shoot. `actuator explore`
        kills a process before and after each of them.
        """

    def other_controllers(self, seed: Client) -> Sequence[Callable[[], None]]:
        """Simulated controllers of others for an embedded seed, each as one round of its work.

        A drill repeats each round (`generic.testing.polling`); `seed` has all rights.
        """
        return ()

    def spoil(self, manifest: Raw) -> None:  # noqa: B027 - optional
        """Changes an object without providerConfig so that no extension can accept it.

        Where there is a providerConfig, the drill has put nonsense there already.
        """


class CombinedRehearsal:
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
        self.makes = {kind: made for part in parts for kind, made in part.makes.items()}
        self.shoots_only = all(part.shoots_only for part in parts)
        self.never_migrates = all(part.never_migrates for part in parts)
        self.takes_over = any(part.takes_over for part in parts)

    @property
    def references(self) -> list[str]:
        """The class of each as MODULE:CLASS, from which another process can make it."""
        return [f"{type(part).__module__}:{type(part).__qualname__}" for part in self.parts]

    @property
    def is_shared(self) -> bool:
        """Whether other processes can use the outside of each."""
        return all(type(part).share is not Rehearsal.share for part in self.parts)

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

    def other_controllers(self, seed: Client) -> Sequence[Callable[[], None]]:
        """Those of each."""
        return [poll for part in self.parts for poll in part.other_controllers(seed)]

    def spoil(self, manifest: Raw) -> None:
        """Makes an object one that no extension can accept."""
        manifest["spec"]["providerConfig"] = {"kind": "Nonsense", "nonsense": True}
        for part in self.parts:
            part.spoil(manifest)

    def break_outside(self, scenario: str) -> None:
        """Breaks each. Raises KeyError for a name not in `scenarios`."""
        for part in self.parts:
            part.break_outside(scenario)

    def left_outside(self) -> Sequence[ExternalResource]:
        """What exists in each."""
        return [resource for part in self.parts for resource in part.left_outside()]

    def mend_outside(self) -> None:
        """Undoes the break in each that can."""
        for part in self.parts:
            part.mend_outside()

    def share(self) -> list[Mapping[str, str]]:
        """What another process needs. Raises ConfigurationError where a part cannot be shared."""
        return [part.share() for part in self.parts]

    def attach(self, shared: Sequence[Mapping[str, str]]) -> None:
        """Uses the outsides that another process started."""
        for part, what in zip(self.parts, shared, strict=True):
            part.attach(what)

    def observe(self, before: Callable[[str], None], after: Callable[[str], None]) -> None:
        """Hears of the requests to each outside."""
        for part in self.parts:
            part.observe(before, after)
