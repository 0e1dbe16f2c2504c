"""AwsMutator: what AWS needs in the components that gardenlet deploys, and on the nodes.

The machine controller for EC2 runs beside the machine-controller-manager; the cloud controller
manager replaces the code in kube-controller-manager and in the kubelet.
"""

from actuator import Raw
from actuator.v1alpha1 import OperatingSystemConfig
from generic.library import load_images
from generic.library.webhooks import (
    AdmissionRequest,
    ControlPlaneMutator,
    Deployment,
    ResourcePolicy,
    SystemdUnit,
    VerticalPodAutoscaler,
    ensure,
    ensure_flag,
    machine_sidecar,
    machine_sidecar_policy,
    remove_flag,
)

_TYPE = "aws"
_IMAGE = "machine-controller-manager-provider-aws"
_HOST_NAME = "/bin/sh -c 'hostnamectl set-hostname $(hostname -f)'"
"""The name of a Node is the private DNS name of its instance."""
_SETTING = "net.ipv4.neigh.default.gc_thresh1"


class AwsMutator(ControlPlaneMutator):
    """Changes the control planes and nodes of shoots on AWS."""

    def __init__(self) -> None:
        super().__init__(_TYPE)
        self._images = load_images(__file__)

    def kube_apiserver(self, request: AdmissionRequest[Deployment], /) -> None:
        """Remove the flags of the former in-tree provider."""
        if container := request.new.pod.container("kube-apiserver"):
            remove_flag(container.flags, "cloud-provider", "cloud-config")

    def kube_controller_manager(self, request: AdmissionRequest[Deployment], /) -> None:
        """Leave nodes and volumes to the cloud controller manager and the CSI driver."""
        if container := request.new.pod.container("kube-controller-manager"):
            remove_flag(container.flags, "cloud-config", "external-cloud-volume-plugin")
            ensure_flag(container.flags, "cloud-provider", "external")

    def machine_controller_manager(self, request: AdmissionRequest[Deployment], /) -> None:
        """Add the machine controller, without which no machine is created."""
        cluster = request.cluster()
        image = self._images.references(cluster, _IMAGE)[_IMAGE]
        sidecar = machine_sidecar(_TYPE, request.namespace, image, cluster)
        ensure(request.new.pod.containers, sidecar)

    def machine_controller_manager_vpa(
        self, request: AdmissionRequest[VerticalPodAutoscaler], /
    ) -> None:
        """Let the autoscaler change only the requests of the machine controller."""
        policy = request.new.spec.resource_policy or ResourcePolicy()
        ensure(policy.container_policies, machine_sidecar_policy(_TYPE))
        request.new.spec.resource_policy = policy

    def kubelet_configuration(
        self, request: AdmissionRequest[OperatingSystemConfig], config: Raw, version: str, /
    ) -> None:
        """Leave attaching volumes to the controller."""
        config["enableControllerAttachDetach"] = True

    def kubelet_unit(
        self, request: AdmissionRequest[OperatingSystemConfig], unit: SystemdUnit, version: str, /
    ) -> None:
        """Start the kubelet for the cloud controller manager, with the host name of AWS."""
        unit.ensure_exec_flag("cloud-provider", "external")
        unit.ensure("Service", "ExecStartPre", _HOST_NAME)

    def kernel_settings(
        self, request: AdmissionRequest[OperatingSystemConfig], text: str, /
    ) -> str:
        """Let the kernel forget neighbours: Kubernetes issue 23395."""
        kept = [line for line in text.splitlines() if line.split("=")[0].strip() != _SETTING]
        return "\n".join([*kept, f"{_SETTING} = 0", ""])
