"""Machine state: the state of a Worker for another seed; gardenlet writes it, we read it.

`{"machineDeployments": {name: {"replicas", "machineSets", "machines"}}}` in status.state, plain
or, as in a ShootState, gzipped in `{"state": <base64>}` (gardener, package `shootstate`).
"""

import gzip
import io
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress

import attrs

from actuator.cluster import Cluster
from actuator.codec import decode, decode_json
from actuator.errors import AlreadyExists, ConfigurationError, DecodeError
from actuator.interface import Client, resource_of
from actuator.meta import Base64, KeepsUnknownFields, Raw
from actuator.v1alpha1 import Worker
from generic.library.lookup import find_all
from generic.library.machines import Machine, MachineSet

_KEPT = ("name", "labels", "annotations")
_MAX_PARTS = 200_000
_MAX_BYTES = 16 << 20  # etcd accepts 1.5 MiB per object, and 1:10 is usual for JSON
_REPLACE = "set it to {} to replace all machines"


@attrs.frozen(kw_only=True)
class DeploymentState(KeepsUnknownFields):
    """The state of a machine deployment on its former seed."""

    replicas: int = 0
    machine_sets: list[Raw] = attrs.field(factory=list)
    machines: list[Raw] = attrs.field(factory=list)


@attrs.frozen(kw_only=True)
class _MachineState(KeepsUnknownFields):
    machine_deployments: dict[str, Raw | None] | None = None


def machine_state(worker: Worker, cluster: Cluster) -> Mapping[str, DeploymentState]:
    """Return the state of each machine deployment, by name.

    Raises ConfigurationError for an unreadable state. Also for one without machine sets, if there
    are pools and no hibernation: continuing would replace all machines, as Gardener's library does
    (worker/genericactuator, actuator_restore.go). Only `{}` requests that.
    """
    where = f"Worker {worker.key}: status.state"
    state = worker.status.state
    try:
        found = _read(state or {})
    except (DecodeError, OSError, EOFError, zlib.error, ValueError) as error:
        raise ConfigurationError(
            f"{where}: cannot read the machine state that gardenlet wrote: {error}"
        ) from error
    has_machines = state == {} or any(item.machine_sets for item in found.values())
    if not has_machines and worker.spec.pools and not cluster.hibernation_enabled:
        raise ConfigurationError(
            f"{where}: expected the state of the machines to restore, got none; gardenlet copies "
            "it from the ShootState, so check the ShootState; if the shoot had no machines before "
            "the migration, or to replace all of them, set status.state to {}"
        )
    return found


def _read(state: Raw) -> Mapping[str, DeploymentState]:
    """Return the state, plain or compressed. As in Go, null and nothing are the same everywhere.

    gardenlet compresses a `null` for a seed without machine kinds (`MarshalMachineState`).
    """
    packed = state.get("state")
    if isinstance(packed, str):
        text = _decompressed(packed) if packed else b""
        whole = decode_json(_MachineState, text if text not in (b"", b"null") else b"{}")
    else:
        whole = decode(_MachineState, state)
    return {
        name: decode(
            DeploymentState,
            {key: part for key, part in machine_deployment.items() if part is not None},
        )
        for name, machine_deployment in (whole.machine_deployments or {}).items()
        if machine_deployment is not None
    }


def recreate(client: Client, namespace: str, states: Sequence[DeploymentState]) -> None:
    """Create the missing machine sets and machines; existing ones stay.

    Call it before creating machine deployments: their controller would create new machines.
    """
    sets = [manifest for state in states for manifest in state.machine_sets]
    machines = [manifest for state in states for manifest in state.machines]
    for cls, manifests in ((MachineSet, sets), (Machine, machines)):
        resource = resource_of(cls.KIND)
        kind = {"apiVersion": cls.KIND.api_version, "kind": cls.KIND.name}
        known = {obj["metadata"]["name"] for obj in find_all(client, resource, namespace)}
        for manifest in manifests:
            given = manifest.get("metadata") or {}
            meta = {key: given[key] for key in _KEPT if given.get(key)} | {"namespace": namespace}
            bare = {key: value for key, value in manifest.items() if key != "status"}
            if meta.get("name") not in known:
                with suppress(AlreadyExists):
                    client.create(resource, {**bare, **kind, "metadata": meta})


def _decompressed(packed: str) -> bytes:
    with gzip.open(io.BytesIO(Base64(packed).decode_bytes())) as stream:
        unpacked = stream.read(_MAX_BYTES + 1)
    if len(unpacked) > _MAX_BYTES:
        raise DecodeError(f"larger than 16 MiB decompressed; {_REPLACE}")
    if unpacked.count(b"{") + unpacked.count(b"[") > _MAX_PARTS:
        raise DecodeError(f"more than {_MAX_PARTS} objects; {_REPLACE}")
    return unpacked
