"""The interface that an extension implements for drills: the outside world (cloud) it works on.

An extension puts a class derived from `Rehearsal` into its own folder; `actuator drill
MODULE:REHEARSAL` loads it by name, so neither this module nor the drill knows a cloud. A drill can
combine several (`CombinedRehearsal`): each shoot then has the kinds of all of them.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import cached_property, reduce
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import attrs

from actuator.errors import ConfigurationError
from actuator.interface import (
    Actuator,
    Client,
    ExternalResource,
    WrappedActuator,
    kind_of,
    object_class,
)
from actuator.meta import Object, Raw
from actuator.v1alpha1 import BackupEntry
from generic.kube.crds import crd
from generic.kube.errorinfo import authors_code, shorten
from generic.library.manifests import manifest, manifest_of, merged
from generic.library.programs.errors import EnvtestError
from generic.library.webhooks import Webhook
from generic.manager.mistakes import check_actuator, check_overrides
from generic.reconciler.origin import version_of_class
from generic.testing.garden.backups import BACKUPS, backup_namespace
from generic.testing.minimal import USER_DATA, example_spec, has_pools
from generic.testing.shootapi import ShootServers
from generic.testing.shootpart import ShootPart, completed

P = ParamSpec("P")
T = TypeVar("T")
Around = Callable[[str], AbstractContextManager[None]]
"""Returns the context in which a request is sent; see `Rehearsal.observe`."""
_MAX_SHOWN = 200
"""Bytes of a wrong value that an error shows."""


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

    region: str = "region-1"
    """The region of the rehearsed shoots."""

    scenarios: Mapping[str, str] = {
        "credentials-revoked": "The credentials of the shoots are revoked."
    }
    """Name of each scenario, and one sentence that describes its failure."""

    secret_data: Mapping[str, str] = {}
    """The contents of the Secret `cloudprovider` of the rehearsed shoots."""

    other_kinds: Sequence[type[Object]] = ()
    """Kinds of other components, whose CustomResourceDefinitions the extension needs."""

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

    with_shoot_api: bool = False
    """Whether each shoot has an API server, for `ctx.shoot` and the content of ManagedResources.

    Each is an embedded cluster of some 350 MB: rehearse few shoots at a time.
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
        """Return CustomResourceDefinitions of other components: by default of `other_kinds`."""
        return [crd(cls) for cls in self.other_kinds]

    @abstractmethod
    def actuators(self) -> Sequence[Actuator[Any]]:
        """Return the extension's actuators, set up for this outside world."""

    def webhooks(self) -> Sequence[Webhook]:
        """Return the extension's webhooks, for the scenario webhooks-down."""
        return ()

    def manifests(self, shoot: RehearsedShoot) -> Sequence[Raw]:
        """Return the objects that gardenlet would create for the shoot: Secrets, extensions etc.

        In any order: the drill creates the kinds in gardenlet's order. By default a Secret
        `cloudprovider`, and for each actuator an object with its required fields and a
        configuration of the examples and defaults in its class (`Schema`). A Worker has one pool,
        in one zone, with a Secret of user data. Backups have their Secret in a namespace of their
        own, because they outlive that of the shoot.
        """
        id = shoot.technical_id
        secret = {"labels": shoot.labels, "stringData": {**self.secret_data}}
        objects = [manifest("v1", "Secret", "cloudprovider", id, **secret)]
        backups = backup_namespace(id)
        if any(kind_of(item).name in BACKUPS for item in self.actuators()):
            objects.append(manifest("v1", "Namespace", backups, labels=shoot.labels))
            objects.append(manifest("v1", "Secret", "cloudprovider", backups, **secret))
        for actuator in self.actuators():
            suffix = self.type_suffixes.get(type(actuator), "")
            cls = object_class(actuator)
            reference = {
                "name": "cloudprovider",
                "namespace": backups if cls.KIND.name in BACKUPS else id,
            }
            known = {"type": shoot.type + suffix, "region": self.region, "secretRef": reference}
            spec = example_spec(actuator, {**known, "bucketName": id})
            name = f"{id}--1" if cls is BackupEntry else id  # it ends with the UID of the shoot
            objects.append(manifest_of(cls, f"{name}{suffix}", id, shoot.labels, spec=spec))
            if has_pools(cls):
                data = {USER_DATA["key"]: "#!/bin/sh"}
                where = USER_DATA["name"], id, shoot.labels
                objects.append(manifest("v1", "Secret", *where, stringData=data))
        return objects

    def cluster(self, shoot: RehearsedShoot) -> Raw:
        """Return fields of the spec of the shoot's Cluster: cloudProfile, seed, shoot.

        They are merged into those that the drill sets, such as {"cloudProfile": {"spec": {…}}}. A
        landscape has them in its CloudProfile and Shoots, except for machine images, pools of
        workers, regions and versions, which `shoot_part` sets.
        """
        return {}

    @abstractmethod
    def inject_failure(self, scenario: str) -> None:
        """Cause the failure of the scenario. Raises KeyError for a name not in `scenarios`."""

    @abstractmethod
    def remaining_resources(self) -> Sequence[ExternalResource]:
        """Return all existing external resources with ids and tags, read as administrator.

        Tags contain the shoot's technical ID: a drill takes resources of the same type with the
        same tags for duplicates (invariant I4).
        """

    def repair_failure(self) -> None:  # noqa: B027 - optional
        """Undo the failure; existing resources stay. Safe without an earlier `inject_failure`.

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

        `image` is the name of the machine image, which is the type of OperatingSystemConfigs. The
        credentials are by default `secret_data`; CloudProfile and Shoot also have the fields of
        `cluster`.
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
    suffix = _suffix_of(actuator)
    return [f"{type}{suffix}" for type in types]


def name_of(actuator: Actuator[Any]) -> str:
    """Return the name of a rehearsed actuator: its kind, with the suffix of its extension type."""
    return f"{kind_of(actuator).name}{_suffix_of(actuator)}"


def _suffix_of(actuator: Actuator[Any]) -> str:
    while isinstance(actuator, WrappedActuator) and not isinstance(actuator, _Typed):
        actuator = actuator.inner
    return actuator.suffix if isinstance(actuator, _Typed) else ""


def _result(method: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
    """Return what an author's method returns. Raises ConfigurationError for errors of its code."""
    with authors_code(getattr(method, "__qualname__", ""), EnvtestError):
        return method(*args, **named)


