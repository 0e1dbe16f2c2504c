"""Which Orphans are an extension's own: those of objects that one of its actuators served."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from actuator.interface import Actuator
from actuator.meta import Kind
from generic.reconciler.orphans.kind import OrphanedFrom


class Serving(Protocol):
    """An actuator as it was added to a manager."""

    @property
    def kind(self) -> Kind:
        """The kind of its objects."""

    @property
    def types(self) -> Sequence[str]:
        """Their types; all where it names none."""

    @property
    def actuator(self) -> Actuator[Any]:
        """What serves them."""


def serving(added: Iterable[Serving], let_go: OrphanedFrom) -> Serving | None:
    """The first that served the object, whatever the version of its API then; or None."""
    for one in added:
        group = let_go.api_version.rpartition("/")[0]
        same_kind = (one.kind.name, one.kind.group) == (let_go.kind, group)
        if same_kind and (not one.types or let_go.type in one.types):
            return one
    return None
