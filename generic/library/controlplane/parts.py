"""The parts of a control plane: their names, their targets, and the input of hooks.

Names, order and classes are those of Gardener's generic ControlPlane actuator, because gardenlet
and the webhooks of extensions rely on them.
"""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Generic

import attrs

from actuator.cluster import Cluster
from actuator.errors import ConfigurationError
from actuator.interface import C, Context
from actuator.meta import Raw
from actuator.v1alpha1 import ControlPlane
from generic.kube.encoding import go_json
from generic.library.charts import Chart
from generic.library.secrets import Issued

Manifests = Chart | Iterable[Raw]
"""The result of a hook: a chart, or the objects themselves."""


@attrs.frozen
class Part:
    """One ManagedResource of a control plane."""

    name: str
    in_seed: bool = attrs.field(default=False, kw_only=True)
    overwrite_annotations: bool = attrs.field(default=False, kw_only=True)


CONFIG = Part("extension-controlplane-configuration-seed", in_seed=True)
SEED = Part("extension-controlplane-seed", in_seed=True)
SHOOT = Part("extension-controlplane-shoot")
CRDS = Part("extension-controlplane-shoot-crds")
STORAGE_CLASSES = Part("extension-controlplane-storageclasses", overwrite_annotations=True)
WEBHOOKS = Part("extension-controlplane-shoot-webhooks")

EVERY_PART = (STORAGE_CLASSES, CRDS, SHOOT, SEED, CONFIG, WEBHOOKS)
"""All parts, in the order of deletion."""

KEPT_ON_MIGRATION = (SHOOT, CRDS, STORAGE_CLASSES)
"""Parts whose objects stay in the shoot when another seed takes over."""


@attrs.frozen(kw_only=True)
class Situation(Generic[C]):
    """The input of a hook."""

    ctx: Context[C]
    control_plane: ControlPlane
    cluster: Cluster
    secrets: Mapping[str, Issued] = attrs.field(factory=dict, repr=False)
    """The generated Secrets, by the name of their config."""
    checksums: Mapping[str, str] = attrs.field(factory=dict)
    """Checksums of the Secret in spec.secretRef, and of each ConfigMap and Secret of `config`."""
    scaled_down: bool = False
    """Whether the shoot is hibernated and its kube-apiserver is scaled down."""

    @property
    def namespace(self) -> str:
        """The shoot's namespace in the seed."""
        return self.control_plane.metadata.namespace

    def replicas(self, wanted: int) -> int:
        """Return `wanted`, or 0 if the control plane of a hibernated shoot is scaled down."""
        return self.cluster.control_plane_replicas(wanted, scaled_down=self.scaled_down)

    def checksum(self, name: str) -> str:
        """Return a hexadecimal checksum; in a pod's annotation, a change restarts the pod.

        `name` is that of a generated Secret's config, of the Secret in spec.secretRef, or of an
        object of the part `config`. Raises ConfigurationError for an unknown name.
        """
        if name in self.checksums:
            return self.checksums[name]
        if name not in self.secrets:
            raise ConfigurationError(
                f"ControlPlane {self.control_plane.key}: {name!r} is neither the Secret of "
                "spec.secretRef, nor a generated Secret, nor part of the configuration; create it"
            )
        data = sorted(self.secrets[name].items())
        return hashlib.sha256(repr(data).encode()).hexdigest()


def checksum_of(data: Mapping[str, str]) -> str:
    """Return SHA-256 of the `data` of a ConfigMap, or of a Secret from the API (base64).

    Equal to Gardener's Go library (`ComputeChecksum` in `pkg/utils`), so that a take-over does
    not restart pods.
    """
    return hashlib.sha256(go_json(data, sort_keys=True).encode()).hexdigest()


def checksums_of(manifests: Iterable[Raw]) -> dict[str, str]:
    """Return the checksums of ConfigMaps and Secrets among the manifests, by name."""
    found = (manifest for manifest in manifests if manifest["kind"] in ("ConfigMap", "Secret"))
    return {obj["metadata"]["name"]: checksum_of(obj.get("data") or {}) for obj in found}
