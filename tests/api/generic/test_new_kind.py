"""A new kind is one file of data: this one. Nothing elsewhere knows it, and it does all five."""

from typing import Annotated, ClassVar

import attrs

from actuator.meta import Column, DefaultSpec, DefaultStatus, Kind, Object, Schema
from generic.testing.seed import install_crds
from tests.support.cluster.harness import Script, eventually
from tests.support.objects.builders import cluster


@attrs.frozen(kw_only=True)
class GatewaySpec(DefaultSpec):
    """The request of gardenlet."""

    port: Annotated[int, Schema(required=True, minimum=1)] = 0


@attrs.define(kw_only=True)
class GatewayStatus(DefaultStatus):
    """The report of the extension."""

    address: str | None = None


@attrs.define(kw_only=True)
class Gateway(Object):
    """The gateway of a shoot, which Gardener does not have."""

    KIND: ClassVar[Kind] = Kind(
        name="Gateway",
        plural="gateways",
        group="extensions.gardener.cloud",
        finalizer="extensions.gardener.cloud/gateway",
        columns=(Column("Port", ".spec.port", "integer"),),
    )

    spec: Annotated[GatewaySpec, Schema(required=True)] = attrs.field(factory=GatewaySpec)
    status: GatewayStatus = attrs.field(factory=GatewayStatus)


def gateway(namespace, name):
    return {
        "apiVersion": Gateway.KIND.api_version,
        "kind": "Gateway",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"type": namespace, "port": 80},
    }


def test_a_new_kind_goes_through_all_five_operations(admin, seed, start):
    def reconcile(ctx, obj, cluster):
        obj.status.address = f"10.0.0.1:{obj.spec.port}"

    install_crds(admin, [Gateway])
    looking_at = seed.of(Gateway, "moves")
    script = Script(Gateway, reconcile=reconcile)
    start(script)
    for name in ("moves", "goes", "forced"):
        looking_at.create(gateway(seed.namespace, name))
        eventually(lambda name=name: looking_at.is_ready(name))
        assert looking_at.status(name)["address"] == "10.0.0.1:80"
        assert looking_at.get(name)["metadata"]["finalizers"] == [Gateway.KIND.finalizer]
    looking_at.ask("migrate", "moves")
    eventually(lambda: looking_at.last_operation("moves") == ("Migrate", "Succeeded"))
    eventually(lambda: "finalizers" not in looking_at.get("moves")["metadata"])
    looking_at.ask("restore", "moves")
    eventually(lambda: looking_at.last_operation("moves") == ("Restore", "Succeeded"))
    looking_at.delete("goes")
    eventually(lambda: looking_at.is_gone("goes"))
    looking_at.update_cluster(cluster(seed.namespace, force="true"))
    looking_at.delete("forced")
    eventually(lambda: looking_at.is_gone("forced"))
    assert script.operations("moves") == ["reconcile", "migrate", "restore"]
    assert script.operations("goes") == ["reconcile", "delete"]
    assert script.operations("forced") == ["reconcile", "force_delete"]
