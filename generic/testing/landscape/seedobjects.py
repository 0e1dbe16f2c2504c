"""Objects of a seed, and the configuration of its gardenlet, as data.

`manifests/seed.yaml` and `gardenlet.yaml` have the parts that all seeds have in common. Not here:
the processes of a seed (seed.py).
"""

from collections.abc import Mapping, Sequence

from attrs import frozen

from actuator.meta import Raw
from generic.library.manifests import merged
from generic.testing.landscape.gardenobjects import GARDEN, read_manifests, secret


@frozen
class SeedPlan:
    """How a seed appears in its garden."""

    name: str
    provider: str
    """The type of its infrastructure, such as "aws"."""
    region: str
    zones: Sequence[str]
    dns: str
    """The type of its DNS provider, such as "aws-route53"."""
    domain: str
    """The parent of its domains, such as "landscape.example.com"."""
    credentials: Mapping[str, str]
    """The data of the Secret for the DNS provider and the backups."""
    backup: str = ""
    """The type of the provider of its backups; "": it has none."""


def seed_credentials(plan: SeedPlan) -> Raw:
    """Return the Secret in the garden for the DNS provider and the backups of a seed."""
    label = {f"provider.shoot.gardener.cloud/{plan.provider}": "true"}
    return secret(GARDEN, f"account-{plan.name}", plan.credentials, label)


def gardenlet_configuration(
    plan: SeedPlan, garden: str, seed: str, health: int, metrics: int
) -> Raw:
    """Return the configuration, in which gardenlet finds the Seed that it registers.

    `garden` and `seed` are the paths of kubeconfigs.
    """
    own: Raw = {
        "gardenClientConnection": {"kubeconfig": garden},
        "seedClientConnection": {"kubeconfig": seed},
        "server": {"healthProbes": {"port": health}, "metrics": {"port": metrics}},
        "seedConfig": {"metadata": {"name": plan.name}, "spec": _seed_spec(plan)},
    }
    return merged(read_manifests("gardenlet"), own)


def _seed_spec(plan: SeedPlan) -> Raw:
    """Return the fields of the Seed's spec that follow from the plan."""
    name = f"account-{plan.name}"
    reference = {"apiVersion": "v1", "kind": "Secret", "name": name, "namespace": GARDEN}
    provider = {"type": plan.dns, "credentialsRef": reference}
    backup = {"provider": plan.backup, "region": plan.region, "credentialsRef": reference}
    internal = {**provider, "domain": f"internal.{plan.domain}"}
    default = {**provider, "domain": f"default.{plan.domain}"}
    return {
        "provider": {"type": plan.provider, "region": plan.region, "zones": [*plan.zones]},
        "dns": {"provider": provider, "internal": internal, "defaults": [default]},
        "ingress": {"domain": f"ingress.{plan.name}.{plan.domain}"},
        **({"backup": backup} if plan.backup else {}),
    }
