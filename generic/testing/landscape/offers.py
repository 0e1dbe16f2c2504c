"""Offers: what a landscape offers to its users, derived from the kinds that its extensions serve.

A Shoot needs an extension for each of the kinds of NEEDED; kinds that no given extension serves are
simulated. Names of types, images and container runtimes in the CloudProfile and in the Shoot
are the types of the extensions (Gardener documentation, "Contract: Worker Resource", "Contract:
OperatingSystemConfig Resource"). Pure.

Not here: the objects of any garden (`gardenobjects`), the simulated extension (`simulated`).
"""

from collections.abc import Iterable, Mapping, Sequence

from attrs import evolve, frozen

from actuator.errors import ConfigurationError
from actuator.meta import Raw
from generic.library.manifests import manifest, merged
from generic.testing.landscape.gardenobjects import (
    CORE,
    cloud_profile,
    credentials,
    domains,
    namespace,
    project,
)
from generic.testing.landscape.seedobjects import SeedPlan
from generic.testing.shootpart import ShootPart

SIMULATED = "simulated"
"""The type of simulated kinds whose types are free."""
OF_PROVIDER = ("Infrastructure", "ControlPlane", "Worker")
"""The kinds whose type is that of the Shoot's provider."""
OF_BACKUP = ("BackupBucket", "BackupEntry")
"""The kinds whose type is that of the seeds' backups, without which no Shoot is migrated."""
NEEDED = (*OF_PROVIDER, "DNSRecord", "Network", "OperatingSystemConfig")
PROJECT = "dev"
NAMESPACE = f"garden-{PROJECT}"
"""The namespace of the users' Project."""
_BINDING = "account"
_ANYWHERE = ShootPart(
    extension="", region="nowhere", zones=["nowhere-1"], domain="landscape.example.com"
)
_IMAGE_VERSION = "1.0.0"
_MACHINE: Raw = {"name": "machine", "cpu": "2", "gpu": "0", "memory": "8Gi", "usable": True}

Types = Mapping[str, Sequence[str]]
"""Types of extensions, by kind."""


def types_of(registrations: Iterable[Sequence[Raw]]) -> dict[str, list[str]]:
    """Return the types that extensions serve, by the documents of their registrations."""
    found: dict[str, list[str]] = {}
    for documents in registrations:
        for document in documents:
            for resource in document.get("spec", {}).get("resources", ()):
                found.setdefault(resource["kind"], []).append(resource["type"])
    return found


def missing(served: Types, *, backup: bool = False) -> dict[str, str]:
    """Return the needed kinds that no extension serves, with the types to simulate."""
    alike = [OF_PROVIDER, *([OF_BACKUP] if backup else [])]
    shared = {kind: common_type(served, kinds) for kinds in alike for kind in kinds}
    free = [kind for kind in NEEDED if kind not in shared and kind not in served]
    return dict.fromkeys(free, SIMULATED) | {
        kind: type for kind, type in shared.items() if type not in served.get(kind, ())
    }


def common_type(served: Types, kinds: Sequence[str]) -> str:
    """Return the type of kinds that have the same: that of the first one that is served."""
    return next((served[kind][0] for kind in kinds if kind in served), SIMULATED)


def image_of(served: Types) -> str:
    """Return the name of the machine image."""
    return served.get("OperatingSystemConfig", [SIMULATED])[0]


def combined(parts: Iterable[ShootPart]) -> ShootPart:
    """Return one part for all. Raises ConfigurationError if two differ in region or domain."""
    whole = _ANYWHERE
    for part in parts:
        for name in ("region", "domain"):
            known = getattr(whole, name)
            given = getattr(part, name)
            if given and known not in (given, getattr(_ANYWHERE, name)):
                raise ConfigurationError(
                    f"{part.extension}: its {name} is {given!r}, that of another extension is "
                    f"{known!r}; start one landscape for each"
                )
        whole = evolve(
            whole,
            region=part.region or whole.region,
            zones=part.zones or whole.zones,
            domain=part.domain or whole.domain,
            credentials={**whole.credentials, **part.credentials},
            profile=merged(whole.profile, part.profile),
            shoot=merged(whole.shoot, part.shoot),
            worker=merged(whole.worker, part.worker),
        )
    return whole


