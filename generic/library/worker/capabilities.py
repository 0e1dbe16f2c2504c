"""Capabilities of machine types and of machine images, and the choice among images by them.

A capability has a name and values, for example `architecture: [amd64]`. A CloudProfile registers
all of them in `spec.machineCapabilities`, the preferred ones first. One that registers none has the
older fields `architecture` only (Gardener documentation, "CloudProfile Capabilities"; extension
library, `FindBestImageFlavor`). The data of images is in `generic.library.worker.images`.
"""

from collections.abc import Iterable, Mapping, Sequence

import attrs

from actuator.cluster import Cluster
from actuator.codec import decode_at
from actuator.errors import ConfigurationError
from actuator.meta import KeepsUnknownFields, value_at
from actuator.v1alpha1 import Worker, WorkerPool
from generic.library.worker.group import AMD64
from generic.library.worker.poolhash import pool_field

ARCHITECTURE = "architecture"
Capabilities = Mapping[str, Sequence[str]]


@attrs.frozen(kw_only=True)
class _Definition(KeepsUnknownFields):
    name: str
    values: list[str] = attrs.field(factory=list)


@attrs.frozen(kw_only=True)
class _MachineType(KeepsUnknownFields):
    name: str
    capabilities: dict[str, list[str]] = attrs.field(factory=dict)


@attrs.frozen
class CapabilityRegistry:
    """The capabilities that a CloudProfile registers, with all their values; both by preference."""

    registered: Mapping[str, Sequence[str]]

    @property
    def architecture(self) -> str:
        """The architecture of an image, or of a pool, without any: the only one, else amd64."""
        architectures = self.registered.get(ARCHITECTURE, ())
        return architectures[0] if len(architectures) == 1 else AMD64

    def are_compatible(self, one: Capabilities, other: Capabilities) -> bool:
        """Whether both have a value of each capability; an omitted one has all values."""
        names = {ARCHITECTURE: (), **self.registered}
        return all(
            set(one.get(name, values)) & set(other.get(name, values))
            for name, values in names.items()
        )

    def preferred(self, candidates: Iterable[Capabilities]) -> list[int]:
        """Return the indexes of the best candidates; one, unless some have equal capabilities."""
        best = list(enumerate(candidates))
        for name, values in self.registered.items():
            for value in values:
                having = [(i, item) for i, item in best if value in item.get(name, values)]
                best = having or best
        return [index for index, _ in best]

    def of_machine(self, worker: Worker, pool: WorkerPool, cluster: Cluster) -> Capabilities:
        """Return the capabilities of a pool's machines. Raises ConfigurationError.

        The type has to be known if more than the architecture counts, which the pool names too.
        """
        if not self.registered:
            return {ARCHITECTURE: [pool.architecture or AMD64]}
        where = f"Cluster {cluster.metadata.name}: spec.cloudProfile.spec.machineTypes"
        types = value_at(cluster.cloud_profile, "spec", "machineTypes") or ()
        machine_types = (decode_at(_MachineType, type_, where) for type_ in types)
        found = next((known for known in machine_types if known.name == pool.machine_type), None)
        if found is None and self.registered.keys() - {ARCHITECTURE}:
            raise ConfigurationError(
                f"{pool_field(worker, pool, 'machineType')}: {pool.machine_type!r} is not in the "
                "CloudProfile, so its capabilities are unknown; add it to spec.machineTypes of the "
                "CloudProfile, or choose another type"
            )
        known = found.capabilities if found else {}
        only = len(self.registered.get(ARCHITECTURE, ())) == 1
        pools = self.architecture if only else pool.architecture or AMD64
        return {ARCHITECTURE: [pools], **known}


def registry_of(cluster: Cluster) -> CapabilityRegistry:
    """Return the capabilities that the CloudProfile registers. Raises ConfigurationError."""
    where = f"Cluster {cluster.metadata.name}: spec.cloudProfile.spec.machineCapabilities"
    given = value_at(cluster.cloud_profile, "spec", "machineCapabilities") or ()
    definitions = (decode_at(_Definition, item, where) for item in given)
    return CapabilityRegistry({definition.name: definition.values for definition in definitions})
