"""Certificates and access to the shoot, as Secrets in the seed; for control planes of any provider.

`SecretsManager` creates certificate authorities and certificates, renews them in time, and rotates
authorities in the two phases of a shoot's credentials rotation. `ShootAccess` requests a token for
a component in the seed that uses the shoot's API server. (Gardener documentation, "Secrets
Management for Seed and Shoot Cluster" and "gardener-resource-manager", "TokenRequestor".)

Read in this order: `config` (declarations), `certificates` (keys and signatures), `kept` (content
of a Secret, and the author's view of it), `manager` (the whole flow), `access`.

Guarantees:
- A Secret is immutable and named after its configuration; a change creates another Secret.
- Keys never appear in a repr, a log line or an error.
- Secrets of another manager identity are neither used nor deleted.
"""

from generic.library.secrets.access import ShootAccess, generic_kubeconfig_name
from generic.library.secrets.config import (
    Authority,
    Certificate,
    Config,
    Rotation,
    RotationPhase,
    Usage,
    rotation_of,
)
from generic.library.secrets.kept import Issued
from generic.library.secrets.manager import SecretsManager

__all__ = [
    "Authority",
    "Certificate",
    "Config",
    "Issued",
    "Rotation",
    "RotationPhase",
    "SecretsManager",
    "ShootAccess",
    "Usage",
    "generic_kubeconfig_name",
    "rotation_of",
]
