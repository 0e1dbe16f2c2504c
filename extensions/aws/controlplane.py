"""AwsControlPlane: a shoot's control plane resources on AWS, requested by a ControlPlane.

In the cloud: an Elastic IP address. In the shoot's namespace in the seed: the cloud provider's
configuration (a ConfigMap), the cloud controller manager that reads it, and a TargetGroupBinding
that connects the shoot's kube-apiserver to the address. The AWS load balancer controller reconciles
the TargetGroupBinding.

Flow of delete: delete the seed objects → release the address → wait for the TargetGroupBinding. A
failing step does not prevent the others, so the error names the actual cause.

The TargetGroupBinding is created with its controller's finalizer, so that this controller always
removes the targets first. A normal deletion waits for that controller; only force_delete removes
the finalizer. Without such a controller, as in the rehearsal, a deletion blocks.
"""

from collections.abc import Iterable

from actuator import Actuator, Cluster, Context, ExternalResource, read_status, write_status
from actuator.v1alpha1 import ControlPlane
from extensions.aws import seed, tags
from extensions.aws.account import READ_SECRETS, OnAws
from extensions.aws.config import ControlPlaneConfig
from extensions.aws.ec2 import ELASTIC_IP, Marked
from extensions.aws.status import ControlPlaneStatus
from generic.library import load_images, seedobjects


class AwsControlPlane(OnAws, Actuator[ControlPlane, ControlPlaneConfig]):
    """An address, the cloud controller manager with its configuration, a TargetGroupBinding."""

    seed_objects = seed.GROUPS
    permissions = (READ_SECRETS, *map(seedobjects.permission, seed.GROUPS))

    def __init__(self, endpoint_url: str | None = None) -> None:
        super().__init__(endpoint_url)
        self._images = load_images(__file__)

    def reconcile(
        self, ctx: Context[ControlPlaneConfig], obj: ControlPlane, cluster: Cluster
    ) -> None:
        """Create the address and the seed objects; write the address to the status."""
        self._ensure_address(ctx, obj)
        configuration = seed.config_map(obj, ctx.config)
        seedobjects.ensure(ctx.client, seed.CONFIGURATIONS, configuration)
        name = seed.CLOUD_CONTROLLER_MANAGER
        secret = ctx.secret(obj.spec.secret_ref.name, obj.spec.secret_ref.namespace)
        image = self._images.references(cluster, name)[name]
        program = seed.cloud_controller_manager(cluster.replicas(1), image, configuration, secret)
        seedobjects.ensure(ctx.client, seed.PROGRAMS, program)
        seedobjects.ensure(ctx.client, seed.BINDING, seed.binding(obj))

    def delete(self, ctx: Context, obj: ControlPlane, cluster: Cluster) -> None:
        """Delete the seed objects and release the address; already deleted ones are success."""
        seedobjects.delete(ctx.client, seed.GROUPS, obj.metadata.namespace)
        remembered = read_status(ControlPlaneStatus, obj.status)
        if remembered is not None:
            self._release_address(ctx, obj, remembered.allocation_id)
            obj.status.provider_status = obj.status.state = None
        seedobjects.check_deleted(ctx, seed.GROUPS, obj.metadata.namespace)

    def migrate(self, ctx: Context, obj: ControlPlane, cluster: Cluster) -> None:
        """Delete the seed objects; keep the address for the next seed."""
        seedobjects.delete(ctx.client, seed.GROUPS, obj.metadata.namespace)
        seedobjects.check_deleted(ctx, seed.GROUPS, obj.metadata.namespace)

    def external_resources(self, obj: ControlPlane) -> Iterable[ExternalResource]:
        """Return the address, by id, or by tag if the id is unknown."""
        empty = ControlPlaneStatus()  # an unreadable one: all may exist
        remembered = read_status(ControlPlaneStatus, obj.status, unreadable=empty)
        if remembered is None:
            return
        yield ExternalResource(
            type=ELASTIC_IP.name,
            id=remembered.allocation_id,
            tags=tags.address_mark(obj.metadata.namespace),
            region=obj.spec.region,
        )

    def _marked(self, ctx: Context, obj: ControlPlane) -> Marked:
        cloud = self._open(ctx, obj, obj.spec.region)
        return Marked(cloud, tags.address_mark(obj.metadata.namespace))

    def _ensure_address(self, ctx: Context, obj: ControlPlane) -> None:
        """Allocate an address, which stays the same if its load balancer is replaced."""
        marked = self._marked(ctx, obj)
        address = marked.only(ELASTIC_IP)
        if address is None:
            write_status(obj.status, ControlPlaneStatus())
            ctx.save(obj)  # from now on an address may exist outside
            name = obj.metadata.namespace
            address = marked.create("allocate_address", ELASTIC_IP, name, Domain="vpc")
        id = str(address["AllocationId"])
        ip = str(address["PublicIp"])
        write_status(obj.status, ControlPlaneStatus(allocation_id=id, public_ip=ip))

    def _release_address(self, ctx: Context, obj: ControlPlane, known_id: str) -> None:
        """Release the address with that id, and every address with the tag."""
        marked = self._marked(ctx, obj)
        for id in dict.fromkeys([known_id, *ELASTIC_IP.ids(marked.find(ELASTIC_IP))]):
            if id:
                marked.cloud.remove("release_address", AllocationId=id)
