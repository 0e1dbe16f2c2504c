"""Nodes: the simulated nodes of one shoot, with their pods.

Each Machine in the seed has a Node in the shoot that reports what gardenlet waits for: the
checksum of the node agent's script, a Ready condition, an address; a Lease is its heartbeat. Each
pod is bound to a node and becomes Ready; no container runs. A port on loopback answers the
port-forward with which gardenlet checks the VPN: it accepts the upgrade and carries no data. Not
here: the machines, which the simulated machine-controller-manager makes
(`generic.testing.machinecontroller`).
"""

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from math import inf

from attrs import field, frozen

from actuator.errors import Conflict, NotFound
from actuator.interface import SECRETS, Client, Clock, Resource
from actuator.meta import Raw, conditions_in, format_time, value_at
from generic.kube.client import HttpClient
from generic.library.machines import MACHINES
from generic.library.manifests import manifest
from generic.manager.leaderelection import LEASES, micro_time
from generic.testing.landscape.caches import PODS
from generic.testing.landscape.pods import ContainerState, has_ended, status
from generic.testing.landscape.podwrites import bind, delete_now

NODES = Resource("v1", "nodes", namespaced=False)
LEASE_SECONDS = 40
_CONDITIONS = {"Ready": "True"} | dict.fromkeys(
    ("MemoryPressure", "DiskPressure", "PIDPressure"), "False"
)
_SCRIPT_IN = "worker.gardener.cloud/gardener-node-agent-secret-name"
_CHECKSUM = "checksum/cloud-config-data"
_SCRIPT_CHECKSUM = "checksum/data-script"
_NODE = "node"
"""The label of a Machine with the name of its Node."""


@frozen
class ShootNodes:
    """The nodes of the shoot with the machines of `namespace`; each `poll` is one round of work."""

    seed: Client
    namespace: str
    shoot: Callable[[], HttpClient | None]
    """Return a client for the shoot's administrator, or None before its API server runs."""
    kubelet_port: int
    version: str
    """The version of the kubelets, such as "v1.36.3"."""
    clock: Clock
    renewed: dict[str, float] = field(factory=dict)
    """When the Lease of each node was renewed, in monotonic seconds."""

    def poll(self) -> None:
        """Do one round of work. Raises ApiError."""
        shoot = self.shoot()
        if shoot is None:
            return
        listed = self.seed.list(MACHINES, self.namespace)
        machines = [obj for obj in listed if not obj["metadata"].get("deletionTimestamp")]
        nodes = {obj["metadata"]["name"]: obj for obj in shoot.list(NODES)}
        for machine in machines:
            self._serve(shoot, machine, nodes.get(machine["metadata"]["name"]))
        for name in nodes.keys() - {obj["metadata"]["name"] for obj in listed}:
            with suppress(NotFound):
                shoot.delete(NODES, name)
        self._serve_pods(shoot, [machine["metadata"]["name"] for machine in machines])

    def _serve(self, shoot: HttpClient, machine: Raw, node: Raw | None) -> None:
        name = machine["metadata"]["name"]
        template = (machine["spec"].get("nodeTemplate") or {}).get("metadata") or {}
        labels = {**(template.get("labels") or {}), "kubernetes.io/hostname": name}
        checksum = _checksum(shoot, labels.get(_SCRIPT_IN, ""))
        annotations = {**(template.get("annotations") or {}), _CHECKSUM: checksum}
        wanted = {"labels": labels, "annotations": annotations}
        if node is None:
            meta = {"name": name, **wanted}
            spec = {"providerID": f"simulated:///{name}"}
            made = {"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": spec}
            node = shoot.create(NODES, made)
        elif not _has(node["metadata"], wanted):
            shoot.patch(NODES, name, "", {"metadata": wanted})
        if not is_ready(node):
            ready = node_status(self.kubelet_port, self.version, format_time(self.clock.now()))
            shoot.patch(NODES, name, "", {"status": ready}, subresource="status")
        self._renew_lease(shoot, name)
        if (machine["metadata"].get("labels") or {}).get(_NODE) != name:
            patch = {"metadata": {"labels": {_NODE: name}}}
            self.seed.patch(MACHINES, name, self.namespace, patch)

    def _renew_lease(self, shoot: HttpClient, name: str) -> None:
        """Show that the kubelet is alive (Kubernetes documentation, "Nodes", heartbeats)."""
        now = self.clock.monotonic()
        if now - self.renewed.get(name, -inf) >= LEASE_SECONDS / 4:
            spec = {
                "holderIdentity": name,
                "leaseDurationSeconds": LEASE_SECONDS,
                "renewTime": micro_time(self.clock.now()),
            }
            lease = manifest(LEASES.api_version, "Lease", name, "kube-node-lease", spec=spec)
            shoot.apply(LEASES, lease, field_manager="kubelet")
            self.renewed[name] = now

    def _serve_pods(self, shoot: HttpClient, nodes: list[str]) -> None:
        now = self.clock.now()
        for pod in shoot.list(PODS):
            with suppress(NotFound, Conflict):
                meta = pod["metadata"]
                bound = pod["spec"].get("nodeName")
                if bound and (meta.get("deletionTimestamp") or bound not in nodes):
                    delete_now(shoot, meta)
                elif nodes and not bound and not meta.get("deletionTimestamp"):
                    bind(shoot, meta, nodes[0])
                elif bound and not is_ready(pod) and not has_ended(pod):
                    where = PODS, meta["name"], meta["namespace"]
                    ready = {"status": pod_status(pod, now)}
                    shoot.patch(*where, ready, subresource="status")


