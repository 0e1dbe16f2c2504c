"""LocalNetwork: the pod network of a shoot, requested by a Network.

In the shoot: a DaemonSet and its configuration, deployed by a ManagedResource. Outside: a
reservation of the shoot's address ranges, created first and released last, which may remain after a
force deletion.
"""

from collections.abc import Iterable, Iterator
from ipaddress import IPv4Network, IPv6Network, ip_network

from actuator import Cluster, Context, ExternalResource, FieldProblem, Raw
from actuator.v1alpha1 import IPFamily, Network, NetworkSpec
from extensions.local import shoot
from extensions.local.config import NetworkConfig
from extensions.local.holding import hold, recorded, release
from extensions.local.outside import Outside
from generic.library import load_images, manifest
from generic.library.managedresources import ManagedResourceActuator

RESERVATION = "Local::AddressReservation"
_NAME = "local-net"
Range = IPv4Network | IPv6Network


class LocalNetwork(ManagedResourceActuator[Network, NetworkConfig]):
    """A DaemonSet in the shoot, a reservation outside."""

    managed_name = "extension-networking-local"
    origin = shoot.ORIGIN

    def __init__(self, outside: Outside) -> None:
        self._outside = outside
        self._images = load_images(__file__)

    def validate(
        self, ctx: Context[NetworkConfig], obj: Network, cluster: Cluster
    ) -> Iterable[FieldProblem]:
        """Yield the problems of the ranges and the families."""
        yield from _problems(obj.spec)

    def reconcile(self, ctx: Context[NetworkConfig], obj: Network, cluster: Cluster) -> None:
        """Reserve the ranges, and deploy the network to the shoot without waiting for it."""
        ranges = _ranges(obj.spec)
        hold(ctx, self._outside, obj, cluster, type=RESERVATION, properties=ranges)
        super().reconcile(ctx, obj, cluster)
        obj.status.ip_families = _families(obj.spec)

    def manifests(self, ctx: Context[NetworkConfig], obj: Network, cluster: Cluster) -> list[Raw]:
        """Return the program of each node, and its configuration."""
        image = self._images.references(cluster, _NAME, in_shoot=True)[_NAME]
        volume = {"configMap": {"name": _NAME}}
        data = {**_ranges(obj.spec), "mtu": str(ctx.config.mtu)}
        return [
            manifest("v1", "ConfigMap", _NAME, shoot.NAMESPACE, data=data),
            shoot.daemon_set(_NAME, image, node_selector={}, mounts={"/etc/local-net": volume}),
        ]

    def delete(self, ctx: Context[NetworkConfig], obj: Network, cluster: Cluster) -> None:
        """Remove the network from the shoot, and release its ranges."""
        super().delete(ctx, obj, cluster)
        release(ctx, self._outside, obj, cluster)

    def external_resources(self, obj: Network) -> Iterable[ExternalResource]:
        """Return the reservation."""
        return recorded(obj, RESERVATION)


def _ranges(spec: NetworkSpec) -> Raw:
    return {"podCIDR": spec.pod_cidr, "serviceCIDR": spec.service_cidr}


def _families(spec: NetworkSpec) -> list[str]:
    """Return the requested families; IPv4 by default."""
    return list(spec.ip_families) or [IPFamily.IPV4]


def _problems(spec: NetworkSpec) -> Iterator[FieldProblem]:
    families = _families(spec)
    for other in sorted(set(families) - set(IPFamily)):
        yield FieldProblem(field="spec.ipFamilies", detail=f"remove {other!r}: not IPv4 or IPv6")
    if len(set(families)) < len(families):
        yield FieldProblem(field="spec.ipFamilies", detail="a family is a duplicate; keep one")
    yield from _range_problems("spec.podCIDR", spec.pod_cidr, families)
    yield from _range_problems("spec.serviceCIDR", spec.service_cidr, families)
    pods = _parsed(spec.pod_cidr)
    services = _parsed(spec.service_cidr)
    if pods and services and pods.version == services.version and pods.overlaps(services):
        yield FieldProblem(
            field="spec.serviceCIDR",
            detail=f"{services} overlaps spec.podCIDR {pods}; choose ranges apart",
        )


def _range_problems(field: str, text: str, families: list[str]) -> Iterator[FieldProblem]:
    network = _parsed(text)
    if network is None:
        detail = "write its first address and a prefix length, like 100.64.0.0/13"
        yield FieldProblem(field=field, detail=f"{text!r} is no range; {detail}")
    elif f"IPv{network.version}" not in families:
        detail = f"{network} is not of {' or '.join(families)}; change it, or spec.ipFamilies"
        yield FieldProblem(field=field, detail=detail)


def _parsed(text: str) -> Range | None:
    try:
        return ip_network(text)
    except ValueError:
        return None
