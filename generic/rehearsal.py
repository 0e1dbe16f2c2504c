"""What an extension offers so that a drill can rehearse it: its outside world, on demand.

An extension puts a class of this shape into its own folder; `actuator drill MODULE:REHEARSAL`
loads it by name, so nothing in here, nor in the drill, knows a cloud.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import attrs

from actuator.interface import Actuator, ExternalResource
from actuator.meta import Raw

__all__ = ["Rehearsal", "RehearsedShoot"]


@attrs.frozen(kw_only=True)
class RehearsedShoot:
    """One shoot of a drill, as far as an extension has to know it.

    `technical_id` is also the name of its namespace in the seed and of its Cluster. `labels`
    belong on every object of the drill; `type` is the extension type to ask for.
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
        """What gardenlet would create for the shoot, in order: Secrets, then extension objects."""

    def break_outside(self, scenario: str) -> None:
        """Brings the scenario about. Raises KeyError for a name not in `scenarios`."""

    def left_outside(self) -> Sequence[ExternalResource]:
        """All that exists outside now, ids and tags included, read as administrator."""
