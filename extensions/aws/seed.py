"""The objects of a control plane in the shoot's namespace of the seed; all carry one label."""

import json
from typing import ClassVar

import attrs

from actuator import DefaultStatus, Kind, Object, Raw, Resource, SeedObjects, resource_of
from actuator.v1alpha1 import ControlPlane
from extensions.aws.config import ControlPlaneConfig
from extensions.aws.status import infrastructure_of
from generic.library import deployment_manifest, manifest, manifest_of
from generic.library.controlplane import checksum_of


@attrs.define(kw_only=True)
class TargetGroupBinding(Object):
    """A kind of the AWS load balancer controller, whose chart installs it in a real seed."""

    KIND: ClassVar[Kind] = Kind(
        name="TargetGroupBinding",
        plural="targetgroupbindings",
        group="elbv2.k8s.aws",
        version="v1beta1",
        finalizer="elbv2.k8s.aws/resources",
    )

    spec: Raw = attrs.field(factory=dict)
    status: DefaultStatus = attrs.field(factory=DefaultStatus)


CLOUD_CONTROLLER_MANAGER = "cloud-controller-manager"
CONFIG_MAPS = Resource("v1", "configmaps")
DEPLOYMENTS = Resource("apps/v1", "deployments")
BINDINGS = resource_of(TargetGroupBinding.KIND)
BINDING_FINALIZER = TargetGroupBinding.KIND.finalizer
_SELECTOR = "aws.provider.extensions.gardener.cloud/part-of=controlplane"


def _group(resource: Resource, *finalizers: str) -> SeedObjects:
    return SeedObjects(resource, finalizers, label_selector=_SELECTOR)


PROGRAMS, CONFIGURATIONS, BINDING = GROUPS = (
    _group(DEPLOYMENTS),
    _group(CONFIG_MAPS),
    _group(BINDINGS, BINDING_FINALIZER),
)
"""The objects that this extension creates in a shoot's namespace."""


def config_map(control_plane: ControlPlane, config: ControlPlaneConfig) -> Raw:
    """Return the cloud provider's configuration. Raises ConfigurationError."""
    namespace = control_plane.metadata.namespace
    lines = ["[Global]", f"KubernetesClusterTag={namespace}", f"KubernetesClusterID={namespace}"]
    vpc = infrastructure_of(control_plane).vpc
    if vpc.id:
        lines.append(f"VPC={vpc.id}")
    gates = config.cloud_controller_manager.feature_gates
    data = {
        "cloudprovider.conf": "\n".join([*lines, ""]),
        "featureGates": json.dumps(gates, sort_keys=True),
    }
    return manifest("v1", "ConfigMap", "cloud-provider-config", namespace, data=data)


def cloud_controller_manager(replicas: int, image: str, configuration: Raw, secret: Raw) -> Raw:
    """Return a placeholder; its pods' annotations have the names in Gardener's AWS extension."""
    name = CLOUD_CONTROLLER_MANAGER
    config = configuration["metadata"]
    rolled_by = {
        "checksum/secret-cloudprovider": checksum_of(secret.get("data") or {}),
        f"checksum/configmap-{config['name']}": checksum_of(configuration["data"]),
    }
    return deployment_manifest(
        name, config["namespace"], replicas, {"image": image}, annotations=rolled_by
    )


def binding(control_plane: ControlPlane) -> Raw:
    """Return the TargetGroupBinding of the shoot's kube-apiserver."""
    namespace = control_plane.metadata.namespace
    spec = {
        "targetGroupName": namespace[:32],  # AWS allows no more
        "targetType": "ip",
        "serviceRef": {"name": "kube-apiserver", "port": 443},
    }
    return manifest_of(TargetGroupBinding, "kube-apiserver", namespace, spec=spec)
