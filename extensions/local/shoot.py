"""What the manifests for a shoot have in common."""

from collections.abc import Mapping

from actuator import Raw
from generic.library import daemon_set_manifest

NAMESPACE = "kube-system"
ORIGIN = "extension-local"


def daemon_set(
    name: str, image: str, *, node_selector: Mapping[str, str], mounts: Mapping[str, Raw]
) -> Raw:
    """Return a program for each node; `mounts` maps paths in it to volumes of a pod."""
    volumes = [{"name": f"v{index}", **volume} for index, volume in enumerate(mounts.values())]
    paths = [{"name": f"v{index}", "mountPath": path} for index, path in enumerate(mounts)]
    container = {"image": image, "volumeMounts": paths}
    made = daemon_set_manifest(name, NAMESPACE, container, volumes=volumes)
    made["spec"]["template"]["spec"]["nodeSelector"] = dict(node_selector)
    return made
