"""Deletions of every outcome with one manager and an embedded cluster.

Each object is named after its outcome. The faults are in the actuator, in the watch (one 410), or
manual (a finalizer removed externally); the manager itself is not modified.
"""

import threading
import time
from collections.abc import Callable, Iterable

from actuator import Actuator, Cluster, Context, ExternalResource, RequeueAfter, SeedObjects
from actuator.errors import ActuatorError, ApiError, ErrorCode
from actuator.interface import resource_of
from actuator.v1alpha1 import Infrastructure, Network
from generic.kube.client import HttpClient
from generic.kube.headers import DELETION_BLOCKED
from generic.library.lookup import find
from generic.library.machines import MACHINES, Machine
from generic.library.manifests import manifest_of
from generic.library.webhooks import AdmissionRequest, Denied, validates
from generic.testing.garden import Garden, SeedShoot, not_ready_because
from hack.faults import Effect, Fault, FaultProxy
from hack.objects import infrastructure
from hack.processes import wait

TYPE = "observed"
NAMES = (
    *("deleted", "pending", "failed", "gave-up", "skipped", "foreign", "removed-externally"),
    *("forced", "hangs"),
)
"""The names of the objects."""

_STUCK = ("failed", "gave-up", "removed-externally", "forced", "hangs")
_OTHERS = "example.org/controller"
_LABELS = {"observed": "refused"}
_NAMESPACE = "shoot--observed--one"
_SHOOT = SeedShoot(technical_id=_NAMESPACE, name="one", project="observed", region="eu-1")
_SECOND = SeedShoot(
    technical_id="shoot--observed--two", name="two", project="observed", region="eu-1"
)
_INFRASTRUCTURES = resource_of(Infrastructure.KIND)
_PATIENCE = 90.0

GIVES_UP = {ErrorCode.ERR_INFRA_QUOTA_EXCEEDED: 0}
"""The limit for object "gave-up"."""


class Plays(Actuator[Infrastructure]):
    """Causes the outcome that the object's name states."""

    seed_objects = [SeedObjects(MACHINES, [_OTHERS])]

    def reconcile(self, ctx: Context, obj: Infrastructure, cluster: Cluster) -> None:
        """See Actuator."""

    def delete(self, ctx: Context, obj: Infrastructure, cluster: Cluster) -> None:
        if obj.metadata.name == "pending":
            raise RequeueAfter(2, "Waiting for the network")
        if obj.metadata.name == "failed":
            raise ValueError("a bug of the actuator")
        if obj.metadata.name == "gave-up":
            raise ActuatorError("the quota is used up", codes=[ErrorCode.ERR_INFRA_QUOTA_EXCEEDED])
        if obj.metadata.name in _STUCK:
            raise ActuatorError("access revoked", codes=[ErrorCode.ERR_INFRA_UNAUTHORIZED])

    def force_delete(self, ctx: Context, obj: Infrastructure, cluster: Cluster) -> None:
        if obj.metadata.name == "hangs":
            threading.Event().wait(3600)
        ctx.delete_seed_objects(self.seed_objects)

    def external_resources(self, obj: Infrastructure) -> Iterable[ExternalResource]:
        if obj.metadata.name != "forced":
            yield ExternalResource(type="network", id=obj.metadata.uid)


@validates(Network, object_labels=_LABELS, failure_policy="Fail")
def refuse(_request: AdmissionRequest[Network]) -> None:
    """Deny each Network with the label."""
    raise Denied("no network is wanted here")


def be_denied(admin: HttpClient) -> None:
    """Create Networks until the webhook denies one. Raises TimeoutError."""

    def is_denied() -> bool:
        spec = {"type": TYPE, "podCIDR": "100.96.0.0/11", "serviceCIDR": "100.64.0.0/13"}
        name = f"refused-{time.monotonic_ns()}"
        try:
            admin.create(
                resource_of(Network.KIND),
                manifest_of(Network, name, "default", spec=spec, labels=_LABELS),
            )
        except ApiError as error:
            return "no network is wanted here" in str(error)
        return False

    wait("denied by the webhook", is_denied, _PATIENCE)


