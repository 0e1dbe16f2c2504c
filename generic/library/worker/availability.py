"""Conditions of completion after a rollout: all machines exist and are updated, none is extra.

Failed machines raise errors with the machine-controller's message, except preserved machines, which
are kept for inspection. A machine-controller-manager that makes no progress is restarted (Gardener
extension library, `worker/genericactuator`).
"""

from collections.abc import Sequence
from datetime import timedelta

from actuator.cluster import Cluster
from actuator.codec import decode
from actuator.errors import ActuatorError
from actuator.interface import Context
from actuator.meta import ObjectMeta, parse_time
from generic.kube.clock import trusted_now
from generic.library.machines import (
    DEPLOYMENT_NAME,
    MCM_FINALIZER,
    Machine,
    MachineDeployment,
    MachineSet,
)
from generic.library.worker import objects
from generic.library.worker.group import MachineGroup
from generic.library.worker.inplace import missing_in_place

_STUCK = timedelta(minutes=2)
_FAILED = "Failed"
_HEALTHY = {
    "Available": "True",
    "Progressing": "True",
    "ReplicaFailure": "False",
    "Frozen": "False",
}
"""Conditions of a healthy machine deployment (gardener, `CheckMachineDeployment`)."""


def check_available(
    ctx: Context, cluster: Cluster, groups: Sequence[MachineGroup], found: objects.MachineObjects
) -> None:
    """Return when every group has the right number of machines of the right class.

    Raises RequeueAfter while it waits, ActuatorError if machines failed.
    """
    wanted = {group.name for group in groups}
    deployments = [d for d in found.deployments if d.metadata.name in wanted]
    for deployment in deployments:
        refuse_failed(deployment, _preserved(deployment, found.machines))
    if cluster.hibernation_enabled:
        awake = sum(deployment.status.replicas for deployment in deployments)
        if awake:
            raise objects.waiting_for(f"{awake} machines to hibernate")
        return
    waiting = [f"{g.name}: {missing}" for g in groups if (missing := _missing(g, found))]
    if waiting:
        stuck = [g.name for g in groups if is_stuck(ctx, g, found)]
        if stuck:
            _restart_manager(ctx, deployments[0].metadata.namespace, stuck)
        raise objects.waiting_for(f"machines: {'; '.join(waiting)}")


def refuse_failed(deployment: MachineDeployment, tolerated: Sequence[str] = ()) -> None:
    """Raise ActuatorError naming the failed machines that are not `tolerated`."""
    failed = [m for m in deployment.status.failed_machines if m.name not in tolerated]
    if failed:
        said = "; ".join(f"{m.name}: {m.last_operation.description}" for m in failed)
        raise ActuatorError(
            f"MachineDeployment {deployment.metadata.name} has failed machines: {said}"
        )


def is_stuck(ctx: Context, group: MachineGroup, found: objects.MachineObjects) -> bool:
    """Whether the machine-controller-manager has not created a set for the group in time.

    Deployment and class are older than 2 minutes, the deployment has its finalizer, and there is
    no machine set of that class.
    """
    deployment = found.deployment(group.name)
    classes = [c for c in found.classes if c.metadata.name == group.class_name]
    if deployment is None or not classes or _set_of(group, found.sets) is not None:
        return False
    known = MCM_FINALIZER in deployment.metadata.finalizers
    return known and all(_is_old(ctx, obj.metadata) for obj in (deployment, *classes))


def _missing(group: MachineGroup, found: objects.MachineObjects) -> str:
    """Return the open condition of the group's deployment; "" when it is done."""
    deployment = found.deployment(group.name)
    if deployment is None:
        return "its MachineDeployment was deleted"
    status = deployment.status
    desired = deployment.spec.replicas
    preserved = len(_preserved(deployment, found.machines))
    if status.observed_generation < deployment.metadata.generation:
        return f"{objects.MANAGER} has not observed the change yet"
    if _set_of(group, found.sets) is None:
        return f"{objects.MANAGER} has not created the new machine set yet"
    if status.available_replicas + preserved < desired:
        return f"{status.available_replicas} of {desired} available"
    if status.unavailable_replicas > preserved:
        return f"{status.unavailable_replicas} pending"
    if group.is_manual:
        if missing := missing_in_place(group, deployment, found):
            return missing
    elif status.updated_replicas < status.replicas:
        return f"{status.replicas - status.updated_replicas} old machines to replace"
    return "" if preserved else _unhealthy(deployment)


def _unhealthy(deployment: MachineDeployment) -> str:
    """Return its unhealthy condition, or "". Not for preserved machines, which cause one."""
    for condition in deployment.status.conditions:
        expected = _HEALTHY.get(condition.type)
        if expected is not None and condition.status != expected:
            return f"{condition.type} is {condition.status} ({condition.message})"
    return ""


def _preserved(deployment: MachineDeployment, machines: Sequence[Machine]) -> list[str]:
    return [
        machine.metadata.name
        for machine in machines
        if machine.metadata.labels.get(DEPLOYMENT_NAME) == deployment.metadata.name
        and machine.status.current_status.phase == _FAILED
        and machine.status.current_status.preserve_expiry_time is not None
    ]


def _set_of(group: MachineGroup, sets: Sequence[MachineSet]) -> MachineSet | None:
    for set_ in sets:
        same = set_.spec.template.spec.class_.name == group.class_name
        if same and set_.metadata.labels.get(DEPLOYMENT_NAME) == group.name:
            return set_
    return None


def _is_old(ctx: Context, meta: ObjectMeta) -> bool:
    since = meta.creation_timestamp
    now = trusted_now(ctx.clock)
    return since is not None and now is not None and now - parse_time(since) > _STUCK


def _restart_manager(ctx: Context, namespace: str, stuck: Sequence[str]) -> None:
    """Delete its pods, unless they are too young to have processed the group."""
    found = ctx.client.list(objects.PODS, namespace, label_selector=objects.MANAGER_PODS)
    metas = [decode(ObjectMeta, pod["metadata"]) for pod in found]
    old = [meta for meta in metas if _is_old(ctx, meta)]
    if old:
        said = f"{objects.MANAGER} created no machine set for {', '.join(stuck)}; restarting it"
        ctx.event("MachineControllerManagerStuck", said, warning=True)
        objects.delete_all(ctx.client, objects.PODS, old)
