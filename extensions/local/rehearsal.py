"""LocalRehearsal: a folder to break, for `actuator drill`, with a shoot of all five kinds.

No controller of Mounts runs, so each shoot's Mount keeps the finalizer that LocalExtension sets,
until a force deletion.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import attrs

from actuator import Actuator, ExternalResource, v1alpha1
from actuator.codec import encode
from actuator.meta import Object, Raw
from extensions.local.config import API_VERSION
from extensions.local.containerruntime import LocalContainerRuntime
from extensions.local.exposure import LocalExposure
from extensions.local.holding import REGION
from extensions.local.mounts import Mount
from extensions.local.network import LocalNetwork
from extensions.local.operatingsystem import LocalOperatingSystem
from extensions.local.outside import POLICY, Outside, Policy, Thing
from extensions.local.share import LocalExtension
from generic.kube.crds import crd
from generic.library.managedresources import ManagedResource
from generic.testing.drill.shoots import extension_object
from generic.testing.rehearsal import Around, Rehearsal, RehearsedShoot


class LocalRehearsal(Rehearsal):
    """The outside world of the local sample."""

    title = "Local (a folder instead of a cloud)"
    region = REGION

    def __init__(self) -> None:
        self._directory: Path | None = None
        self._open: Callable[[Path], Outside] = Outside
        self._breaks: dict[str, tuple[str, Callable[[], object]]] = {
            "everything-fails": (
                "The folder is taken away: every request to the outside fails at once.",
                lambda: self._outside.rename(self._away),
            ),
            "deletion-denied": (
                "The folder's policy denies deletions: nothing can be given back.",
                self._deny_deletions,
            ),
        }
        self.scenarios: Mapping[str, str] = {name: text for name, (text, _) in self._breaks.items()}

    def start(self, directory: Path) -> None:
        """Create an empty outside in `directory`."""
        self._directory = directory
        self._outside.mkdir()

    def stop(self) -> None:
        """Nothing runs; safe to call twice, and without start."""
        self._directory = None

    def share(self) -> Mapping[str, str]:
        """Return the folder."""
        return {"directory": str(self._outside.parent)}

    def attach(self, shared: Mapping[str, str]) -> None:
        """Use the folder that another process created."""
        self._directory = Path(shared["directory"])

    def observe(self, around: Around) -> None:
        """Enter `around` for each request to the folder."""
        self._open = partial(_ObservedOutside, around=around)

    def crds(self) -> Sequence[Raw]:
        """The storage vendor's Mount, and Gardener's ManagedResource."""
        return [crd(Mount), crd(ManagedResource)]

    def actuators(self) -> Sequence[Actuator[Any]]:
        """The extension's actuators, in this folder; no controller of Mounts."""
        outside = self._open(self._outside)
        return [
            LocalOperatingSystem(),
            LocalNetwork(outside),
            LocalContainerRuntime(),
            LocalExposure(),
            LocalExtension(outside),
        ]

    def manifests(self, shoot: RehearsedShoot) -> Sequence[Raw]:
        """One object of each kind, in the order in which gardenlet creates them."""
        specs: list[tuple[type[Object], Raw]] = [
            (
                v1alpha1.OperatingSystemConfig,
                {"purpose": "provision", "files": [_FILE], "units": [_UNIT]},
            ),
            (v1alpha1.Network, {"podCIDR": "100.96.0.0/11", "serviceCIDR": "100.64.0.0/13"}),
            (
                v1alpha1.ContainerRuntime,
                {"binaryPath": "/var/bin/containerruntimes", "workerPool": _POOL},
            ),
            (v1alpha1.SelfHostedShootExposure, {"port": 443, "endpoints": [_ENDPOINT]}),
            (v1alpha1.Extension, {"providerConfig": _SHARE}),
        ]
        return [
            extension_object(cls, shoot, f"local-{cls.KIND.name.lower()}", spec)
            for cls, spec in specs
        ]

    def break_outside(self, scenario: str) -> None:
        """Start the scenario. Raises KeyError for a name not in `scenarios`."""
        _, bring_about = self._breaks[scenario]
        bring_about()

    def mend_outside(self) -> None:
        """Undo all scenarios; no resource was lost."""
        if self._away.exists():
            self._away.rename(self._outside)
        (self._outside / POLICY).unlink(missing_ok=True)

    def left_outside(self) -> Sequence[ExternalResource]:
        """Return all resources, also while the folder is moved away."""
        there = self._away if self._away.exists() else self._outside
        return [
            ExternalResource(type=thing.type, id=thing.id, tags=thing.tags, region=REGION)
            for thing in Outside(there).find({})
        ]

    @property
    def _outside(self) -> Path:
        if self._directory is None:
            raise RuntimeError("The rehearsal is not started")
        return self._directory / "outside"

    @property
    def _away(self) -> Path:
        return self._outside.with_name("away")

    def _deny_deletions(self) -> None:
        policy = encode(Policy(deny=["delete"]))
        (self._outside / POLICY).write_text(json.dumps(policy))


@attrs.frozen
class _ObservedOutside(Outside):
    """Sends each request in the context of `around`."""

    around: Around

    def ensure(self, thing: Thing) -> None:
        with self.around("outside: ensure"):
            super().ensure(thing)

    def delete(self, id: str, tags: Mapping[str, str]) -> None:
        with self.around("outside: delete"):
            super().delete(id, tags)

    def find(self, tags: Mapping[str, str]) -> list[Thing]:
        with self.around("outside: find"):
            return super().find(tags)


_FILE: Raw = {"path": "/etc/motd", "content": {"inline": {"encoding": "", "data": "Rehearsed\n"}}}
_UNIT: Raw = {"name": "kubelet.service", "command": "start", "enable": True}
_POOL: Raw = {
    "name": "pool-1",
    "selector": {"matchLabels": {"worker.gardener.cloud/pool": "pool-1"}},
}
_ENDPOINT: Raw = {
    "nodeName": "node-1",
    "addresses": [{"type": "InternalIP", "address": "10.1.0.1"}],
}
_SHARE: Raw = {"apiVersion": API_VERSION, "kind": "ShareConfig", "capacity": "10Gi"}
