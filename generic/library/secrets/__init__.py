"""Certificates and access to the shoot, as Secrets in the seed; for control planes of any provider.

`SecretsManager` makes certificate authorities and certificates, renews them in time, and rotates
authorities in the two phases of a shoot's credentials rotation. `ShootAccess` asks for a token
for something in the seed that talks to the shoot's API server. (Gardener documentation, "Secrets
Management for Seed and Shoot Cluster" and "gardener-resource-manager", "TokenRequestor".)

Read in this order: `config` (what is wanted), `certificates` (keys and signatures), `kept` (what
a Secret says, and what an author gets), `manager` (the whole), `access`.

Guarantees:
- A Secret is immutable and named after its configuration; what changes is another Secret.
- Keys never show in a repr, a log line or an error.
- Secrets of others, which another manager identity made, are neither used nor deleted.
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