def node_status(port: int, version: str, now: str) -> Raw:
    """Return the status of a Node that is Ready and whose kubelet listens at a local port."""
    addresses = [
        {"type": "InternalIP", "address": "127.0.0.1"},
        {"type": "Hostname", "address": "localhost"},
    ]
    info = ("bootID", "machineID", "systemUUID", "kernelVersion", "kubeProxyVersion")
    capacity = {"cpu": "8", "memory": "32Gi", "pods": "110"}
    return {
        "addresses": addresses,
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        "conditions": [
            _condition(type, status, now, reason="Simulated", lastHeartbeatTime=now)
            for type, status in _CONDITIONS.items()
        ],
        "nodeInfo": {
            **dict.fromkeys(info, ""),
            "kubeletVersion": version,
            "architecture": "amd64",
            "operatingSystem": "linux",
            "osImage": "simulated",
            "containerRuntimeVersion": "simulated://1",
        },
        "capacity": capacity,
        "allocatable": capacity,
    }


def pod_status(pod: Raw, now: datetime) -> Raw:
    """Return the status of a pod all of whose containers are ready."""
    running = ContainerState({"running": {"startedAt": format_time(now)}}, ready=True)
    return status(pod, [running] * len(pod["spec"]["containers"]), "", now)


def _checksum(shoot: HttpClient, secret: str) -> str:
    """Return the checksum of the script that the node agent of a real node would have run."""
    try:
        found = shoot.get(SECRETS, secret, "kube-system") if secret else {"metadata": {}}
    except NotFound:
        return ""
    annotations = found["metadata"].get("annotations") or {}
    return str(annotations.get(_SCRIPT_CHECKSUM, ""))


def _has(meta: Raw, wanted: Raw) -> bool:
    """Whether the metadata has all wanted labels and annotations."""
    return all(value.items() <= (meta.get(key) or {}).items() for key, value in wanted.items())


def is_ready(obj: Raw) -> bool:
    """Whether a Node or a pod is Ready; without heartbeats, controllers change that."""
    by_type = conditions_in(obj.get("status"))
    return bool(value_at(by_type, "Ready", "status") == "True")


def _condition(type: str, status: str, now: str, **more: str) -> Raw:
    return {"type": type, "status": status, "lastTransitionTime": now, **more}
