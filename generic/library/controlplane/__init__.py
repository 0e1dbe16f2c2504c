"""GenericControlPlane: a ControlPlane actuator for which an author supplies the manifests."""

from generic.library.controlplane.actuator import GenericControlPlane
from generic.library.controlplane.parts import Manifests, Part, Situation, checksum_of

__all__ = ["GenericControlPlane", "Manifests", "Part", "Situation", "checksum_of"]
