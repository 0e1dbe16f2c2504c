"""Objects of a seed, and the configuration of its gardenlet, as data.

The configuration switches off what needs containers to be of use: logging, the monitoring of
shoots, the dependency watchdog. All waits and thresholds of gardenlet are its defaults, so that a
Shoot meets those of a real landscape. Not here: the processes of a seed (seed.py).
"""

from collections.abc import Mapping, Sequence

from attrs import frozen

from actuator.meta import Raw
from generic.testing.landscape.gardenobjects import CORE, GARDEN, namespace, secret

_LOCAL = "127.0.0.1"
_UNREACHED = "192.0.2.1"
"""An address of TEST-NET-1, where the seed's API server is not: programs get its real one."""


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
    concurrency: int = 5
    """The number of Shoots that gardenlet handles at a time."""


def seed_bootstrap() -> list[Raw]:
    """Return the objects that a real seed's cluster has before gardenlet: those of Kubernetes."""
    critical = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    kubernetes = {"name": "kubernetes", "namespace": "default"}
    return [
        {**critical, "metadata": {"name": "gardener-system-critical"}, "value": 999998950},
        namespace(GARDEN),
        {
            "apiVersion": "v1",
            "kind": "Endpoints",
            "metadata": kubernetes,
            "subsets": [
                {
                    "addresses": [{"ip": _UNREACHED}],
                    "ports": [{"name": "https", "port": 6443, "protocol": "TCP"}],
                }
            ],
        },
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {**kubernetes, "labels": {"kubernetes.io/service-name": "kubernetes"}},
            "addressType": "IPv4",
            "endpoints": [{"addresses": [_UNREACHED], "conditions": {"ready": True}}],
            "ports": [{"name": "https", "port": 6443, "protocol": "TCP"}],
        },
    ]


def seed_credentials(plan: SeedPlan) -> Raw:
    """Return the Secret in the garden for the DNS provider and the backups of a seed."""
    label = {f"provider.shoot.gardener.cloud/{plan.provider}": "true"}
    return secret(GARDEN, f"account-{plan.name}", plan.credentials, label)


def seed_manifest(plan: SeedPlan) -> Raw:
    """Return the Seed; gardenlet registers it."""
    name = f"account-{plan.name}"
    reference = {"apiVersion": "v1", "kind": "Secret", "name": name, "namespace": GARDEN}
    provider = {"type": plan.dns, "credentialsRef": reference}
    backup = {"provider": plan.backup, "region": plan.region, "credentialsRef": reference}
    internal = {**provider, "domain": f"internal.{plan.domain}"}
    default = {**provider, "domain": f"default.{plan.domain}"}
    off = {"enabled": False}
    networks = {"nodes": "172.18.0.0/16", "pods": "10.1.0.0/16", "services": "10.2.0.0/22"}
    for_shoots = {"pods": "10.3.0.0/16", "services": "10.4.0.0/16"}
    ingress = {"domain": f"ingress.{plan.name}.{plan.domain}", "controller": {"kind": "nginx"}}
    return {
        "apiVersion": CORE,
        "kind": "Seed",
        "metadata": {"name": plan.name},
        "spec": {
            "provider": {"type": plan.provider, "region": plan.region, "zones": [*plan.zones]},
            "dns": {"provider": provider, "internal": internal, "defaults": [default]},
            "ingress": ingress,
            **({"backup": backup} if plan.backup else {}),
            "networks": {**networks, "shootDefaults": for_shoots},
            "settings": {
                "scheduling": {"visible": True},
                "verticalPodAutoscaler": {"enabled": True},
                "dependencyWatchdog": {"weeder": off, "prober": off},
            },
        },
    }


def gardenlet_configuration(
    plan: SeedPlan, garden: str, seed: str, health: int, metrics: int
) -> Raw:
    """Return the configuration; `garden` and `seed` are the paths of kubeconfigs."""
    many = {"concurrentSyncs": plan.concurrency}
    off = {"enabled": False}
    return {
        "apiVersion": "gardenlet.config.gardener.cloud/v1alpha1",
        "kind": "GardenletConfiguration",
        "gardenClientConnection": {"kubeconfig": garden, "qps": 100, "burst": 130},
        "seedClientConnection": {"kubeconfig": seed, "qps": 100, "burst": 200},
        "shootClientConnection": {"qps": 50, "burst": 100},
        "controllers": {
            "shoot": {**many, "syncPeriod": "1h", "progressReportPeriod": "1s"},
            "shootCare": {"concurrentSyncs": 2, "syncPeriod": "30s"},
            "shootStatus": many,
            "seed": {"syncPeriod": "1h"},
            "backupBucket": many,
            "backupEntry": {**many, "deletionGracePeriodHours": 0},
            "bastion": many,
            "controllerInstallation": many,
            "controllerInstallationCare": {"syncPeriod": "10s"},
            "controllerInstallationRequired": {"concurrentSyncs": 1},
            "networkPolicy": many,
        },
        "resources": {"capacity": {"shoots": 20}},
        "leaderElection": {
            "leaderElect": False,
            "resourceNamespace": GARDEN,
            "resourceName": "gardenlet",
        },
        "logLevel": "info",
        "logFormat": "text",
        "logging": {"enabled": False, "vali": off, "victoriaLogs": off},
        "monitoring": {"shoot": off},
        "server": {
            "healthProbes": {"bindAddress": _LOCAL, "port": health},
            "metrics": {"bindAddress": _LOCAL, "port": metrics},
        },
        "seedConfig": seed_manifest(plan),
    }
