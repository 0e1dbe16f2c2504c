"""Manifests of what runs in the shoot, on its nodes. How they get there is ManagedResources'
business.
"""

from __future__ import annotations

from collections.abc import Mapping

from actuator.meta import Raw

NAMESPACE = "kube-system"


def config_map(name: str, data: Mapping[str, str]) -> Raw:
    """A ConfigMap in the shoot."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "data": dict(data),
    }


def daemon_set(
    name: str, image: str, *, node_selector: Mapping[str, str], mounts: Mapping[str, Raw]
) -> Raw:
    """A program on each of the nodes; `mounts` maps paths in it to volumes of a pod."""
    labels = {"app.kubernetes.io/name": name}
    volumes = [{"name": f"v{index}", **volume} for index, volume in enumerate(mounts.values())]
    container = {
        "name": "local",
        "image": image,
        "volumeMounts": [
            {"name": f"v{index}", "mountPath": path} for index, path in enumerate(mounts)
        ],
    }
    pod = {"nodeSelector": dict(node_selector), "containers": [container], "volumes": volumes}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }


def runtime_class(name: str, handler: str, node_selector: Mapping[str, str]) -> Raw:
    """What pods name to run under that handler, on those nodes."""
    return {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": name},
        "handler": handler,
        "scheduling": {"nodeSelector": dict(node_selector)},
    }
