"""The id of a drill, and the names, labels and selectors derived from it. Pure."""

import secrets
from collections.abc import Callable, Iterable

import attrs

from actuator.meta import Raw
from generic.controller.predicates import Predicate
from generic.kube.headers import Event, Header
from generic.testing.garden import SHOOT, SeedShoot
from generic.testing.rehearsal import RehearsedShoot

DRILL_LABEL = "drill.actuator.extensions.gardener.cloud/id"


@attrs.frozen
class Names:
    """Names of one drill, derived from its id, so that drills do not affect each other."""

    id: str = attrs.field(factory=lambda: secrets.token_hex(3))

    @property
    def type(self) -> str:
        """The extension type that only this drill uses."""
        return f"drill-{self.id}"

    @property
    def selector(self) -> str:
        """The label selector of this drill's objects."""
        return f"{DRILL_LABEL}={self.id}"

    def owns(self, obj: Raw) -> bool:
        """Return whether the object is of this drill, or in the namespace of one of its shoots."""
        meta = obj["metadata"]
        mine = (meta.get("labels") or {}).get(DRILL_LABEL) == self.id
        return mine or str(meta.get("namespace", "")).startswith(f"shoot--{self.type}--")

    def shoot(self, name: str, region: str) -> SeedShoot:
        """Return a shoot of this drill; all its objects carry its labels."""
        technical_id = f"shoot--{self.type}--{name}"
        return SeedShoot(
            technical_id=technical_id,
            name=name,
            project=self.type,
            region=region,
            labels={DRILL_LABEL: self.id, SHOOT: technical_id},
        )

    def shoots(self, count: int, region: str) -> list[SeedShoot]:
        """Return the shoots s1, s2 and so on."""
        return [self.shoot(f"s{number + 1}", region) for number in range(count)]

    def documented(self, shoot: SeedShoot, cluster: Callable[[RehearsedShoot], Raw]) -> SeedShoot:
        """Return the shoot with the fields of its Cluster that `Rehearsal.cluster` returns."""
        return attrs.evolve(shoot, documents=cluster(self.rehearsed(shoot)))

    def rehearsed(self, shoot: SeedShoot) -> RehearsedShoot:
        """Return the properties of the shoot that an extension needs."""
        return RehearsedShoot(technical_id=shoot.technical_id, type=self.type, labels=shoot.labels)


def of_drills(types: Iterable[str]) -> Predicate:
    """Return a predicate for objects labelled with the id of a drill of these extension types.

    For kinds without spec.type.
    """
    wanted = frozenset(types)

    def passes(event: Event[Header]) -> bool:
        header = event.new or event.old
        return header is not None and Names(header.labels.get(DRILL_LABEL, "")).type in wanted

    return passes
