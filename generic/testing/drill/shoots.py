"""Simulated shoots: their contents, their failures, and their resource managers.

`ShootRehearsal` is for extensions whose outside world is only the shoots. `ShootManager` simulates
the resource managers of all shoots of a seed; the objects they would apply are in `Shoots`, which
several seeds share, since a migrated shoot keeps its objects. Not here: an API server; the content
of objects is ignored.
"""

import threading
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import yaml

from actuator.cluster import Cluster
from actuator.codec import decode
from actuator.errors import Forbidden, Unavailable
from actuator.interface import Actuator, Client, ExternalResource, object_class
from actuator.meta import Object, Raw
from actuator.schema import structural
from generic.kube.clusters import CLUSTERS
from generic.library.managedresources import ManagedResource, is_healthy
from generic.library.manifests import manifest, manifest_of
from generic.testing.rehearsal import Rehearsal, RehearsedShoot
from generic.testing.resourcemanager import ResourceManager

_AWAY, _DENIED = "everything-fails", "deletion-denied"
_EXAMPLE = "shoot--foobar--crazy-botany"
_EMPTY = {"array": [], "boolean": False, "integer": 0, "number": 0, "object": {}}


@attrs.frozen
class Thing:
    """An object in a shoot; `name` is NAMESPACE/NAME for a namespaced object."""

    kind: str
    name: str


class Shoots:
    """All shoots, by the name of their namespace in a seed. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._things: defaultdict[str, set[Thing]] = defaultdict(set)
        self._destroyed: set[str] = set()
        self._scenario = ""

    def fail(self, scenario: str) -> None:
        """Let each shoot fail as the scenario of `ShootRehearsal` says; "": not any more."""
        self._scenario = scenario

    def destroy(self, shoot: str) -> None:
        """Remove the shoot and all its objects."""
        with self._lock:
            self._destroyed.add(shoot)
            self._things.pop(shoot, None)

    def create(self, shoot: str) -> None:
        """Let an empty shoot answer that has the name of a removed one."""
        with self._lock:
            self._destroyed.discard(shoot)

    def put(self, shoot: str, thing: Thing) -> None:
        """Add an object. Raises Unavailable."""
        with self._lock:
            self._check_answers(shoot)
            self._things[shoot].add(thing)

    def take(self, shoot: str, thing: Thing) -> None:
        """Remove an object if it exists. Raises Unavailable and Forbidden."""
        with self._lock:
            self._check_answers(shoot)
            if self._scenario == _DENIED and thing in self._things[shoot]:
                raise Forbidden(403, f"a webhook in the shoot denies to delete {thing.name}")
            self._things[shoot].discard(thing)

    def contents(self) -> list[ExternalResource]:
        """Return the objects of all shoots."""
        with self._lock:
            return [
                ExternalResource(
                    type=thing.kind,
                    id=f"{shoot}/{thing.name}",
                    tags={"shoot": shoot, "object": thing.name},
                )
                for shoot, things in self._things.items()
                for thing in sorted(things, key=attrs.astuple)
            ]

    def _check_answers(self, shoot: str) -> None:
        if self._scenario == _AWAY or shoot in self._destroyed:
            raise Unavailable(0, "the shoot's API server does not answer")


class ShootManager(ResourceManager):
    """The resource managers of all shoots of one seed; each `poll` is one round of work.

    A shoot with a confirmed force deletion counts as removed: gardenlet removes it with its
    contents, and it is no longer reachable.
    """

    def __init__(self, client: Client, shoots: Shoots) -> None:
        super().__init__(client, class_="")
        self._shoots = shoots
        self._forced: set[str] = set()
        self._one_round = threading.Lock()

    def poll(self) -> None:
        """Do one round of work on Clusters, then on ManagedResources. Raises ApiError."""
        with self._one_round:
            for raw in self._client.list(CLUSTERS):
                name = raw["metadata"]["name"]
                if decode(Cluster, raw).needs_force_deletion:
                    self._shoots.destroy(name)
                    self._forced.add(name)
                elif name in self._forced:  # a confirmation is final: it is another shoot
                    self._shoots.create(name)
                    self._forced.remove(name)
            super().poll()

    def _serve(self, mr: Raw) -> None:
        """Skip healthy ManagedResources: no other client changes objects in the shoots."""
        managed = decode(ManagedResource, mr)
        if managed.metadata.deletion_timestamp is not None or not is_healthy(managed):
            super()._serve(mr)

    def _put(self, mr: Raw, obj: Raw) -> None:
        meta = obj["metadata"]
        self._shoots.put(_shoot(mr), _thing(obj["kind"], meta["name"], meta.get("namespace")))

    def _take(self, mr: Raw, ref: Raw) -> bool:
        self._shoots.take(_shoot(mr), _thing(ref["kind"], ref["name"], ref.get("namespace")))
        return True


class ShootRehearsal(Rehearsal):
    """A rehearsal of an extension whose outside world is only the shoots.

    Subclasses define the extension's title, CRDs (which must include ManagedResource), actuators
    and manifests. The scenarios break the shoots: their API servers, or deletions in them. The
    external resources are the objects in the shoots.
    """

    region = "eu-1"
    scenarios = {
        _AWAY: "No API server of a shoot answers any more.",
        _DENIED: "A webhook in each shoot denies deletions.",
    }
    shoots_only = True

    def __init__(self) -> None:
        self.shoots = Shoots()
        self.polls: list[Callable[[], None]] = []

    def join(self, earlier: Rehearsal) -> None:
        """Share the shoots, whose resource managers apply the objects of all extensions."""
        if isinstance(earlier, ShootRehearsal):
            self.shoots, self.polls = earlier.shoots, earlier.polls

    def start(self, directory: Path) -> None:
        """Do nothing: all processes run in the seeds."""

    def share(self) -> Mapping[str, str]:
        """Return nothing: managers reach the shoots only through their seed."""
        return {}

    def other_controllers(self, seed: Client) -> Sequence[Callable[[], None]]:
        """Return the resource managers of the seed's shoots."""
        self.polls.append(ShootManager(seed, self.shoots).poll)
        return self.polls[-1:]

    def break_outside(self, scenario: str) -> None:
        """Cause the failure of the scenario. Raises KeyError for a name not in `scenarios`."""
        if scenario not in self.scenarios:
            raise KeyError(scenario)
        self.shoots.fail(scenario)

    def mend_outside(self) -> None:
        """Undo the failure; existing objects are kept."""
        self.shoots.fail("")

    def left_outside(self) -> Sequence[ExternalResource]:
        """Do one round of work for each seed, then return the objects in the shoots.

        Raises ApiError if a seed cannot be read.
        """
        for poll in self.polls:
            poll()
        return self.shoots.contents()


