"""A simulated extension: it serves the kinds that a Shoot needs and no given extension serves.

They create nothing outside, and every operation succeeds. The Worker's machines are those of the
simulated machine-controller-manager. They let an author of one kind see a complete Shoot.
"""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import generic
from actuator import Actuator, Cluster, Context, Provisioned
from actuator.meta import Object, Raw
from actuator.v1alpha1 import (
    BackupBucket,
    BackupEntry,
    ControlPlane,
    DNSRecord,
    Infrastructure,
    Network,
    OperatingSystemConfig,
    Purpose,
    Worker,
)
from generic.library.worker import GenericWorker, MachineGroup, in_zone, pool_hash, user_data

VARIABLE = "LANDSCAPE_SIMULATED"
"""The environment variable with the types, by kind, as JSON."""
TARGET = f"{__name__}:extension"


class DoesNothing(Actuator[Any, Raw]):
    """Succeeds, and creates nothing, for any kind."""

    def __init__(self, of: type[Object]) -> None:
        self.of = of

    def reconcile(self, ctx: Context, obj: Any, cluster: Cluster) -> Any:
        """Do nothing."""

    def delete(self, ctx: Context, obj: Any, cluster: Cluster) -> None:
        """Do nothing."""


class SimulatedOperatingSystem(DoesNothing):
    """An operating system that no machine runs."""

    def reconcile(self, ctx: Context, obj: OperatingSystemConfig, cluster: Cluster) -> Provisioned:
        """Return user data for new machines."""
        is_new = obj.spec.purpose == Purpose.PROVISION
        return Provisioned(user_data=b"#!/bin/sh\n") if is_new else Provisioned()


class SimulatedWorker(GenericWorker):
    """Machine deployments of a provider that does not exist."""

    def machine_deployments(
        self, ctx: Context, worker: Worker, cluster: Cluster
    ) -> Sequence[MachineGroup]:
        """Return one for each zone of each pool."""
        return [*_groups(ctx, worker, cluster)]


def _groups(ctx: Context, worker: Worker, cluster: Cluster) -> Iterable[MachineGroup]:
    for pool in worker.spec.pools:
        for number, _ in enumerate(pool.zones):
            yield in_zone(
                worker,
                pool,
                cluster,
                number,
                hash=pool_hash(worker, pool, cluster),
                provider="Simulated",
                provider_spec={},
                secret_data={"userData": user_data(ctx.client, worker, pool)},
                credentials=worker.spec.secret_ref,
            )


_EMPTY: Sequence[type[Object]] = (
    BackupBucket,
    BackupEntry,
    ControlPlane,
    DNSRecord,
    Infrastructure,
    Network,
)


def simulated(kind: str) -> Actuator[Any]:
    """Return the simulated actuator of a kind. Raises KeyError."""
    actuators: Mapping[str, Actuator[Any]] = {
        "Worker": SimulatedWorker(),
        "OperatingSystemConfig": SimulatedOperatingSystem(OperatingSystemConfig),
        **{cls.KIND.name: DoesNothing(cls) for cls in _EMPTY},
    }
    return actuators[kind]


def extension(manager: generic.Manager) -> None:
    """Add simulated actuators of the kinds that the environment names."""
    for kind, type in json.loads(os.environ[VARIABLE]).items():
        manager.add(simulated(kind), type=type)
