"""The machine images of pools: the CloudProfile's, else those that the status keeps.

A CloudProfile maps name, version and capabilities of a machine image to the provider's own data,
such as an AMI, by region or for all regions; older ones map the architecture only. An operator may
remove a version that pools still use, so `status.providerStatus.machineImages` keeps the images of
all pools (Gardener's extensions, `UpdateMachineImagesStatus`). Container images are in
`generic.library.imagevector`.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

import attrs

from actuator.cluster import Cluster
from actuator.codec import decode_at, encode
from actuator.errors import ConfigurationError
from actuator.meta import KeepsUnknownFields, Raw, wire_name
from actuator.v1alpha1 import Worker, WorkerPool
from generic.library.worker.capabilities import (
    ARCHITECTURE,
    Capabilities,
    CapabilityRegistry,
    registry_of,
)
from generic.library.worker.group import AMD64
from generic.library.worker.poolhash import pool_field


@attrs.frozen(kw_only=True)
class ProviderImage:
    """A machine image; a provider's subclass adds the fields of its CloudProfile, such as `ami`.

    At least one field of the subclass identifies the image: an entry without any is not used.
    """

    name: str
    version: str
    architecture: str = AMD64
    capabilities: dict[str, list[str]] = attrs.field(factory=dict, hash=False)
    """As in the CloudProfile or the status: an omitted capability has all registered values."""


@attrs.frozen(kw_only=True)
class _Region(KeepsUnknownFields):
    name: str
    architecture: str | None = None


@attrs.frozen(kw_only=True)
class _Flavor(KeepsUnknownFields):
    regions: list[_Region] | None = None
    architecture: str | None = None
    capabilities: dict[str, list[str]] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class _KnownVersion(_Flavor):
    version: str
    capability_flavors: list[_Flavor] | None = None


@attrs.frozen(kw_only=True)
class _KnownImage:
    name: str
    versions: list[_KnownVersion] = attrs.field(factory=list)


@attrs.frozen(kw_only=True)
class _KeptImage(_Flavor):
    name: str
    version: str


@attrs.frozen
class _Candidate:
    """An entry of the CloudProfile, as the status would keep it, or one of the status."""

    entry: Raw
    capabilities: Capabilities
    where: str

    @property
    def image(self) -> tuple[str, str]:
        return self.entry["name"], self.entry["version"]


T = TypeVar("T", bound=ProviderImage)


def machine_images(cls: type[T], cluster: Cluster, region: str) -> list[T]:
    """Return the CloudProfile's images in a region. Raises ConfigurationError."""
    return [_decoded(cls, item) for item in _of_profile(cls, cluster, region, registry_of(cluster))]


def use_images(
    cls: type[T], worker: Worker, pools: Iterable[WorkerPool], cluster: Cluster, api_version: str
) -> list[T]:
    """Return the image of each pool: the CloudProfile's, else the one that the status keeps.

    The status then keeps these images, in place of former ones and beside other fields;
    `api_version` is that of the provider's types. Raises ConfigurationError with the pool's field.
    """
    registry = registry_of(cluster)
    status = worker.status.provider_status or {}
    known = list(_of_profile(cls, cluster, worker.spec.region, registry))
    kept = list(_of_status(cls, worker, registry))
    images = list[T]()
    entries = list[Raw]()
    for pool in pools:
        machine = registry.of_machine(worker, pool, cluster)
        found = _find([known, kept], registry, worker, pool, machine)
        images.append(_decoded(cls, found))
        if (entry := _entry(cls, found, kept, registry)) not in entries:
            entries.append(entry)
    head = {"apiVersion": api_version, "kind": "WorkerStatus"}
    worker.status.provider_status = {**head, **status, "machineImages": entries}
    return images


def _find(
    sources: Sequence[Sequence[_Candidate]],
    registry: CapabilityRegistry,
    worker: Worker,
    pool: WorkerPool,
    machine: Capabilities,
) -> _Candidate:
    """Return the best image of the first source that has one for these machines."""
    field = pool_field(worker, pool, "machineImage")
    wanted = pool.machine_image
    if wanted is None:
        raise ConfigurationError(f"{field}: expected an image, got none; set it in the Shoot")
    rest = [f"{name}={','.join(machine[name])}" for name in machine if name != ARCHITECTURE]
    words = [wanted.name, wanted.version, *machine[ARCHITECTURE], *rest]
    problem = "is neither in the CloudProfile nor in status.providerStatus; add it to"
    for candidates in sources:
        fitting = [
            candidate
            for candidate in candidates
            if candidate.image == (wanted.name, wanted.version)
            and registry.are_compatible(candidate.capabilities, machine)
        ]
        best = [fitting[index] for index in registry.preferred(o.capabilities for o in fitting)]
        has_flavors = any(item.entry.get("capabilities") for item in best)
        differ = has_flavors and any(item.entry != best[0].entry for item in best)
        if best and (not differ or candidates is sources[-1]):
            return best[0]
        if best:
            problem = "has several capabilityFlavors that fit equally; correct"
    raise ConfigurationError(
        f"{field}: {' '.join(words)} in {worker.spec.region} {problem} "
        "spec.providerConfig.machineImages of the CloudProfile, or choose another image"
    )


