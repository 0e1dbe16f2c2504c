"""Generated credentials and access to the shoot, as Secrets; for extensions of any provider.

`SecretsManager` creates certificate authorities and certificates, basic auth, RSA keys and static
tokens, renews them in time, and rotates them in the two phases of a credentials rotation; in the
seed or in the garden. `ShootAccess` requests a token for a component in the seed that uses the
shoot's API server. (Gardener documentation, "Secrets Management for Seed and Shoot Cluster" and
"gardener-resource-manager", "TokenRequestor".)

Read in this order: `config` (declarations, and what they generate), `kept` (content of a Secret,
and the author's view of it), `manager` (the whole flow), `access`.

Guarantees:
- A Secret is immutable and named after its configuration; a change creates another Secret.
- Keys never appear in a repr, a log line or an error.
- Secrets of another manager identity are neither used nor deleted.
"""

from actuator.facade import public_names

__all__, __getattr__ = public_names(__name__, __file__)
