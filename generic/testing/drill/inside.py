"""ShootRehearsal: a rehearsal of an extension that has nothing outside but the shoots.

What breaks is the shoots: their API servers, or deletions in them. What is left outside is what
is in them, as the doubles of `generic.testing.drill.shoots` note it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

from actuator.interface import Actuator, Client, ExternalResource
from actuator.meta import Object, Raw
from generic.testing.drill.shoots import ShootManager, Shoots
from generic.testing.rehearsal import RehearsedShoot

__all__ = ["ShootRehearsal", "extension_object"]


class ShootRehearsal(ABC):
    """Derive, and say what the extension's title, CRDs, actuators and manifests are."""

    title: str
    region: str = "eu-1"
    scenarios: Mapping[str, str] = {
        "everything-fails": "No API server of a shoot answers any more.",
        "deletion-denied": "A webhook in each shoot denies deletions.",
    }
    shoots_only: ClassVar[Literal[True]] = True

    def __init__(self) -> None:
        self._shoots = Shoots()
        self._looks: list[Callable[[], None]] = []

    @abstractmethod
    def crds(self) -> Sequence[Raw]:
        """See Rehearsal; ManagedResource has to be one of them."""

    @abstractmethod
    def actuators(self) -> Sequence[Actuator[Any]]:
        """See Rehearsal."""

    @abstractmethod
    def manifests(self, shoot: RehearsedShoot) -> Sequence[Raw]:
        """See Rehearsal."""

    def start(self, directory: Path) -> None:  # noqa: B027 - there is nothing to start
        """Nothing runs but in the seeds."""

    def stop(self) -> None:  # noqa: B027
        """Safe to call twice, and without start."""

    def share(self) -> Mapping[str, str]:
        """Managers reach the shoots through their seed alone."""
        return {}

    def attach(self, shared: Mapping[str, str]) -> None:  # noqa: B027
        """Needs nothing."""

    def neighbours(self, seed: Client) -> Sequence[Callable[[], None]]:
        """The resource managers of the seed's shoots."""
        look = ShootManager(seed, self._shoots).look
        self._looks.append(look)
        return [look]

    def break_outside(self, scenario: str) -> None:
        """Brings the scenario about. Raises KeyError for a name not in `scenarios`."""
        breaks = {
            "everything-fails": self._shoots.take_away,
            "deletion-denied": self._shoots.protect,
        }
        breaks[scenario]()

    def mend_outside(self) -> None:
        """Everything works again; what exists stays."""
        self._shoots.mend()

    def left_outside(self) -> Sequence[ExternalResource]:
        """What is in the shoots, once what was asked for until now has been done there.

        Raises ApiError where a seed cannot be read.
        """
        for look in self._looks:
            look()
        return self._shoots.contents()


def extension_object(cls: type[Object], shoot: RehearsedShoot, name: str, spec: Raw) -> Raw:
    """The manifest of an extension object for a rehearsed shoot."""
    return {
        "apiVersion": cls.KIND.api_version,
        "kind": cls.KIND.name,
        "metadata": {"name": name, "namespace": shoot.technical_id, "labels": shoot.labels},
        "spec": {"type": shoot.type, **spec},
    }
