"""Hashes of pools, which have to be the same as Gardener's own.

`pool_hash` is in a machine class's name: machines are replaced when, and only when, it changes
(extension library, `worker.WorkerPoolHash`); another one would replace every node of a shoot whose
extension is exchanged. `in_place_hash` is what a pool has reached whose machines are updated in
place; gardenlet compares it with its own (`CalculateWorkerPoolHashForInPlaceUpdate`), and calls an
update pending until they are equal.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from datetime import UTC

from actuator.cluster import Cluster
from actuator.errors import ConfigurationError
from actuator.meta import Raw, parse_time
from actuator.v1alpha1 import WorkerPool
from generic.worker.quantities import total

__all__ = ["hash_of", "in_place_hash", "pool_hash"]

_MAJOR_MINOR = re.compile(r"v?(\d+\.\d+)(?:\.\d|$)", re.ASCII)
_DIGITS, _IN_PLACE_DIGITS = 5, 16
_KUBELET = ("kubeReserved", "systemReserved", "evictionHard")
_RESERVED = ("cpu", "memory", "pid", "ephemeralStorage")
_EVICTION = (
    "imageFSAvailable",
    "imageFSInodesFree",
    "memoryAvailable",
    "nodeFSAvailable",
    "nodeFSInodesFree",
)


def hash_of(items: Iterable[str], digits: int = _DIGITS) -> str:
    """First hex digits of SHA-256 over the SHA-256 of each item, hex, one after the other."""
    return _sha256("".join(_sha256(item) for item in items))[:digits]


def pool_hash(
    pool: WorkerPool,
    cluster: Cluster,
    *,
    additional: Iterable[str] = (),
    additional_with_node_agent: Iterable[str] = (),
) -> str:
    """The hash of a pool. Raises ConfigurationError for a Kubernetes version that is none.

    With a nodeAgentSecretName that name stands for everything of Gardener's, so only
    `additional_with_node_agent`, what is the provider's, goes in beside it; without one it is
    what makes up a machine, and `additional`.
    """
    if pool.node_agent_secret_name is not None:
        return hash_of([pool.node_agent_secret_name, *additional_with_node_agent])
    return hash_of([*_machine(pool, cluster), *additional, *_shoot(pool, cluster.shoot)])


def in_place_hash(pool: WorkerPool, cluster: Cluster) -> str:
    """The hash of what an update in place changes: version, image, credentials, kubelet.

    Raises ConfigurationError for a Kubernetes version, or a quantity, that is none.
    """
    image = pool.machine_image.version if pool.machine_image is not None else ""
    rotations = _rotations(pool, cluster.shoot.get("status") or {})
    items = [_version(pool, cluster), image, *rotations, *_kubelet(pool)]
    return hash_of(items, _IN_PLACE_DIGITS)


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _version(pool: WorkerPool, cluster: Cluster) -> str:
    version = pool.kubernetes_version or cluster.kubernetes_version
    parts = _MAJOR_MINOR.match(version)
    if parts is None:
        raise ConfigurationError(f"pool {pool.name}: {version!r} is no Kubernetes version")
    return parts[1]


def _machine(pool: WorkerPool, cluster: Cluster) -> Iterator[str]:
    yield _version(pool, cluster)
    yield pool.machine_type
    image = pool.machine_image
    yield image.name + image.version if image is not None else ""
    if pool.volume is not None:
        yield pool.volume.size
        if pool.volume.type is not None:
            yield pool.volume.type
    if pool.provider_config is not None:
        yield _as_go_writes(pool.provider_config)


def _shoot(pool: WorkerPool, shoot: Raw) -> Iterator[str]:
    spec, status = shoot.get("spec") or {}, shoot.get("status") or {}
    for worker in (spec.get("provider") or {}).get("workers") or []:
        if worker.get("name") == pool.name and worker.get("cri"):
            yield worker["cri"].get("name", "")
    yield from _rotations(pool, status)
    node_local_dns = (spec.get("systemComponents") or {}).get("nodeLocalDNS") or {}
    if node_local_dns.get("enabled"):
        yield "node-local-dns"


def _rotations(pool: WorkerPool, status: Raw) -> Iterator[str]:
    """When the shoot's credentials began to be rotated for the pool."""
    rotation = (status.get("credentials") or {}).get("rotation") or {}
    for what in ("certificateAuthorities", "serviceAccountKey"):
        moment = _initiated(pool.name, rotation.get(what) or {})
        if moment:
            yield f"{parse_time(moment).astimezone(UTC):%Y-%m-%d %H:%M:%S} +0000 UTC"


def _initiated(pool: str, rotation: Raw) -> str:
    """When a rotation began for the pool: its own time where it has yet to follow."""
    pending = rotation.get("pendingWorkersRollouts") or []
    own = [entry.get("lastInitiationTime") for entry in pending if entry.get("name") == pool]
    return str((own[0] if own else rotation.get("lastInitiationTime")) or "")


def _kubelet(pool: WorkerPool) -> Iterator[str]:
    """What of the kubelet's configuration drains a node when it changes."""
    config = pool.kubelet_config or {}
    given = {name: config[name] for name in _KUBELET if config.get(name) is not None}
    parts = {name: _object(pool, name, value) for name, value in given.items()}
    eviction = parts.pop("evictionHard", None)
    if parts:
        try:
            yield "-".join(total(one.get(name) for one in parts.values()) for name in _RESERVED)
        except (ValueError, ArithmeticError) as error:
            raise ConfigurationError(f"pool {pool.name}: kubeletConfig: {error}") from None
    if eviction is not None:
        yield "-".join(str(eviction.get(name) or "") for name in _EVICTION)
    policy = config.get("cpuManagerPolicy")
    if policy is not None:
        yield str(policy)


def _object(pool: WorkerPool, name: str, value: object) -> Raw:
    if not isinstance(value, dict):
        raise ConfigurationError(f"pool {pool.name}: kubeletConfig.{name} is no object")
    return value


def _as_go_writes(config: Raw) -> str:
    """JSON as the API server hands it out: keys sorted, no spaces, and < > & escaped."""
    text = json.dumps(config, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
