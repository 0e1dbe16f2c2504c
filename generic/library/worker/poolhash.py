"""Hashes of worker pools. They must equal the hashes of Gardener's Go library.

`pool_hash` is part of a machine class's name, so the machines are replaced or updated when it
changes, and only then (gardener, extensions/pkg/controller/worker/machines.go, `WorkerPoolHash`
and `WorkerPoolHashInPlace`). A different hash would replace every node of a shoot when its
extension is exchanged. `in_place_hash` identifies the state that machines updated in place have
reached. gardenlet computes it too (`CalculateWorkerPoolHashForInPlaceUpdate`) and reports an
update as pending until both are equal.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator
from datetime import UTC

from actuator.cluster import Cluster
from actuator.errors import ConfigurationError
from actuator.meta import Raw, parse_time
from actuator.v1alpha1 import Worker, WorkerPool
from generic.library.worker.quantities import total

MANUAL_IN_PLACE = "ManualInPlaceUpdate"
IN_PLACE = (MANUAL_IN_PLACE, "AutoInPlaceUpdate")
"""Update strategies of pools whose machines are kept during an update."""

_MAJOR_MINOR = re.compile(r"v?(\d+\.\d+)(?:\.\d|$)", re.ASCII)
_DIGITS = 5
_IN_PLACE_DIGITS = 16
_KUBELET = ("kubeReserved", "systemReserved", "evictionHard")
_RESERVED = ("cpu", "memory", "pid", "ephemeralStorage")
_EVICTION = (
    "imageFSAvailable",
    "imageFSInodesFree",
    "memoryAvailable",
    "nodeFSAvailable",
    "nodeFSInodesFree",
)


def pool_field(worker: Worker, pool: WorkerPool, name: str) -> str:
    """Return the Worker and the path of a field of one of its pools, for error messages."""
    indexes = {pool.name: index for index, pool in enumerate(worker.spec.pools)}
    index = indexes.get(pool.name, pool.name)
    return f"Worker {worker.key}: spec.pools[{index}].{name}"


def hash_of(items: Iterable[str], digits: int = _DIGITS) -> str:
    """Return the first hex digits of SHA-256 over the joined hex SHA-256 of each item."""
    return _sha256("".join(_sha256(item) for item in items))[:digits]


def pool_hash(
    worker: Worker,
    pool: WorkerPool,
    cluster: Cluster,
    *,
    additional: Iterable[str] = (),
    additional_in_place: Iterable[str] = (),
) -> str:
    """Return the hash of a pool of the Worker: five hex digits.

    nodeAgentSecretName stands for everything that Gardener configures. The name is constant for
    pools with in-place updates, so their hash adds `in_place_hash`. The provider's own data goes
    into `additional`, or into `additional_in_place` for pools with in-place updates: only data
    that cannot change during a pool's life belongs there. Raises ConfigurationError for a pool
    without nodeAgentSecretName, and as `in_place_hash` does.
    """
    if not pool.node_agent_secret_name:
        path = pool_field(worker, pool, "nodeAgentSecretName")
        raise ConfigurationError(
            f"{path}: expected the name of a Secret, got none; gardenlet sets it, so reconcile "
            "the Shoot"
        )
    if pool.update_strategy not in IN_PLACE:
        return hash_of([pool.node_agent_secret_name, *additional])
    reached = in_place_hash(worker, pool, cluster)
    return hash_of([pool.node_agent_secret_name, reached, *additional_in_place])


def in_place_hash(worker: Worker, pool: WorkerPool, cluster: Cluster) -> str:
    """Return the hash of the inputs of an in-place update: version, image, credentials, kubelet.

    Raises ConfigurationError for an invalid Kubernetes version or kubelet configuration.
    """
    image = pool.machine_image.version if pool.machine_image is not None else ""
    rotations = _rotations(pool, cluster.shoot.get("status") or {})
    items = [_version(worker, pool, cluster), image, *rotations, *_kubelet(worker, pool)]
    return hash_of(items, _IN_PLACE_DIGITS)


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _version(worker: Worker, pool: WorkerPool, cluster: Cluster) -> str:
    version = pool.kubernetes_version or cluster.kubernetes_version
    parts = _MAJOR_MINOR.match(version)
    if parts is None:
        path = pool_field(worker, pool, "kubernetesVersion")
        raise ConfigurationError(
            f"{path}: expected a Kubernetes version such as 1.33.1, got {version!r}; correct it in "
            "the Shoot"
        )
    return parts[1]


def _rotations(pool: WorkerPool, status: Raw) -> Iterator[str]:
    """Yield when each credentials rotation of the shoot was initiated for the pool."""
    rotation = (status.get("credentials") or {}).get("rotation") or {}
    for what in ("certificateAuthorities", "serviceAccountKey"):
        moment = _initiated(pool.name, rotation.get(what) or {})
        if moment:
            yield f"{parse_time(moment).astimezone(UTC):%Y-%m-%d %H:%M:%S} +0000 UTC"


def _initiated(pool: str, rotation: Raw) -> str:
    """Return when a rotation was initiated for the pool: its own time while it is pending."""
    pending = rotation.get("pendingWorkersRollouts") or []
    own = [entry.get("lastInitiationTime") for entry in pending if entry.get("name") == pool]
    return str((own[0] if own else rotation.get("lastInitiationTime")) or "")


def _kubelet(worker: Worker, pool: WorkerPool) -> Iterator[str]:
    """Yield the parts of the kubelet's configuration that drain a node when they change."""
    config = pool.kubelet_config or {}
    given = {name: config[name] for name in _KUBELET if config.get(name) is not None}
    for name, value in given.items():
        if not isinstance(value, dict):
            raise ConfigurationError(
                f"{pool_field(worker, pool, f'kubeletConfig.{name}')}: expected an object, got "
                f"{type(value).__name__}; correct it in the Shoot"
            )
    eviction = given.pop("evictionHard", None)
    if given:
        try:
            yield "-".join(total(item.get(name) for item in given.values()) for name in _RESERVED)
        except (ValueError, ArithmeticError) as error:
            path = pool_field(worker, pool, f"kubeletConfig.{'/'.join(given)}")
            raise ConfigurationError(f"{path}: {error}; correct it in the Shoot") from None
    if eviction is not None:
        yield "-".join(str(eviction.get(name) or "") for name in _EVICTION)
    policy = config.get("cpuManagerPolicy")
    if policy is not None:
        yield str(policy)