def extension_object(cls: type[Object], shoot: RehearsedShoot, name: str, spec: Raw) -> Raw:
    """Return the manifest of an extension object for a rehearsed shoot."""
    wanted = {"type": shoot.type, **spec}
    return manifest_of(cls, name, shoot.technical_id, shoot.labels, spec=wanted)


def example_objects(path: Path, shoot: RehearsedShoot) -> list[Raw]:
    """Return the objects of a YAML file for a rehearsed shoot, with its name, labels and type.

    The shoot is called `shoot--foobar--crazy-botany` in the file.
    """
    text = path.read_text(encoding="utf-8").replace(_EXAMPLE, shoot.technical_id)
    manifests: list[Raw] = list(yaml.safe_load_all(text))
    for one in manifests:
        one["metadata"]["labels"] = dict(shoot.labels)
        if "type" in one.get("spec", ()):
            one["spec"]["type"] = shoot.type
    return manifests


def minimal_objects(
    shoot: RehearsedShoot, region: str, actuators: Sequence[Actuator[Any]]
) -> list[Raw]:
    """Return the Secret `cloudprovider`, and an object for each actuator with required fields."""
    id, labels = shoot.technical_id, shoot.labels
    reference = {"name": "cloudprovider", "namespace": id}
    known = {"type": shoot.type, "region": region, "secretRef": reference}
    objects = [manifest("v1", "Secret", "cloudprovider", id, labels)]
    for cls in map(object_class, actuators):
        objects += [manifest_of(cls, id, id, labels, spec=minimal_spec(cls, known))]
    return objects


def minimal_spec(cls: type[Object], known: Mapping[str, Any]) -> Any:
    """Return a spec with the known fields and the required ones, which are empty."""
    return _minimal(structural(cls)["properties"]["spec"], known)


def _minimal(schema: Raw, known: Mapping[str, Any]) -> Any:
    if fields := schema.get("properties"):
        names = sorted({*schema.get("required", ())} | known.keys() & fields.keys())
        return {name: known.get(name) or _minimal(fields[name], {}) for name in names}
    text = "AA==" if schema.get("format") == "byte" else ""
    return _EMPTY.get(schema.get("type", ""), text)


def _shoot(mr: Raw) -> str:
    return str(mr["metadata"]["namespace"])


def _thing(kind: str, name: str, namespace: str | None) -> Thing:
    return Thing(kind, f"{namespace}/{name}" if namespace else name)
