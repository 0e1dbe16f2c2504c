"""Selects the Orphans of an extension: those of objects that one of its actuators served."""

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from actuator.interface import Actuator
from actuator.meta import Kind
from generic.reconciler.orphans.kind import OrphanedFrom


class Serving(Protocol):
    """A registered actuator."""

    @property
    def kind(self) -> Kind:
        """The kind of its objects."""

    @property
    def types(self) -> Sequence[str]:
        """Their types; empty for all."""

    @property
    def actuator(self) -> Actuator[Any]:
        """The actuator itself."""


def serving(added: Iterable[Serving], let_go: OrphanedFrom) -> Serving | None:
    """Return the first actuator that served the object, in any API version, or None."""
    for one in added:
        group = let_go.api_version.rpartition("/")[0]
        same_kind = (one.kind.name, one.kind.group) == (let_go.kind, group)
        if same_kind and (not one.types or let_go.type in one.types):
            return one
    return None
