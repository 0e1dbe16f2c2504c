"""MachineGroup: an author's description of identical machines, and their manifests.

A pool's numbers are divided among its zones as in Gardener's extension library (`worker`).
"""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, NotRequired, TypedDict, Unpack

import attrs

from actuator import v1alpha1
from actuator.cluster import Cluster
from actuator.codec import encode
from actuator.errors import ConfigurationError
from actuator.meta import Base64, Raw, SecretReference
from generic.library import machines
from generic.library.manifests import manifest, manifest_of
from generic.library.worker.autoscaler import autoscaler_annotations
from generic.library.worker.poolhash import IN_PLACE, MANUAL_IN_PLACE, pool_field

AMD64 = "amd64"
"""The architecture of pools without one."""

PURPOSE = ("gardener.cloud/purpose", "machineclass")
"""Label of the Secrets of machine classes."""

WORKER = "worker.gardener.cloud/name"
POOL = "worker.gardener.cloud/pool"
_LABEL_VALUE = re.compile(r"[a-zA-Z0-9]([-_.a-zA-Z0-9]{0,61}[a-zA-Z0-9])?")
_OS_NAME = "operatingSystemName"
_OS_VERSION = "operatingSystemVersion"
_READY_SECONDS = 500
"""As in Gardener's extension library."""


@attrs.frozen(kw_only=True)
class MachineGroup:
    """One machine deployment, with the class of its machines and that class's Secret.

    `name` is the deployment's, `class_name` the class's and the Secret's: a new one replaces or
    updates the machines. `autoscaler_annotations` go to the deployment; an empty value removes
    the annotation. `class_labels` are those of the class. `secret_data` never shows in a repr.
    """

    name: str
    class_name: str
    pool: v1alpha1.WorkerPool
    minimum: int
    maximum: int
    max_surge: int | str
    max_unavailable: int | str
    provider: str
    provider_spec: Raw
    secret_data: Mapping[str, bytes] = attrs.field(repr=False)
    credentials: SecretReference | None = None
    labels: Mapping[str, str] = attrs.field(factory=dict)
    annotations: Mapping[str, str] = attrs.field(factory=dict)
    taints: Sequence[v1alpha1.Taint] = ()
    node_template: Raw | None = None
    class_labels: Mapping[str, str] = attrs.field(factory=dict)
    autoscaler_annotations: Mapping[str, str] = attrs.field(factory=dict)
    auto_preserve_failed_machine_max: int | None = None

    def secret(self, namespace: str) -> Raw:
        """Return the Secret of the machine class."""
        data = {key: Base64.encode_bytes(value) for key, value in self.secret_data.items()}
        where = self.class_name, namespace, dict([PURPOSE])
        return manifest("v1", "Secret", *where, type="Opaque", data=data)

    def machine_class(self, namespace: str) -> Raw:
        """Return the machine class."""
        parts = machines.MachineClass(
            provider=self.provider,
            provider_spec=self.provider_spec,
            secret_ref=SecretReference(name=self.class_name, namespace=namespace),
            credentials_secret_ref=self.credentials,
            node_template=self.node_template,
        )
        labels = {**_image_labels(self.pool), **self.class_labels}
        where = self.class_name, namespace, labels
        return encode(parts) | manifest_of(machines.MachineClass, *where)

    def deployment_spec(self, worker: str, replicas: int) -> machines.MachineDeploymentSpec:
        """Return the spec of the machine deployment; `worker` is the Worker's name."""
        labels = {machines.DEPLOYMENT_NAME: self.name}
        in_place = {WORKER: worker} if self._in_place else {}
        node: Raw = {"metadata": {}, "spec": {}}
        node["metadata"] = _filled(labels=dict(self.labels), annotations=dict(self.annotations))
        node["spec"] = _filled(taints=[encode(taint) for taint in self.taints])
        return machines.MachineDeploymentSpec(
            replicas=replicas,
            min_ready_seconds=_READY_SECONDS,
            strategy=self._strategy(),
            selector=v1alpha1.LabelSelector(match_labels=labels),
            template=machines.MachineTemplate(
                metadata=machines.TemplateMetadata(labels={**labels, **in_place}),
                spec=machines.MachineSpec(
                    class_=machines.ClassReference(
                        kind=machines.MachineClass.KIND.name, name=self.class_name
                    ),
                    node_template=node,
                    **_configuration(self.pool.machine_controller_manager),
                ),
            ),
            auto_preserve_failed_machine_max=self.auto_preserve_failed_machine_max,
        )

    def status(self) -> v1alpha1.MachineDeploymentStatus:
        """Return its entry in the Worker's status."""
        return v1alpha1.MachineDeploymentStatus(
            name=self.name,
            minimum=self.minimum,
            maximum=self.maximum,
            priority=self.pool.priority,
            auto_preserve_failed_machine_max=self.auto_preserve_failed_machine_max,
        )

    @property
    def is_manual(self) -> bool:
        """Whether the user selects the machines for their update in place."""
        return self.pool.update_strategy == MANUAL_IN_PLACE

    @property
    def _in_place(self) -> bool:
        return self.pool.update_strategy in IN_PLACE

    def _strategy(self) -> Raw:
        pace: Raw = {"maxSurge": self.max_surge, "maxUnavailable": self.max_unavailable}
        if not self._in_place:
            return {"type": "RollingUpdate", "rollingUpdate": pace}
        orchestration = "Manual" if self.is_manual else "Auto"
        return {
            "type": "InPlaceUpdate",
            "inPlaceUpdate": {**pace, "orchestrationType": orchestration},
        }