def _items(method: Callable[P, Iterable[T]], *args: P.args, **named: P.kwargs) -> list[T]:
    """Return what an author's method returns or yields. Raises ConfigurationError."""
    with authors_code(getattr(method, "__qualname__", ""), EnvtestError):
        found = method(*args, **named)
        if isinstance(found, Mapping | str) or not isinstance(found, Iterable):
            raise TypeError(f"expected a list, got {shorten(repr(found), _MAX_SHOWN)}")
        return list(found)


def _actuators(part: Rehearsal) -> list[Actuator[Any]]:
    """Return the actuators of a rehearsal. Raises ConfigurationError for another object."""
    found = _items(part.actuators)
    name = f"{type(part).__name__}.actuators"
    with authors_code(name):
        for each in found:
            check_actuator(name, each)
    return found


def _check_identity(manifest: Raw, part: Rehearsal) -> None:
    match manifest:
        case {"apiVersion": str(), "kind": str(), "metadata": {"name": str()}}:
            return
    name = type(part).__name__
    raise ConfigurationError(
        f"{name}.manifests: an object without apiVersion, kind or metadata.name: "
        f"{shorten(repr(manifest), _MAX_SHOWN)}"
    )


class CombinedRehearsal:
    """Several rehearsals as one: each shoot has the kinds of all of them.

    A rehearsal with a kind of an earlier one gets an extension type of its own.
    """

    def __init__(self, parts: Sequence[Rehearsal]) -> None:
        for part in parts:
            check_overrides(type(part))
        self.parts = parts
        self.title = " and ".join(part.title for part in parts)
        self.region = parts[0].region
        self.scenarios: Mapping[str, str] = {
            name: " ".join(dict.fromkeys(part.scenarios[name] for part in parts))
            for name in parts[0].scenarios
            if all(name in part.scenarios for part in parts)
        }
        self.shoots_only = all(part.shoots_only for part in parts)
        self.with_shoot_api = any(part.with_shoot_api for part in parts)
        self.servers = ShootServers()
        self.never_migrates = all(part.never_migrates for part in parts)
        self.takes_over = any(part.takes_over for part in parts)
        for number, part in enumerate(parts):
            for earlier in parts[:number]:
                _result(part.join, earlier)

    @property
    def references(self) -> list[str]:
        """The class of each rehearsal as MODULE:CLASS, so that another process can create it."""
        return [f"{type(part).__module__}:{type(part).__qualname__}" for part in self.parts]

    @property
    def versions(self) -> str:
        """The distributions of the rehearsals and their versions, as far as they are installed."""
        found = {version_of_class(type(part)) for part in self.parts}
        return ", ".join(sorted(found - {""}))

    @property
    def is_shared(self) -> bool:
        """Whether other processes can use every outside world."""
        return not any(self._unshared())

    def start(self, directory: Path) -> None:
        """Start each one, with a directory of its own."""
        for number, part in enumerate(self.parts):
            own = directory / f"outside-{number}"
            own.mkdir()
            _result(part.start, own)

    def stop(self) -> None:
        """Stop each one in reverse order, also if one fails."""
        with ExitStack() as stack:
            stack.push(self.servers)
            for part in self.parts:
                stack.callback(_result, part.stop)

    def crds(self) -> Sequence[Raw]:
        """Return the CRDs of all rehearsals, each name once."""
        listed = [item for part in self.parts for item in _items(part.crds)]
        found = {item["metadata"]["name"]: item for item in listed}
        return list(found.values())

    def actuators(self) -> Sequence[Actuator[Any]]:
        """Return all actuators. Raises ConfigurationError if two serve one kind and type."""
        found = [actuator for _, actuator in self._rehearsed()]
        if twice := [name for name, count in Counter(map(name_of, found)).items() if count > 1]:
            raise ConfigurationError(
                f"{self.title}: two actuators for {twice[0]} of one type; separate the types "
                "with type_suffixes of the rehearsal, or rehearse one after the other"
            )
        return found

    def part_of(self, name: str) -> Rehearsal:
        """Return the rehearsal with the actuator of this name (`name_of`)."""
        return next(part for part, actuator in self._rehearsed() if name_of(actuator) == name)

    @cached_property
    def _suffixes(self) -> Sequence[str]:
        """The suffix of the types of each rehearsal: "" unless an earlier one has such a kind."""
        kinds = [{kind_of(actuator).name for actuator in _actuators(part)} for part in self.parts]
        return [
            f"-{number + 1}" if own & set().union(*kinds[:number]) else ""
            for number, own in enumerate(kinds)
        ]

    def _rehearsed(self) -> Iterator[tuple[Rehearsal, Actuator[Any]]]:
        """Yield each actuator with its rehearsal."""
        for part, suffix in zip(self.parts, self._suffixes, strict=True):
            for actuator in _actuators(part):
                own = suffix + part.type_suffixes.get(type(actuator), "")
                typed = kind_of(actuator).has_operation_annotation
                yield part, _Typed(actuator, own) if own and typed else actuator

    def webhooks(self) -> Sequence[Webhook]:
        """Return the webhooks of all rehearsals."""
        return [webhook for part in self.parts for webhook in _items(part.webhooks)]

    def manifests(self, shoot: RehearsedShoot) -> Sequence[Raw]:
        """Return the manifests of all rehearsals.

        Raises ConfigurationError for two extension objects of one kind and name.
        """
        found: list[Raw] = []
        for part, suffix in zip(self.parts, self._suffixes, strict=True):
            own = _items(part.manifests, attrs.evolve(shoot, type=shoot.type + suffix))
            names = {(obj["kind"], obj["metadata"]["name"]) for obj in found}
            for obj in own:
                _check_identity(obj, part)
                kind = obj["kind"]
                name = obj["metadata"]["name"]
                if suffix and "type" in obj.get("spec", {}) and (kind, name) in names:
                    raise ConfigurationError(
                        f"{self.title} both create {kind} {name}; rehearse them one after the other"
                    )
            found += own
        return found

    def cluster(self, shoot: RehearsedShoot) -> Raw:
        """Return the fields of the Cluster's spec of all rehearsals."""
        return reduce(merged, (_result(part.cluster, shoot) for part in self.parts), {})

    def other_controllers(self, seed: Client) -> Sequence[Callable[[], None]]:
        """Return the controllers of all rehearsals."""
        return [poll for part in self.parts for poll in _items(part.other_controllers, seed)]

    def shoot_parts(self, image: str) -> Sequence[ShootPart]:
        """Return the parts of all rehearsals, completed by their `cluster` and `secret_data`.

        Raises ConfigurationError for one without `shoot_part`.
        """
        shoot = RehearsedShoot(technical_id="shoot--dev--local", type=image, labels={})
        return [
            completed(
                _result(part.shoot_part, image), _result(part.cluster, shoot), part.secret_data
            )
            for part in self.parts
        ]

    def spoil(self, manifest: Raw) -> None:
        """Change an object so that no extension can accept it."""
        spec = manifest["spec"]
        for holder in spec.get("pools") or [spec]:
            holder["providerConfig"] = {"kind": "Nonsense", "nonsense": True}
        for part in self.parts:
            _result(part.spoil, manifest)

    def inject_failure(self, scenario: str) -> None:
        """Break every outside world. Raises KeyError for a name not in `scenarios`."""
        for part in self.parts:
            _result(part.inject_failure, scenario)

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
                _result(part.inject_failure, scenario)

    def remaining_resources(self) -> Sequence[ExternalResource]:
        """Return the external resources of all rehearsals; those of a common world once."""
        found = [resource for part in self.parts for resource in _items(part.remaining_resources)]
        return list({(item.type, item.id or id(item)): item for item in found}.values())

    def repair_failure(self) -> None:
        """Undo the failure in every outside world that supports it."""
        for part in self.parts:
            _result(part.repair_failure)

    def share(self) -> list[Mapping[str, str]]:
        """Return the result of each `share`. Raises ConfigurationError for one without it."""
        return [_result(part.share) for part in self.parts]

    def require_shared(self) -> None:
        """Raise ConfigurationError for an outside world that other processes cannot use."""
        for part in self._unshared():
            part.share()

    def _unshared(self) -> Iterator[Rehearsal]:
        return (part for part in self.parts if type(part).share is Rehearsal.share)

    def attach(self, shared: Sequence[Mapping[str, str]]) -> None:
        """Use the outside worlds that another process started."""
        for part, what in zip(self.parts, shared, strict=True):
            _result(part.attach, what)

    def observe(self, around: Around) -> None:
        """Observe the requests to every outside world."""
        for part in self.parts:
            _result(part.observe, around)
