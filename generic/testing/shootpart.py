"""What a real Gardener has to know of an extension, so that users can create Shoots with it: data.

A rehearsal returns it (`Rehearsal.shoot_part`). The kinds and types that the extension serves are
not part of it: they are in its registration. Not here: the objects made of it (`landscape`).
"""

from collections.abc import Mapping, Sequence

from attrs import field, frozen

from actuator.meta import Raw


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