def _image_labels(pool: v1alpha1.WorkerPool) -> dict[str, str]:
    """Return the labels that Gardener's providers put on machine classes.

    machine-controller-manager issue 880: they tell which image a machine has. What is no value of a
    label is left out.
    """
    image = pool.machine_image
    labels = dict([PURPOSE])
    if image is not None:
        labels |= {_OS_NAME: image.name, _OS_VERSION: image.version.replace("+", "_")}
    return {key: value for key, value in labels.items() if _LABEL_VALUE.fullmatch(value)}


def require_technical_id(cluster: Cluster) -> str:
    """Return the shoot's technical ID, the prefix of all names of machine objects.

    It differs from the Worker's namespace for self-hosted shoots (Gardener documentation,
    "Worker"). Raises ConfigurationError if the Cluster has none.
    """
    status = cluster.shoot.get("status")
    value = status.get("technicalID") if isinstance(status, dict) else None
    if not isinstance(value, str) or not value:
        raise ConfigurationError(
            f"Cluster {cluster.metadata.name}: spec.shoot.status.technicalID: expected the "
            f"shoot's technical ID, got {value!r}; gardenlet sets it, so reconcile the Shoot"
        )
    return value


class Provided(TypedDict):
    """The provider's part of a group: fields of MachineGroup."""

    provider: str
    provider_spec: Raw
    secret_data: Mapping[str, bytes]
    credentials: NotRequired[SecretReference | None]
    labels: NotRequired[Mapping[str, str]]
    """Added to the pool's own labels of nodes."""
    class_labels: NotRequired[Mapping[str, str]]
    """Added to the labels of the machine class."""


def in_zone(
    worker: v1alpha1.Worker,
    pool: v1alpha1.WorkerPool,
    cluster: Cluster,
    index: int,
    *,
    hash: str,
    **provided: Unpack[Provided],
) -> MachineGroup:
    """Return the group of a pool's machines in zone `index`, with its share of the pool.

    Its name follows Gardener's providers, `<technical ID>-<pool>-z<number from 1>`; the class adds
    the pool's hash. Raises ConfigurationError for a pool, or a Cluster, with missing or invalid
    fields.
    """
    zones = max(1, len(pool.zones))
    name = f"{require_technical_id(cluster)}-{pool.name}-z{index + 1}"
    settings = pool.machine_controller_manager
    preserved = settings.auto_preserve_failed_machine_max if settings else None
    provided["labels"] = {**pool.labels, **provided.get("labels", {})}

    def share(amount: int | str, path: str = "", total: int = pool.maximum) -> Any:
        try:
            return share_of_zone(amount, index, zones, total)
        except ValueError as error:
            where = pool_field(worker, pool, path)
            raise ConfigurationError(f"{where}: {error}; correct it in the Shoot") from None

    return MachineGroup(
        name=name,
        class_name=f"{name}-{hash}",
        pool=pool,
        minimum=share(pool.minimum),
        maximum=share(pool.maximum),
        max_surge=share(pool.max_surge, "maxSurge"),
        max_unavailable=share(pool.max_unavailable, "maxUnavailable", pool.minimum),
        annotations=pool.annotations,
        taints=pool.taints,
        node_template=_node_template(worker, pool, index),
        autoscaler_annotations=autoscaler_annotations(worker, pool),
        auto_preserve_failed_machine_max=None if preserved is None else share(preserved),
        **provided,
    )


def _node_template(worker: v1alpha1.Worker, pool: v1alpha1.WorkerPool, index: int) -> Raw | None:
    """Return the resources of a future node in a zone, for scaling up from zero."""
    if pool.node_template is None:
        return None
    return {
        **encode(pool.node_template),
        "instanceType": pool.machine_type,
        "region": worker.spec.region,
        "zone": pool.zones[index] if pool.zones else "",
        "architecture": pool.architecture or AMD64,
    }


def share_of_zone(amount: int | str, index: int, zones: int, total: int) -> int | str:
    """Return the share of zone number `index`: of a number, or of a percentage like "25%".

    The first zones get the remainder. `total` is the pool's maximum, for maxUnavailable its
    minimum: if the zones cannot share it evenly, a percentage is weighted by the zone's part of it,
    rounded up. Raises ValueError for a text that is not a percentage.
    """
    if isinstance(amount, int):
        return _share(amount, index, zones)
    percentage = re.fullmatch(r"(\d{1,9})%", amount, re.ASCII)
    if percentage is None:
        raise ValueError(f"expected a number or a percentage such as 25%, got {amount!r}")
    if total % zones == 0:
        return amount
    ratio = 100.0 / (total / zones) * _share(total, index, zones)  # Go's order: the same rounding
    return f"{math.ceil(ratio * int(percentage[1]) / 100.0)}%"


def _share(amount: int, index: int, zones: int) -> int:
    each, left = divmod(amount, zones)
    return each + (1 if index < left else 0)


def _configuration(settings: v1alpha1.MachineControllerManagerSettings | None) -> dict[str, Any]:
    if settings is None:
        return {}
    return {
        "drain_timeout": settings.machine_drain_timeout,
        "health_timeout": settings.machine_health_timeout,
        "creation_timeout": settings.machine_creation_timeout,
        "in_place_update_timeout": settings.in_place_update_timeout,
        "disable_health_timeout": settings.disable_health_timeout,
        "machine_preserve_timeout": settings.machine_preserve_timeout,
        "max_evict_retries": settings.max_evict_retries,
        "node_conditions": ",".join(settings.node_conditions) or None,
    }


def _filled(**fields: Any) -> Raw:
    return {name: value for name, value in fields.items() if value}
