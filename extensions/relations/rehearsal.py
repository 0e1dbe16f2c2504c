"""RelationsRehearsal: a register to break, for `actuator drill`, with all three kinds per shoot.

The Team of a shoot is cluster-scoped, and the copy of its Mirror is in a second namespace.
"""

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs

from actuator import Actuator, ExternalResource, Raw
from extensions.relations.external import Entries
from extensions.relations.kinds import Entry, Mirror, Team
from extensions.relations.owned import Teams
from extensions.relations.register import REGION, Register
from extensions.relations.watched import Mirrors
from generic.library import manifest
from generic.testing import Around, Rehearsal, RehearsedShoot, extension_object

_DATA = {"motto": "Rehearsed"}


class RelationsRehearsal(Rehearsal):
    """The outside world of the relations sample."""

    title = "Relations (owned, watched, external)"
    region = REGION
    scenarios: Mapping[str, str] = {
        "everything-fails": "The register is taken away: every request to it fails at once.",
        "deletion-denied": "The register denies deletions: no entry can be removed.",
    }

    never_migrates = True

    def __init__(self) -> None:
        self._open: Callable[[Path], Register] = Register

    def start(self, directory: Path) -> None:
        """Create an empty register in `directory`."""
        self._path = directory / "register.sqlite"
        Register(self._path).open()

    def share(self) -> Mapping[str, str]:
        """Return the register."""
        return {"path": str(self._path)}

    def attach(self, shared: Mapping[str, str]) -> None:
        """Use the register that another process created."""
        self._path = Path(shared["path"])

    def observe(self, around: Around) -> None:
        """Enter `around` for each request to the register."""
        self._open = lambda path: _Observed(path, around)

    def actuators(self) -> Sequence[Actuator[Any]]:
        """One actuator for each relation."""
        return [Entries(self._open(self._path)), Teams(), Mirrors()]

    def manifests(self, shoot: RehearsedShoot) -> Sequence[Raw]:
        """One object of each kind, the mirrored ConfigMap, and the namespace of the copy."""
        namespace = shoot.technical_id
        copies = f"{namespace}-copies"
        team = {"namespace": namespace, "shared": "all-teams"}
        return [
            manifest("v1", "Namespace", copies, labels=shoot.labels),
            manifest("v1", "ConfigMap", "x", namespace, shoot.labels, data=_DATA),
            extension_object(Entry, shoot, "x", {"text": "Rehearsed"}),
            extension_object(Team, shoot, namespace, team),
            extension_object(Mirror, shoot, "x", {"to": copies}),
        ]

    def inject_failure(self, scenario: str) -> None:
        """Start the scenario. Raises KeyError for a name not in `scenarios`."""
        breaks = {
            "everything-fails": lambda: self._path.rename(self._away),
            "deletion-denied": Register(self._path).deny_deletions,
        }
        breaks[scenario]()

    def repair_failure(self) -> None:
        """Undo all scenarios; no entry was lost."""
        if self._away.exists():
            self._away.rename(self._path)
        Register(self._path).allow_deletions()

    def remaining_resources(self) -> Sequence[ExternalResource]:
        """Return all entries, also while the register is moved away."""
        return Register(self._away if self._away.exists() else self._path).entries()

    @property
    def _away(self) -> Path:
        return self._path.with_name("away.sqlite")


@attrs.frozen
class _Observed(Register):
    """Sends each request in the context of `around`."""

    around: Around

    @contextmanager
    def asked(self, request: str) -> Iterator[sqlite3.Connection]:
        with self.around(f"outside: {request}"), Register.asked(self, request) as database:
            yield database
