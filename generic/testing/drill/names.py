"""The name of a drill, and all names, labels and selectors that follow from it. Pure."""

from __future__ import annotations

import secrets
from collections.abc import Iterable

import attrs

from generic.controller.predicates import Predicate
from generic.kube.headers import Event, Header
from generic.testing.garden import SHOOT, Shoot
from generic.testing.rehearsal import RehearsedShoot

LABEL = "drill.actuator.extensions.gardener.cloud/id"


@attrs.frozen
class Names:
    """Everything of one drill is called after its id, so that none touches another's."""

    id: str = attrs.field(factory=lambda: secrets.token_hex(3))

    @property
    def type(self) -> str:
        """The extension type that only this drill uses."""
        return f"drill-{self.id}"

    @property
    def selector(self) -> str:
        """Finds everything of this drill."""
        return f"{LABEL}={self.id}"

    def shoot(self, name: str, region: str) -> Shoot:
        """A shoot of this drill; its labels are on everything that belongs to it."""
        technical_id = f"shoot--{self.type}--{name}"
        return Shoot(
            technical_id=technical_id,
            name=name,
            project=self.type,
            region=region,
            labels={LABEL: self.id, SHOOT: technical_id},
        )

    def rehearsed(self, shoot: Shoot) -> RehearsedShoot:
        """The same shoot, as an extension has to know it."""
        return RehearsedShoot(technical_id=shoot.technical_id, type=self.type, labels=shoot.labels)


def of_drills(types: Iterable[str]) -> Predicate:
    """Passes objects of the drills with these extension types, whose label says so.

    For kinds that have no spec.type.
    """
    wanted = frozenset(types)

    def passes(event: Event[Header]) -> bool:
        header = event.new or event.old
        return header is not None and Names(header.labels.get(LABEL, "")).type in wanted

    return passes
