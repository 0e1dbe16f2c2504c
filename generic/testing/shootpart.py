"""What a real Gardener has to know of an extension, so that users can create Shoots with it: data.

A rehearsal returns it (`Rehearsal.shoot_part`). The kinds and types that the extension serves are
not part of it: they are in its registration. Not here: the objects made of it (`landscape`).
"""

from collections.abc import Mapping, Sequence

from attrs import evolve, field, frozen

from actuator.meta import Raw
from generic.library.manifests import merged

_OF_PROFILE = frozenset({"type", "kubernetes", "regions", "machineImages"})
_OF_SHOOT = frozenset({"cloudProfile", "region", "kubernetes"})
_OF_PROVIDER = frozenset({"type", "workers"})
"""Fields that follow from the extensions of a landscape, its region and its Kubernetes."""


@frozen(kw_only=True)
class ShootPart:
    """An extension, and the fields of objects in the garden that are its own."""

    extension: str
    """MODULE:OBJECT, as for `actuator run`."""
    environ: Mapping[str, str] = field(factory=dict)
    """Variables of its process, such as the address of a simulated cloud."""
    region: str = ""
    """The region of seeds and Shoots; "": any."""
    zones: Sequence[str] = ()
    """The zones of the region."""
    domain: str = ""
    """A domain in which its DNS provider can create records; "": any."""
    credentials: Mapping[str, str] = field(factory=dict)
    """The data of the Secrets for its infrastructure and its DNS provider."""
    profile: Raw = field(factory=dict)
    """Fields of the CloudProfile's spec."""
    shoot: Raw = field(factory=dict)
    """Fields of a Shoot's spec."""
    worker: Raw = field(factory=dict)
    """Fields of the Shoot's only pool of workers."""


def completed(part: ShootPart, cluster: Raw, credentials: Mapping[str, str]) -> ShootPart:
    """Return the part with fields of a Cluster and credentials, where it has no own ones."""
    profile = _without(cluster.get("cloudProfile", {}).get("spec", {}), _OF_PROFILE)
    shoot = _without(cluster.get("shoot", {}).get("spec", {}), _OF_SHOOT)
    if "provider" in shoot:
        shoot["provider"] = _without(shoot["provider"], _OF_PROVIDER)
    return evolve(
        part,
        credentials=part.credentials or credentials,
        profile=merged(profile, part.profile),
        shoot=merged(shoot, part.shoot),
    )


def _without(content: Raw, names: frozenset[str]) -> Raw:
    return {name: value for name, value in content.items() if name not in names}