def give_up(admin: HttpClient) -> None:
    """Leave a deletion in another shoot that is given up. Raises TimeoutError."""
    garden = Garden(admin)
    garden.create_namespace(_SECOND)
    namespace = _SECOND.technical_id
    garden.deploy(infrastructure(namespace, "gave-up", TYPE))
    wait("ready", lambda: _is_ready(admin, "gave-up", namespace), _PATIENCE)
    garden.delete(Infrastructure.KIND, namespace, "gave-up")
    wait("given up", lambda: _is_blocked(admin, "gave-up", namespace), _PATIENCE)


def delete(admin: HttpClient, way: FaultProxy, say: Callable[[str], None]) -> None:
    """Create and delete the objects; stuck ones remain stuck. Raises TimeoutError."""
    garden = Garden(admin)
    _create(garden)
    wait("all ready", lambda: all(_is_ready(admin, name) for name in NAMES), _PATIENCE)
    say("A 410 in the watch")
    way.inject(Fault(effect=Effect.STREAM_ERROR, status=410, resource="infrastructures.*", times=1))
    _annotate(admin, "failed", "example.org/seen", "yes")
    say("Deletions: one goes, one waits, the others are stuck")
    _annotate(admin, "skipped", "gardener.cloud/operation", "wait-for-state")
    garden.mark_deleted(_SHOOT)
    for name in NAMES:
        garden.delete(Infrastructure.KIND, _NAMESPACE, name)
    wait("deleted", lambda: _is_gone(admin, "deleted"), _PATIENCE)
    wait("all blocked", lambda: all(_is_blocked(admin, name) for name in _STUCK), _PATIENCE)
    say("Somebody takes a finalizer off")
    admin.patch(
        _INFRASTRUCTURES, "removed-externally", _NAMESPACE, {"metadata": {"finalizers": None}}
    )


def force(admin: HttpClient, way: FaultProxy) -> None:
    """Force the deletion; only the externally held object remains. Raises TimeoutError.

    One force deletion cannot be recorded.
    """
    way.inject(
        Fault(
            effect=Effect.ANSWER,
            status=403,
            verbs=["create"],
            resource="forcedeletionrecords.*",
            times=1,
        )
    )
    _annotate(admin, "skipped", "gardener.cloud/operation", None)
    Garden(admin).force(_SHOOT)
    gone = [name for name in NAMES if name != "foreign"]
    wait("all force-deleted", lambda: all(_is_gone(admin, name) for name in gone), _PATIENCE)


def _annotate(admin: HttpClient, name: str, key: str, value: str | None) -> None:
    patch = {"metadata": {"annotations": {key: value}}}
    admin.patch(_INFRASTRUCTURES, name, _NAMESPACE, patch)


def _is_ready(admin: HttpClient, name: str, namespace: str = _NAMESPACE) -> bool:
    return not_ready_because(admin.get(_INFRASTRUCTURES, name, namespace)) is None


def _is_gone(admin: HttpClient, name: str) -> bool:
    return find(admin, _INFRASTRUCTURES, name, _NAMESPACE) is None


def _is_blocked(admin: HttpClient, name: str, namespace: str = _NAMESPACE) -> bool:
    status = admin.get(_INFRASTRUCTURES, name, namespace).get("status") or {}
    return any(
        condition["type"] == DELETION_BLOCKED for condition in status.get("conditions") or []
    )


def _create(garden: Garden) -> None:
    garden.create_namespace(_SHOOT)
    machine = manifest_of(Machine, "machine", _NAMESPACE, spec={"class": {"name": "one"}})
    machine["metadata"]["finalizers"] = [_OTHERS]
    garden.deploy(machine)
    for name in NAMES:
        manifest = infrastructure(_NAMESPACE, name, TYPE)
        if name == "foreign":
            manifest["metadata"]["finalizers"] = [_OTHERS]
        garden.deploy(manifest)
