"""What the tests of the AWS sample call it with."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import attrs

from actuator import SeedObjects
from actuator.codec import decode, encode
from actuator.interface import Client
from actuator.meta import Raw
from actuator.v1alpha1 import ControlPlane, Infrastructure
from extensions.aws.config import API_VERSION
from generic.clock import SystemClock
from generic.force_delete import delete_seed_objects

LOG = logging.LoggerAdapter(logging.getLogger("tests.aws"))
REGION = "eu-west-1"
NETWORKS: Raw = {
    "vpc": {"cidr": "10.250.0.0/16"},
    "zones": [
        {
            "name": "eu-west-1a",
            "workers": "10.250.0.0/19",
            "public": "10.250.32.0/20",
            "internal": "10.250.48.0/20",
        }
    ],
}


def provider_config(networks: Raw = NETWORKS) -> Raw:
    return {"apiVersion": API_VERSION, "kind": "InfrastructureConfig", "networks": networks}


def infrastructure(namespace: str, **spec: Any) -> Infrastructure:
    return decode(Infrastructure, _object("Infrastructure", namespace, spec))


def control_plane(namespace: str, **spec: Any) -> ControlPlane:
    return decode(ControlPlane, _object("ControlPlane", namespace, spec))


def _object(kind: str, namespace: str, spec: Raw) -> Raw:
    given: Raw = {"type": "aws", "region": REGION}
    given["secretRef"] = {"name": "cloudprovider", "namespace": namespace}
    if kind == "Infrastructure":
        given["providerConfig"] = provider_config()
    return {
        "apiVersion": "extensions.gardener.cloud/v1alpha1",
        "kind": kind,
        "metadata": {"name": "shoot", "namespace": namespace},
        "spec": given | spec,
    }


@attrs.define
class Call:
    """The Context of one call: the real client; what was saved is kept to look at."""

    client: Client
    namespace: str
    log: Any = LOG
    clock: Any = attrs.field(factory=SystemClock)
    deadline: float = float("inf")
    saved: list[Raw] = attrs.field(factory=list)
    stripped: list[str] = attrs.field(factory=list)
    on_check: Callable[[], None] = lambda: None
    on_save: Callable[[Raw], None] = lambda status: None

    def check(self) -> None:
        self.on_check()

    def remaining(self) -> float:
        return self.deadline - self.clock.monotonic()

    def event(self, reason: str, message: str, *, warning: bool = False) -> None:
        self.log.info("%s: %s", reason, message)

    def save(self, obj: Any) -> None:
        status = encode(obj.status)
        self.saved.append(status)
        self.on_save(status)

    def delete_seed_objects(self, groups: Any) -> None:
        wanted: list[SeedObjects] = list(groups)
        delete_seed_objects(
            self.client, self.namespace, wanted, lambda one: self.stripped.append(one.finalizer)
        )
