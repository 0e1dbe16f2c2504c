"""Operators: the simulated status of controllers that gardenlet waits for and that do not run.

| controller | simulated |
|---|---|
| etcd-druid | each Etcd is ready, each copy of backups has succeeded; no etcd runs for the status |
| operators of Prometheus and Alertmanager | each object is available; no program runs |
| a cloud's load balancers | each Service has an address of TEST-NET-1, which nothing reaches |

The functions of the table are pure: they return the status that an object should have, or None if
it has it. Not here: pods (`kubelet`), and the nodes of a shoot (`nodes`).
"""

from collections.abc import Callable, Mapping
from contextlib import suppress

from actuator.errors import Invalid, NotFound
from actuator.interface import Client, Clock, Resource
from actuator.meta import Raw, format_time
from generic.controller.predicates import OPERATION

ADDRESS = "192.0.2.10"
"""The address of every load balancer (RFC 5737)."""
_REASON = "Simulated"
_ETCD_CONDITIONS = ("Ready", "AllMembersReady", "AllMembersUpdated", "BackupReady")
_MONITORING = "monitoring.coreos.com/v1"
_DRUID = "druid.gardener.cloud/v1alpha1"


def etcd(obj: Raw, now: str) -> Raw | None:
    """Return the status of an Etcd all of whose members are ready."""
    status = obj.get("status") or {}
    generation = obj["metadata"]["generation"]
    if status.get("observedGeneration") == generation and status.get("ready"):
        return None
    replicas = obj["spec"].get("replicas", 1)
    counts = ("replicas", "currentReplicas", "readyReplicas", "updatedReplicas")
    succeeded = {"type": "Reconcile", "state": "Succeeded", "description": _REASON}
    return {
        **dict.fromkeys(counts, replicas),
        "observedGeneration": generation,
        "ready": True,
        "lastErrors": None,
        "lastOperation": {**succeeded, "runID": _REASON, "lastUpdateTime": now},
        "conditions": _conditions(now, _ETCD_CONDITIONS, lastUpdateTime=now),
    }


def copied_backups(obj: Raw, now: str) -> Raw | None:
    """Return the status of an EtcdCopyBackupsTask that has succeeded."""
    if (obj.get("status") or {}).get("conditions"):
        return None
    conditions = _conditions(now, ("Succeeded",), lastUpdateTime=now)
    return {"observedGeneration": obj["metadata"]["generation"], "conditions": conditions}


def monitoring(obj: Raw, now: str) -> Raw | None:
    """Return the status of an available Prometheus or Alertmanager."""
    generation = obj["metadata"]["generation"]
    known = (obj.get("status") or {}).get("conditions") or []
    if known and all(item.get("observedGeneration") == generation for item in known):
        return None
    replicas = obj["spec"].get("replicas", 1)
    counts = dict.fromkeys(("replicas", "updatedReplicas", "availableReplicas"), replicas)
    conditions = _conditions(now, ("Available", "Reconciled"), observedGeneration=generation)
    return {**counts, "unavailableReplicas": 0, "paused": False, "conditions": conditions}


def load_balancer(obj: Raw, _now: str) -> Raw | None:
    """Return the status of a Service that has an address; None also for other types."""
    known = ((obj.get("status") or {}).get("loadBalancer") or {}).get("ingress")
    if obj["spec"].get("type") != "LoadBalancer" or known:
        return None
    return {"loadBalancer": {"ingress": [{"ip": ADDRESS}]}}


Status = Callable[[Raw, str], Raw | None]
SIMULATED: Mapping[Resource, Status] = {
    Resource(_DRUID, "etcds"): etcd,
    Resource(_DRUID, "etcdcopybackupstasks"): copied_backups,
    Resource(_MONITORING, "prometheuses"): monitoring,
    Resource(_MONITORING, "alertmanagers"): monitoring,
    Resource("v1", "services"): load_balancer,
}


def serve_operators(client: Client, clock: Clock) -> None:
    """Do one round of work on the objects of all SIMULATED kinds of a seed. Raises ApiError.

    `client` needs an administrator's rights. Kinds whose CRD is absent are skipped.
    """
    for resource, status in SIMULATED.items():
        with suppress(NotFound):  # not served yet
            for obj in client.list(resource):
                with suppress(NotFound, Invalid):  # it was deleted or changed meanwhile
                    _serve(client, resource, obj, status(obj, format_time(clock.now())))


def _serve(client: Client, resource: Resource, obj: Raw, wanted: Raw | None) -> None:
    meta = obj["metadata"]
    where = resource, meta["name"], meta["namespace"]
    if meta.get("deletionTimestamp"):
        if resource.group and meta.get("finalizers"):  # those of the simulated controller
            client.patch(*where, {"metadata": {"finalizers": None}})
        return
    if wanted is not None:
        client.patch(*where, {"status": wanted}, subresource="status")
    if resource.group and OPERATION in (meta.get("annotations") or {}):
        client.patch(*where, {"metadata": {"annotations": {OPERATION: None}}})


def _conditions(now: str, types: tuple[str, ...], **more: object) -> list[Raw]:
    common = {"status": "True", "reason": _REASON, "message": "", "lastTransitionTime": now}
    return [{"type": type, **common, **more} for type in types]
