"""A kind outside Gardener reports by the condition Ready; all else is the same code."""

from typing import Annotated, ClassVar

import attrs

from actuator import ActuatorError, ErrorCode, RequeueAfter
from actuator.cluster import FORCE_DELETION
from actuator.meta import (
    ClusterNeed,
    ConditionedStatus,
    ForceSource,
    Kind,
    Object,
    Raw,
    ReadyReasons,
    Schema,
)
from generic.testing.seed import install_crds
from tests.support.cluster.harness import Script, Seed, eventually, running


@attrs.frozen(kw_only=True)
class TunnelSpec:
    """The request of a user."""

    type: str = ""
    to: str = ""


@attrs.define(kw_only=True)
class TunnelStatus(ConditionedStatus):
    """The report of its controller."""

    address: str | None = None


@attrs.define(kw_only=True)
class Tunnel(Object):
    """A tunnel to somewhere."""

    KIND: ClassVar[Kind] = Kind(
        name="Tunnel",
        plural="tunnels",
        group="tests.example.org",
        finalizer="tests.example.org/tunnel",
        cluster=ClusterNeed.NEVER,
        skips_failed_shoot=False,
        force_from=ForceSource.OBJECT,
        migratable=False,
        has_operation_annotation=False,
        ready=ReadyReasons(succeeded="Dug", failed="DigFailed", deletion_failed="FillFailed"),
    )

    spec: Annotated[TunnelSpec, Schema(required=True)] = attrs.field(factory=TunnelSpec)
    status: TunnelStatus = attrs.field(factory=TunnelStatus)


def test_ready_tells_the_life_of_an_object_that_has_no_last_operation(
    admin, environment, namespace
):
    install_crds(admin, [Tunnel])
    seed = Seed(admin, namespace, Tunnel, "tunnel")
    script = Script(Tunnel)
    forever = {ErrorCode.ERR_INFRA_UNAUTHORIZED: 0}

    def ready():
        conditions = seed.status().get("conditions") or []
        found: Raw = next((c for c in conditions if c["type"] == "Ready"), {})
        return found.get("status"), found.get("reason")

    def wait(ctx, obj, cluster):
        obj.status.address = "10.0.0.1"
        raise RequeueAfter(0.1, "Waiting for the shovel")

    def lose(ctx, obj, cluster):
        raise ActuatorError("the tunnel caved in", reason="Lost")

    def deny(ctx, obj, cluster):
        raise ActuatorError("denied", codes=[ErrorCode.ERR_INFRA_UNAUTHORIZED])

    with running(environment, admin, namespace, script, give_up_after=forever):
        script.on = {"reconcile": wait}
        seed.create(tunnel(namespace))
        eventually(lambda: ready() == ("False", "Reconciling"))
        script.on = {}
        eventually(lambda: ready() == ("True", "Dug"))
        assert seed.is_ready()
        assert seed.status()["address"] == "10.0.0.1"
        script.on = {"reconcile": lose}
        seed.patch({"spec": {"to": "there"}})
        eventually(lambda: ready() == ("False", "Lost"))
        script.on = {}
        eventually(lambda: ready() == ("True", "Dug"))
        script.on = {"delete": deny}
        seed.delete()
        eventually(lambda: ready() == ("False", "DeletionFailedPermanently"))
        seed.annotate(**{FORCE_DELETION: "true"})
        eventually(seed.is_gone)
    assert script.operations("tunnel")[-1] == "force_delete"


def tunnel(namespace):
    return {
        "apiVersion": Tunnel.KIND.api_version,
        "kind": "Tunnel",
        "metadata": {"name": "tunnel", "namespace": namespace},
        "spec": {"type": namespace, "to": "here"},
    }
