"""What the manifests for a shoot have in common."""

from collections.abc import Mapping

from actuator import Raw
from generic.library import manifest

NAMESPACE = "kube-system"
ORIGIN = "extension-local"


def daemon_set(
    name: str, image: str, *, node_selector: Mapping[str, str], mounts: Mapping[str, Raw]
) -> Raw:
    """Return a program for each node; `mounts` maps paths in it to volumes of a pod."""
    labels = {"app.kubernetes.io/name": name}
    volumes = [{"name": f"v{index}", **volume} for index, volume in enumerate(mounts.values())]
    paths = [{"name": f"v{index}", "mountPath": path} for index, path in enumerate(mounts)]
    container = {"name": "local", "image": image, "volumeMounts": paths}
    pod = {"nodeSelector": dict(node_selector), "containers": [container], "volumes": volumes}
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    return manifest("apps/v1", "DaemonSet", name, NAMESPACE, spec=spec)