@frozen
class Offer:
    """The types of all extensions, also of the simulated one, and the other data of Shoots."""

    types: Types
    part: ShootPart
    version: str
    """The version of Kubernetes of all Shoots, without "v"."""
    has_backups: bool = True
    """Whether seeds have backups, if both kinds are served."""

    @property
    def provider(self) -> str:
        """The type of the Shoots' provider."""
        return common_type(self.types, OF_PROVIDER)

    @property
    def backup(self) -> str:
        """The type of the seeds' backups; "" without, or unless both of its kinds are served."""
        found = common_type(self.types, OF_BACKUP)
        served = all(found in self.types.get(kind, ()) for kind in OF_BACKUP)
        return found if served and self.has_backups else ""

    @property
    def keys(self) -> Mapping[str, str]:
        """The data of the Secrets with credentials, which must not be empty."""
        return self.part.credentials or {"none": "none"}

    def seed(self, name: str) -> SeedPlan:
        """Return the plan of a seed."""
        part = self.part
        dns = self.types["DNSRecord"][0]
        where = (part.region, part.zones)
        return SeedPlan(name, self.provider, *where, dns, part.domain, self.keys, self.backup)

    def garden(self) -> list[Raw]:
        """Return the Project, its namespace with the users' credentials, CloudProfile, domains."""
        dns = self.types["DNSRecord"][0]
        return [
            namespace(NAMESPACE, PROJECT),
            project(PROJECT),
            cloud_profile(self.provider, [self.version], self._profile()),
            *domains(dns, self.part.domain, self.keys),
            *credentials(NAMESPACE, self.provider, self.keys),
        ]

    def _profile(self) -> Raw:
        zones = [{"name": zone} for zone in self.part.zones]
        version = {"version": _IMAGE_VERSION, "cri": [self._cri()], "architectures": ["amd64"]}
        common: Raw = {
            "machineImages": [{"name": image_of(self.types), "versions": [version]}],
            "machineTypes": [_MACHINE],
            "regions": [{"name": self.part.region, "zones": zones}],
        }
        return merged(common, self.part.profile)

    def shoot(self, name: str) -> Raw:
        """Return a Shoot with one machine, and an object of each kind that extensions serve."""
        common: Raw = {
            "cloudProfile": {"kind": "CloudProfile", "name": self.provider},
            "credentialsBindingName": _BINDING,
            "region": self.part.region,
            "purpose": "testing",
            "networking": {"type": self.types["Network"][0], "nodes": "10.250.0.0/16"},
            "kubernetes": {"version": self.version},
            "extensions": [{"type": type} for type in self.types.get("Extension", ())],
            "provider": {"type": self.provider, "workers": [self._worker()]},
        }
        return manifest(CORE, "Shoot", name, NAMESPACE, spec=merged(common, self.part.shoot))

    def _worker(self) -> Raw:
        image = {"name": image_of(self.types), "version": _IMAGE_VERSION}
        machine = {"type": _MACHINE["name"], "image": image, "architecture": "amd64"}
        common: Raw = {
            "name": "pool",
            "machine": machine,
            "cri": self._cri(),
            "minimum": 1,
            "maximum": 2,
            "maxSurge": 1,
            "maxUnavailable": 0,
            "zones": [*self.part.zones],
        }
        return merged(common, self.part.worker)

    def _cri(self) -> Raw:
        runtimes = [{"type": type} for type in self.types.get("ContainerRuntime", ())]
        return {"name": "containerd", **({"containerRuntimes": runtimes} if runtimes else {})}
