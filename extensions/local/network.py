"""LocalNetwork: the pod network of a shoot, requested by a Network.

In the shoot: a DaemonSet and its configuration, deployed by a ManagedResource. Outside: a
reservation of the shoot's address ranges, created first and released last. A force deletion does
nothing: the resources in the shoot are deleted with the shoot, gardenlet removes the
ManagedResource (Gardener documentation, "Force Deletion"), and the reservation may remain.
"""

from collections.abc import Iterable, Iterator
from ipaddress import IPv4Network, IPv6Network, ip_network

from actuator import Actuator, Cluster, Context, ExternalResource, FieldProblem
from actuator.meta import Raw
from actuator.provider_config import read_config
from actuator.v1alpha1 import IPFamily, Network, NetworkSpec
from extensions.local import shoot
from extensions.local.config import NetworkConfig
from extensions.local.holding import hold, recorded, release
from extensions.local.outside import Outside
from generic.library.imagevector import load_images
from generic.library.managedresources import PERMISSIONS
from generic.library.manifests import manifest

RESERVATION = "Local::AddressReservation"
_MANAGED_NAME = "extension-networking-local"
_NAME = "local-net"
Range = IPv4Network | IPv6Network


class LocalNetwork(Actuator[Network]):
    """A DaemonSet in the shoot, a reservation outside."""

    permissions = PERMISSIONS
    provider_config = NetworkConfig

    def __init__(self, outside: Outside) -> None:
        self._outside = outside
        self._images = load_images(__file__)

    def validate(self, ctx: Context, obj: Network, cluster: Cluster) -> Iterable[FieldProblem]:
        """Yield the problems of the ranges, the families and providerConfig."""
        yield from _problems(obj.spec)
        yield from super().validate(ctx, obj, cluster)

    def reconcile(self, ctx: Context, obj: Network, cluster: Cluster) -> None:
        """Reserve the ranges, and deploy the network to the shoot without waiting for it."""
        spec = obj.spec
        ranges = {"podCIDR": spec.pod_cidr, "serviceCIDR": spec.service_cidr}
        hold(ctx, self._outside, obj, cluster, type=RESERVATION, properties=ranges)
        images = self._images.references(cluster, _NAME, in_shoot=True)
        manifests = _manifests(read_config(NetworkConfig, obj), ranges, images[_NAME])
        shoot.deploy(ctx, obj, _MANAGED_NAME, manifests)
        obj.status.ip_families = _families(spec)

    def delete(self, ctx: Context, obj: Network, cluster: Cluster) -> None:
        """Remove the network from the shoot, and release its ranges."""
        shoot.withdraw(ctx, obj, _MANAGED_NAME)
        release(ctx, self._outside, obj, cluster)

    def migrate(self, ctx: Context, obj: Network, cluster: Cluster) -> None:
        """Keep the network in the shoot, and stop managing it from this seed."""
        shoot.withdraw(ctx, obj, _MANAGED_NAME, keep_objects=True)

    def external_resources(self, obj: Network) -> Iterable[ExternalResource]:
        """Return the reservation."""
        return recorded(obj, RESERVATION)


def _manifests(config: NetworkConfig, ranges: Raw, image: str) -> list[Raw]:
    volume, data = {"configMap": {"name": _NAME}}, {**ranges, "mtu": str(config.mtu)}
    return [
        manifest("v1", "ConfigMap", _NAME, shoot.NAMESPACE, data=data),
        shoot.daemon_set(_NAME, image, node_selector={}, mounts={"/etc/local-net": volume}),
    ]


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
    pods, services = _parsed(spec.pod_cidr), _parsed(spec.service_cidr)
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
