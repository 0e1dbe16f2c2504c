"""Manifests: Kubernetes objects as JSON."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from actuator.meta import Object, Raw

__all__ = [
    "MAX_LABEL",
    "MAX_NAME",
    "daemon_set_manifest",
    "deployment_manifest",
    "manifest",
    "manifest_of",
    "shortened",
]

MAX_LABEL = 63
MAX_NAME = 253
"""Maximum characters of a label's value and of most objects' names (Kubernetes documentation,
"Labels and Selectors" and "Object Names and IDs")."""
_DIGEST = 16


def shortened(name: str, max_length: int = MAX_LABEL) -> str:
    """Return a name, or if it is too long its beginning with a hash of the whole."""
    if len(name) <= max_length:
        return name
    return (
        f"{name[: max_length - _DIGEST - 1]}-{hashlib.sha256(name.encode()).hexdigest()[:_DIGEST]}"
    )


def merged(base: Raw, more: Raw) -> Raw:
    """Return a deep union of two mappings; `more` wins, and replaces lists."""
    both = {
        key: merged(base[key], value)
        for key, value in more.items()
        if isinstance(value, dict) and isinstance(base.get(key), dict)
    }
    return {**base, **more, **both}


def manifest(
    api_version: str,
    kind: str,
    name: str,
    namespace: str = "",
    labels: Mapping[str, str] | None = None,
    **parts: Any,
) -> Raw:
    """Return the manifest of an object; `parts` are its other fields, such as `spec` or `data`."""
    meta: Raw = {"name": name}
    if namespace:
        meta["namespace"] = namespace
    if labels:
        meta["labels"] = dict(labels)
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, **parts}


def manifest_of(
    cls: type[Object],
    name: str,
    namespace: str = "",
    labels: Mapping[str, str] | None = None,
    **parts: Any,
) -> Raw:
    """Return the manifest for a class of a kind; a cluster-scoped one gets no namespace."""
    kind = cls.KIND
    namespace = namespace if kind.namespaced else ""
    return manifest(kind.api_version, kind.name, name, namespace, labels, **parts)


def deployment_manifest(
    name: str,
    namespace: str,
    replicas: int,
    container: Raw,
    *,
    annotations: Mapping[str, str] | None = None,
    volumes: Sequence[Raw] = (),
) -> Raw:
    """Return a Deployment whose pods have one container, which gets the name.

    `container` are its other fields, such as `image`; `annotations` are those of the pods, such as
    checksums of what the program reads only when it starts.
    """
    spec = {"replicas": replicas, **_pods(name, container, annotations, volumes)}
    return manifest("apps/v1", "Deployment", name, namespace, _labels(name), spec=spec)


def daemon_set_manifest(
    name: str,
    namespace: str,
    container: Raw,
    *,
    annotations: Mapping[str, str] | None = None,
    volumes: Sequence[Raw] = (),
) -> Raw:
    """Return a DaemonSet, with the arguments of `deployment`."""
    spec = _pods(name, container, annotations, volumes)
    return manifest("apps/v1", "DaemonSet", name, namespace, _labels(name), spec=spec)


def _pods(
    name: str, container: Raw, annotations: Mapping[str, str] | None, volumes: Sequence[Raw]
) -> Raw:
    """Return the selector of pods and their template."""
    meta: Raw = {"labels": _labels(name)}
    if annotations:
        meta["annotations"] = dict(annotations)
    pod: Raw = {"containers": [{"name": name, **container}]}
    if volumes:
        pod["volumes"] = list(volumes)
    return {
        "selector": {"matchLabels": _labels(name)},
        "template": {"metadata": meta, "spec": pod},
    }


def _labels(name: str) -> dict[str, str]:
    """Return the recommended label (Kubernetes documentation, "Recommended Labels")."""
    return {"app.kubernetes.io/name": name}
