"""Deletes machine objects: requests the deletion, waits, and reports objects that remain."""

from collections.abc import Callable, Iterable, Sequence

from actuator.codec import decode
from actuator.errors import ActuatorError, ConfigurationError, ErrorCode
from actuator.interface import SECRETS, Context, SeedObjects
from actuator.meta import ObjectMeta, parse_time
from actuator.v1alpha1 import Worker
from generic.library import machines, seedobjects
from generic.library.lookup import find
from generic.library.worker import objects
from generic.library.worker.availability import refuse_failed
from generic.library.worker.group import PURPOSE, MachineGroup
from generic.library.worker.rollout import apply_classes

_DEPLOYMENTS, _SETS, _MACHINES, _CLASSES = machines.MACHINE_OBJECTS
_SECRETS = SeedObjects(SECRETS, label_selector="=".join(PURPOSE))
"""The Secrets of machine classes."""
_FINALIZERS = frozenset({machines.MCM_FINALIZER, machines.MC_FINALIZER})


def remove_unwanted(
    ctx: Context,
    namespace: str,
    groups: Sequence[MachineGroup],
    sets: Iterable[machines.MachineSet],
) -> None:
    """Request the deletion of objects of no group, and of empty ones of these machine sets."""
    names = {g.name for g in groups}
    classes = {g.class_name for g in groups}
    seedobjects.delete(ctx.client, [_DEPLOYMENTS], namespace, keep=names)
    seedobjects.delete(ctx.client, [_CLASSES, _SECRETS], namespace, keep=classes)
    empty = [
        set_.metadata
        for set_ in sets
        if not set_.spec.replicas
        and not set_.status.replicas
        and set_.spec.template.spec.class_.name not in classes
    ]
    objects.delete_all(ctx.client, machines.MACHINE_SETS, empty)


def remove_all(ctx: Context, worker: Worker, groups: Callable[[], Sequence[MachineGroup]]) -> None:
    """Delete every machine object of the Worker.

    While machines exist, their classes and Secrets are kept up to date: deleting a machine needs
    valid credentials. `groups` is called only then. Raises RequeueAfter while it waits;
    ActuatorError if a machine failed, or one object takes more than 5 minutes.
    """
    namespace = worker.metadata.namespace
    found = objects.look(ctx.client, namespace)
    if found.need_a_provider:
        wanted = groups()
        apply_classes(ctx.client, namespace, wanted)
        _wait_until_acquired(ctx, worker, wanted, found)
    objects.label_for_force_deletion(ctx.client, found.machines)
    for deployment in found.deployments:
        if deployment.metadata.deletion_timestamp is not None:
            refuse_failed(deployment)
    unwanted = (_DEPLOYMENTS, _CLASSES, _SECRETS)
    seedobjects.delete(ctx.client, unwanted, namespace)
    seedobjects.check_deleted(
        ctx, [_MACHINES, _SETS, *unwanted], namespace, patience=objects.WAIT_SECONDS
    )


def require_credentials(
    ctx: Context, worker: Worker, groups: Iterable[MachineGroup]
) -> bool | None:
    """Whether the machine-controller-manager has its finalizer on the Worker's own Secret.

    None if no group uses the Secret. Raises ConfigurationError if a group uses it and it does not
    exist.
    """
    if not any(group.credentials == worker.spec.secret_ref for group in groups):
        return None
    held = _is_held(ctx, worker)
    if held is None:
        reference = worker.spec.secret_ref
        raise ConfigurationError(
            f"Worker {worker.key}: spec.secretRef: Secret {reference.namespace}/{reference.name} "
            "not found; restore it, or correct the credentials of the Shoot"
        )
    return held


def wait_until_released(ctx: Context, worker: Worker) -> None:
    """Return when the machine-controller-manager has released the Worker's own Secret.

    Raises ActuatorError if it has not 10 minutes after the Worker's deletionTimestamp: 5 for the
    machines, 5 for the Secret.
    """
    reference = worker.spec.secret_ref
    if not _is_held(ctx, worker):
        return
    where = f"Secret {reference.namespace}/{reference.name}"
    if _seconds_since(ctx, worker.metadata) > 2 * objects.WAIT_SECONDS:
        raise ActuatorError(
            f"{where} still has the finalizer of {objects.MANAGER}; check that it runs",
            codes=[ErrorCode.ERR_CLEANUP_CLUSTER_RESOURCES],
        )
    raise objects.waiting_for(f"{objects.MANAGER} to remove its finalizer from {where}")


def _wait_until_acquired(
    ctx: Context, worker: Worker, groups: Iterable[MachineGroup], found: objects.MachineObjects
) -> None:
    """Wait until the controller knows the classes; deleting them earlier would lose machines."""
    if any(c.metadata.deletion_timestamp is not None for c in found.classes):
        return
    if require_credentials(ctx, worker, groups) is not False:
        return
    if _seconds_since(ctx, worker.metadata) > objects.WAIT_SECONDS:
        raise ActuatorError(
            f"{objects.MANAGER} has not added its finalizer to the Secret of Worker "
            f"{worker.key}; check that it runs",
            codes=[ErrorCode.ERR_CLEANUP_CLUSTER_RESOURCES],
        )
    raise objects.waiting_for(f"{objects.MANAGER} to observe the credentials")


def _is_held(ctx: Context, worker: Worker) -> bool | None:
    """Whether the manager has a finalizer on the Worker's Secret; None without a Secret."""
    reference = worker.spec.secret_ref
    secret = find(ctx.client, SECRETS, reference.name, reference.namespace)
    if secret is None:
        return None
    return not _FINALIZERS.isdisjoint(decode(ObjectMeta, secret["metadata"]).finalizers)


def _seconds_since(ctx: Context, meta: ObjectMeta) -> float:
    """Return the seconds since the deletion was requested; 0 if it was not."""
    if meta.deletion_timestamp is None:
        return 0.0
    return (ctx.clock.now() - parse_time(meta.deletion_timestamp)).total_seconds()
