"""The ground of an exploration: one embedded seed, one outside, shoots by the dozen.

Each trial has a shoot and an extension type of its own, so that a manager serves exactly those
that it is told to. Nothing is cleared up in the seed; the outside is a new one for each
operation, since requests to it get slow when much is there.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs

from actuator.errors import ActuatorError
from actuator.interface import Actuator, ExternalResource
from actuator.meta import Kind
from generic.manager.options import Options
from generic.testing.drill.names import Names
from generic.testing.drill.seeds import embedded_seed
from generic.testing.drill.world import kinds_of, manager_for, outside
from generic.testing.garden import Garden
from generic.testing.rehearsal import CombinedRehearsal

__all__ = ["Ground", "open_ground"]

_SYNC_SECONDS = 60.0


@attrs.define(kw_only=True)
class Ground:
    """Where everything is tried. `patience`: seconds that an operation may take, killed or not."""

    rehearsal: CombinedRehearsal
    garden: Garden
    actuators: Sequence[Actuator[Any]]
    kubeconfig: Path
    folder: Path
    patience: float
    _numbers: Iterator[int] = attrs.field(factory=itertools.count)
    _base: Names = attrs.field(factory=Names)

    @property
    def kinds(self) -> list[Kind]:
        """What can be tried."""
        return kinds_of(self.actuators)

    def names(self) -> Names:
        """Names that nothing else has here."""
        return Names(f"{self._base.id}-{next(self._numbers)}")

    def renew(self) -> None:
        """An empty outside, in place of the one before."""
        self.rehearsal.stop()
        directory = self.folder / f"outside-{next(self._numbers)}"
        directory.mkdir()
        self.rehearsal.start(directory)
        self.actuators = self.rehearsal.actuators()

    @contextmanager
    def serving(self, types: Sequence[str]) -> Iterator[None]:
        """In here a manager works for these extension types that nobody kills.

        Raises ActuatorError where it does not start.
        """
        manager = manager_for(self.actuators, types, Options(kubeconfig=self.kubeconfig))
        manager.start()
        try:
            if not manager.wait_synced(_SYNC_SECONDS):
                raise ActuatorError(f"a manager is not synced within {_SYNC_SECONDS:.0f} s")
            yield
        finally:
            manager.stop()

    def outside(self, shoots: Sequence[str]) -> Mapping[str, list[ExternalResource]]:
        """What exists outside now, by the technical ID of the shoot that its tags name."""
        found: dict[str, list[ExternalResource]] = {shoot: [] for shoot in shoots}
        for thing in self.rehearsal.left_outside():
            texts = (text for pair in thing.tags.items() for text in pair)
            for word in {word for text in texts for word in text.split("/")}:
                if word in found:
                    found[word].append(thing)
        return found


@contextmanager
def open_ground(
    rehearsal: CombinedRehearsal, folder: Path, patience: float, say: Callable[[str], None]
) -> Iterator[Ground]:
    """Seed and outside, running; managers under the generated Role, never as administrator.

    Raises ActuatorError or ApiError.
    """
    names = Names()
    with outside(rehearsal, say):
        actuators = rehearsal.actuators()
        say("Starting the embedded cluster: etcd, kube-apiserver, kube-controller-manager")
        with embedded_seed(rehearsal, say) as seed:
            user = seed.admit(manager_for(actuators, [names.type], Options()), names.type)
            yield Ground(
                rehearsal=rehearsal,
                garden=Garden(seed.admin),
                actuators=actuators,
                kubeconfig=user,
                folder=folder,
                patience=patience,
            )
