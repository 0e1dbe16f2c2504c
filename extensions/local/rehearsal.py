"""LocalRehearsal: a folder to break, for `actuator drill`, with a shoot of all five kinds.

No controller of Mounts runs, so each shoot's Mount keeps the finalizer that LocalExtension sets,
until a force deletion.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import attrs

from actuator import Actuator, ExternalResource, Raw
from extensions.local.containerruntime import LocalContainerRuntime
from extensions.local.exposure import LocalExposure
from extensions.local.holding import REGION
from extensions.local.mounts import Mount
from extensions.local.network import LocalNetwork
from extensions.local.operatingsystem import LocalOperatingSystem
from extensions.local.outside import POLICY, VARIABLE, Outside, Request
from extensions.local.share import LocalExtension
from generic.library.managedresources import ManagedResource
from generic.testing import Around, Rehearsal, RehearsedShoot, ShootPart, example_objects

_EXAMPLE = Path(__file__).parent / "example" / "shoot.yaml"


class LocalRehearsal(Rehearsal):
    """The outside world of the local sample."""

    title = "Local (a folder instead of a cloud)"
    region = REGION
    scenarios: Mapping[str, str] = {
        "everything-fails": (
            "The folder is taken away: every request to the outside fails at once."
        ),
        "deletion-denied": "The folder's policy denies deletions: nothing can be given back.",
    }

    other_kinds = (Mount, ManagedResource)

    def __init__(self) -> None:
        self._open: Callable[[Path], Outside] = Outside

    def start(self, directory: Path) -> None:
        """Create an empty outside in `directory`."""
        self._outside = directory / "outside"
        self._outside.mkdir()

    def share(self) -> Mapping[str, str]:
        """Return the folder."""
        return {"outside": str(self._outside)}

    def attach(self, shared: Mapping[str, str]) -> None:
        """Use the folder that another process created."""
        self._outside = Path(shared["outside"])

    def observe(self, around: Around) -> None:
        """Enter `around` for each request to the folder."""
        self._open = partial(_ObservedOutside, around=around)

    def actuators(self) -> Sequence[Actuator[Any]]:
        """The extension's actuators, in this folder; no controller of Mounts."""
        outside = self._open(self._outside)
        return [
            LocalOperatingSystem(),
            LocalNetwork(outside),
            LocalContainerRuntime(),
            LocalExposure(),
            LocalExtension(outside),
        ]

    def manifests(self, shoot: RehearsedShoot) -> Sequence[Raw]:
        """One object of each kind, in the order in which gardenlet creates them."""
        return example_objects(_EXAMPLE, shoot)

    def shoot_part(self, image: str) -> ShootPart:
        """The extension with this folder; unlike in a drill, its controller of Mounts runs."""
        environ = {VARIABLE: str(self._outside)}
        return ShootPart(extension="extensions.local:extension", environ=environ)

    def inject_failure(self, scenario: str) -> None:
        """Start the scenario. Raises KeyError for a name not in `scenarios`."""
        breaks: dict[str, Callable[[], object]] = {
            "everything-fails": lambda: self._outside.rename(self._away),
            "deletion-denied": lambda: (self._outside / POLICY).write_text('{"deny": ["delete"]}'),
        }
        breaks[scenario]()

    def repair_failure(self) -> None:
        """Undo all scenarios; no resource was lost."""
        if self._away.exists():
            self._away.rename(self._outside)
        (self._outside / POLICY).unlink(missing_ok=True)

    def remaining_resources(self) -> Sequence[ExternalResource]:
        """Return all resources, also while the folder is moved away."""
        there = self._away if self._away.exists() else self._outside
        return [
            ExternalResource(type=thing.type, id=thing.id, tags=thing.tags, region=REGION)
            for thing in Outside(there).find({})
        ]

    @property
    def _away(self) -> Path:
        return self._outside.with_name("away")


@attrs.frozen
class _ObservedOutside(Outside):
    """Sends each request in the context of `around`."""

    around: Around

    @contextmanager
    def asked(self, request: Request, what: str) -> Iterator[None]:
        with self.around(f"outside: {request}"), Outside.asked(self, request, what):
            yield
