"""LocalExposure: access to a self-hosted shoot's API servers, for a SelfHostedShootExposure.

In the namespace: a Service, and an EndpointSlice for each IP family, with the first usable address
of each control plane node. Reachable nodes are reported even if one node has no address.
"""

from collections.abc import Iterable
from ipaddress import ip_address

from actuator import (
    Actuator,
    ActuatorError,
    Cluster,
    Context,
    ErrorCode,
    FieldProblem,
    Raw,
    Resource,
)
from actuator.v1alpha1 import ControlPlaneEndpoint, LoadBalancerIngress, SelfHostedShootExposure
from extensions.local import seed
from generic.library import manifest, seedobjects

SERVICES = Resource("v1", "services")
ENDPOINT_SLICES = Resource("discovery.k8s.io/v1", "endpointslices")
_USABLE = ("ExternalIP", "InternalIP")
"""Types of node addresses, in order of preference (Kubernetes documentation, "Node Status")."""
_PORT_NAME = "kube-apiserver"


class LocalExposure(Actuator[SelfHostedShootExposure]):
    """A Service without selector."""

    seed_objects = (
        seed.group(SelfHostedShootExposure.KIND, SERVICES),
        seed.group(SelfHostedShootExposure.KIND, ENDPOINT_SLICES),
    )
    permissions = tuple(map(seedobjects.permission, seed_objects))

    def validate(
        self, ctx: Context, obj: SelfHostedShootExposure, cluster: Cluster
    ) -> Iterable[FieldProblem]:
        """Yield the problems of the spec."""
        for index, endpoint in enumerate(obj.spec.endpoints):
            for address in _candidates(endpoint):
                if not _is_ip(address):
                    yield FieldProblem(
                        field=f"spec.endpoints[{index}].addresses",
                        detail=f"{address!r} is no IP address",
                    )

    def reconcile(self, ctx: Context, obj: SelfHostedShootExposure, cluster: Cluster) -> None:
        """Point the Service to all nodes, and list their addresses in status.ingress."""
        candidates = {e.node_name: _candidates(e) for e in obj.spec.endpoints}
        addresses = [found[0] for found in candidates.values() if found]
        self._publish(ctx, obj, addresses)
        obj.status.ingress = [LoadBalancerIngress(ip=address) for address in addresses]
        missing = [name for name, found in candidates.items() if not found]
        if missing:
            raise ActuatorError(
                f"Nodes without an address of type {' or '.join(_USABLE)}: {', '.join(missing)}",
                codes=[ErrorCode.ERR_RETRYABLE_CONFIGURATION_PROBLEM],
            )

    def delete(self, ctx: Context, obj: SelfHostedShootExposure, cluster: Cluster) -> None:
        """Delete Service and EndpointSlices."""
        groups = seed.narrowed(self.seed_objects, obj)
        namespace = obj.metadata.namespace
        seedobjects.delete(ctx.client, groups, namespace)
        seedobjects.check_deleted(ctx, groups, namespace, patience=seed.MAX_WAIT_SECONDS)

    def force_delete(self, ctx: Context, obj: SelfHostedShootExposure, cluster: Cluster) -> None:
        """Delete Service and EndpointSlices."""
        ctx.delete_seed_objects(seed.narrowed(self.seed_objects, obj))

    def _publish(self, ctx: Context, obj: SelfHostedShootExposure, addresses: list[str]) -> None:
        families = sorted({f"IPv{ip_address(address).version}" for address in addresses})
        wanted = [_slice(obj, family, addresses) for family in families]
        services, slices = seed.narrowed(self.seed_objects, obj)
        seedobjects.ensure(ctx.client, services, _service(obj))
        seedobjects.ensure_only(ctx.client, slices, wanted, obj.metadata.namespace)


def _candidates(endpoint: ControlPlaneEndpoint) -> list[str]:
    """Return the usable addresses of a node, the preferred one first."""
    return [a.address for type in _USABLE for a in endpoint.addresses if a.type == type]


def _is_ip(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _name(obj: SelfHostedShootExposure) -> str:
    return f"exposure-{obj.metadata.name}"


def _service(obj: SelfHostedShootExposure) -> Raw:
    port = {"name": _PORT_NAME, "port": obj.spec.port, "protocol": "TCP"}
    spec = {"clusterIP": "None", "ports": [port]}
    return manifest("v1", "Service", _name(obj), obj.metadata.namespace, spec=spec)


def _slice(obj: SelfHostedShootExposure, family: str, addresses: list[str]) -> Raw:
    version = family.removeprefix("IPv")
    of_family = [a for a in addresses if str(ip_address(a).version) == version]
    return manifest(
        ENDPOINT_SLICES.api_version,
        "EndpointSlice",
        f"{_name(obj)}-{family.lower()}",
        obj.metadata.namespace,
        {"kubernetes.io/service-name": _name(obj)},
        addressType=family,
        endpoints=[{"addresses": [address]} for address in of_family],
        ports=[{"name": _PORT_NAME, "port": obj.spec.port, "protocol": "TCP"}],
    )
