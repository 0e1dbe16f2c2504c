"""Applies the objects of a Worker: Secrets, machine classes, machine deployments with replicas."""

from collections.abc import Iterable, Mapping, Sequence

import attrs

from actuator.cluster import Cluster
from actuator.codec import encode
from actuator.errors import AlreadyExists, ConfigurationError, NotFound, RequeueAfter
from actuator.interface import SECRETS, Client
from actuator.meta import Raw
from actuator.v1alpha1 import Worker
from generic.kube.finalizers import Stale, patch_tested
from generic.kube.patches import add, test
from generic.kube.writing import write
from generic.library import machines
from generic.library.lookup import find
from generic.library.manifests import manifest_of
from generic.library.worker.group import POOL, PURPOSE, MachineGroup
from generic.library.worker.objects import MachineObjects

_CHANGED = 1.0


def apply_classes(client: Client, namespace: str, groups: Iterable[MachineGroup]) -> None:
    """Apply the groups' Secrets and machine classes, without fields of former versions.

    Raises ConfigurationError if a Secret of that name exists without our label.
    """
    for group in groups:
        name = group.class_name
        secret = find(client, SECRETS, name, namespace)
        _refuse_foreign(secret, namespace, name)
        write(client, SECRETS, group.secret(namespace), secret)
        existing = find(client, machines.MACHINE_CLASSES, name, namespace)
        write(client, machines.MACHINE_CLASSES, group.machine_class(namespace), existing)


def apply_deployments(
    client: Client,
    worker: Worker,
    cluster: Cluster,
    groups: Sequence[MachineGroup],
    found: MachineObjects,
    restored: Mapping[str, int],
) -> None:
    """Create or update the groups' machine deployments.

    `restored` has the replicas of deployments on another seed. Raises RequeueAfter if one changed
    meanwhile: the cluster-autoscaler writes replicas too.
    """
    for group in groups:
        count = replicas(group, cluster, worker, found, restored.get(group.name))
        existing = found.deployment(group.name)
        spec = group.deployment_spec(worker.metadata.name, count)
        try:
            if existing is None:
                _create(client, worker.metadata.namespace, group, spec)
            else:
                _update(client, existing, group, spec)
        except (AlreadyExists, NotFound, Stale) as error:
            raise RequeueAfter(
                _CHANGED, f"MachineDeployment {group.name} was modified concurrently"
            ) from error


def replicas(
    group: MachineGroup,
    cluster: Cluster,
    worker: Worker,
    found: MachineObjects,
    restored: int | None,
) -> int:
    """Return the wanted number of machines of a group.

    It is 0 in hibernation, and the minimum if every pool has a fixed size. A new deployment, and
    one that leaves hibernation, gets the minimum (a restored one its former replicas). Otherwise
    the cluster-autoscaler decides, between minimum and maximum.
    """
    if cluster.hibernation_enabled:
        return 0
    if not any(pool.minimum < pool.maximum for pool in worker.spec.pools):
        return group.minimum
    existing = found.deployment(group.name)
    if existing is None:
        return group.minimum if restored is None else restored
    if all(deployment.spec.replicas == 0 for deployment in found.deployments):
        return group.minimum
    return min(max(existing.spec.replicas, group.minimum), group.maximum)


def _refuse_foreign(found: Raw | None, namespace: str, name: str) -> None:
    key, value = PURPOSE
    if found is not None and (found["metadata"].get("labels") or {}).get(key) != value:
        raise ConfigurationError(
            f"Secret {namespace}/{name}: metadata.labels: expected {key}={value}; the Secret was "
            "not created for a machine class, so delete it, or add the label to hand it over"
        )


def _create(
    client: Client, namespace: str, group: MachineGroup, spec: machines.MachineDeploymentSpec
) -> None:
    where = group.name, namespace, {POOL: group.pool.name}
    deployment = manifest_of(machines.MachineDeployment, *where, spec=encode(spec))
    deployment["metadata"]["annotations"] = _annotations(group, {})
    client.create(machines.MACHINE_DEPLOYMENTS, deployment)


def _annotations(group: MachineGroup, existing: Mapping[str, str]) -> dict[str, str]:
    """Return the existing annotations with the group's; an empty value removes one."""
    wanted = group.autoscaler_annotations
    kept = {key: value for key, value in existing.items() if key not in wanted}
    return kept | {key: value for key, value in wanted.items() if value}


def _update(
    client: Client,
    existing: machines.MachineDeployment,
    group: MachineGroup,
    spec: machines.MachineDeploymentSpec,
) -> None:
    """Write the differences, if the deployment is unchanged since it was read.

    The resourceVersion is tested instead of the replicas, which Go omits if they are 0. The
    template keeps its annotations: other controllers set them, for example to restart machines.
    """
    meta = existing.metadata
    template = existing.spec.template
    labels = spec.template.metadata.labels
    kept = attrs.evolve(spec.template, metadata=attrs.evolve(template.metadata, labels=labels))
    wanted = attrs.evolve(spec, template=kept, extra=existing.spec.extra)
    changes: list[Raw] = []
    if wanted != existing.spec:
        changes.append(add("/spec", encode(wanted)))
    for part, old, new in (
        ("labels", meta.labels, {**meta.labels, POOL: group.pool.name}),
        ("annotations", meta.annotations, _annotations(group, meta.annotations)),
    ):
        if new != old:
            changes.append(add(f"/metadata/{part}", new))
    if changes:
        read = test("/metadata/resourceVersion", meta.resource_version)
        tests = [test("/metadata/uid", meta.uid), read]
        where = (client, machines.MACHINE_DEPLOYMENTS, meta.name, meta.namespace)
        patch_tested(*where, [*tests, *changes])