def _of_profile(
    cls: type[T], cluster: Cluster, region: str, registry: CapabilityRegistry
) -> Iterator[_Candidate]:
    where = f"Cluster {cluster.metadata.name}: spec.cloudProfile.spec.providerConfig.machineImages"
    for machine_image in cluster.provider_profile.get("machineImages") or ():
        image = decode_at(_KnownImage, machine_image, where)
        for version in image.versions:
            for flavor in _flavors(version, registry.architecture):
                fields = _in_region(cls, flavor, region)
                if fields is None:
                    continue
                entry = {**fields, "name": image.name, "version": version.version}
                yield _candidate(entry, flavor, registry, where)


def _candidate(entry: Raw, flavor: _Flavor, registry: CapabilityRegistry, where: str) -> _Candidate:
    """Return the image with its capabilities, or its architecture, as Gardener's status has it."""
    older = {ARCHITECTURE: [flavor.architecture]} if flavor.architecture else {}
    given = {**older, **flavor.capabilities}
    capabilities = {ARCHITECTURE: [registry.architecture], **given}
    if registry.registered:
        entry = {**entry, "capabilities": given}
    else:
        architecture = _architecture(capabilities)
        entry = {**entry, ARCHITECTURE: architecture, "capabilities": flavor.capabilities}
    return _Candidate(entry, capabilities, where)


def _flavors(version: _KnownVersion, default: str) -> Sequence[_Flavor]:
    """Return the flavors of a version; an older one has one for each architecture of its regions.

    Each of these has the version's data for all regions, as a fallback (Gardener's extension for
    OpenStack, "cloudprofile").
    """
    if version.capability_flavors:
        return version.capability_flavors
    by_architecture: dict[str, list[_Region]] = {}
    for region in version.regions or ():
        architecture = region.architecture or version.architecture or default
        by_architecture.setdefault(architecture, []).append(region)
    return [
        attrs.evolve(version, regions=regions, architecture=architecture)
        for architecture, regions in by_architecture.items()
    ] or [attrs.evolve(version, architecture=version.architecture or default)]


def _in_region(cls: type[T], flavor: _Flavor, region: str) -> Raw | None:
    """Return the data that identifies an image in a region, else in all of them, else None."""
    places = [item.extra for item in flavor.regions or () if item.name == region]
    return next((place for place in (*places, flavor.extra) if _identifies(cls, place)), None)


def _identifies(cls: type[T], fields: Raw) -> bool:
    """Whether a field of the provider's own has a value; options, which are booleans, are none."""
    own = _wire_names(cls) - _wire_names(ProviderImage)
    values = [fields.get(name) for name in own]
    return not own or any(value and not isinstance(value, bool) for value in values)


def _wire_names(cls: type[ProviderImage]) -> set[str]:
    return {wire_name(field) for field in attrs.fields(cls)}


def _of_status(cls: type[T], worker: Worker, registry: CapabilityRegistry) -> Iterator[_Candidate]:
    where = f"Worker {worker.key}: status.providerStatus.machineImages"
    for entry in (worker.status.provider_status or {}).get("machineImages") or ():
        kept = decode_at(_KeptImage, entry, where)
        if _identifies(cls, entry):
            default = kept.architecture or registry.architecture
            yield _Candidate(entry, {ARCHITECTURE: [default], **kept.capabilities}, where)


def _decoded(cls: type[T], candidate: _Candidate) -> T:
    entry = {**candidate.entry, ARCHITECTURE: _architecture(candidate.capabilities)}
    return decode_at(cls, entry, candidate.where)


def _architecture(capabilities: Capabilities) -> str:
    return next(iter(capabilities[ARCHITECTURE]), AMD64)


def _entry(
    cls: type[T], found: _Candidate, kept: Iterable[_Candidate], registry: CapabilityRegistry
) -> Raw:
    """Return the entry of the status: the known fields as found, and the others as kept."""
    same = [
        item.entry
        for item in kept
        if item.image == found.image
        and registry.are_compatible(item.capabilities, found.capabilities)
    ]
    if found.entry in same:
        return found.entry
    new = encode(decode_at(cls, found.entry, found.where))
    known = _wire_names(cls)
    former = same[0] if same else {}
    others = {key: value for key, value in former.items() if key not in known}
    is_same = former in ({**others, **new}, {ARCHITECTURE: AMD64, **others, **new})
    return former if is_same else {**others, **new}
