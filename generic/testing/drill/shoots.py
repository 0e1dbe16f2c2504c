"""Rehearsals whose outside world is only the shoots, and the objects of rehearsed shoots."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import yaml

from actuator.interface import Client, ExternalResource
from actuator.meta import Object, Raw
from generic.kube.crds import crd
from generic.library.managedresources import ManagedResource
from generic.library.manifests import manifest_of
from generic.testing.rehearsal import Rehearsal, RehearsedShoot
from generic.testing.shoots import AWAY, DENIED, ShootManager, Shoots

_EXAMPLE = "shoot--foobar--crazy-botany"


class ShootRehearsal(Rehearsal):
    """A rehearsal of an extension whose outside world is only the shoots.

    Subclasses define the extension's title and actuators. The scenarios break the shoots: their
    API servers, or deletions in them. The external resources are the objects in the shoots.
    """

    scenarios = {
        AWAY: "No API server of a shoot answers any more.",
        DENIED: "A webhook in each shoot denies deletions.",
    }
    shoots_only = True

    def __init__(self) -> None:
        self.shoots = Shoots()
        self.polls: list[Callable[[], None]] = []

    def join(self, earlier: Rehearsal) -> None:
        """Share the shoots, whose resource managers apply the objects of all extensions."""
        if isinstance(earlier, ShootRehearsal):
            self.shoots = earlier.shoots
            self.polls = earlier.polls

    def start(self, directory: Path) -> None:
        """Do nothing: all processes run in the seeds."""

    def crds(self) -> Sequence[Raw]:
        """Return those of Gardener's ManagedResource, and of `other_kinds`."""
        return [crd(ManagedResource), *super().crds()]

    def share(self) -> Mapping[str, str]:
        """Return nothing: managers reach the shoots only through their seed."""
        return {}

    def other_controllers(self, seed: Client) -> Sequence[Callable[[], None]]:
        """Return the resource managers of the seed's shoots."""
        self.polls.append(ShootManager(seed, self.shoots).poll)
        return self.polls[-1:]

    def inject_failure(self, scenario: str) -> None:
        """Cause the failure of the scenario. Raises KeyError for a name not in `scenarios`."""
        if scenario not in self.scenarios:
            raise KeyError(scenario)
        self.shoots.fail(scenario)

    def repair_failure(self) -> None:
        """Undo the failure; existing objects are kept."""
        self.shoots.fail("")

    def remaining_resources(self) -> Sequence[ExternalResource]:
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
    for obj in manifests:
        obj["metadata"]["labels"] = dict(shoot.labels)
        if "type" in obj.get("spec", ()):
            obj["spec"]["type"] = shoot.type
    return manifests
