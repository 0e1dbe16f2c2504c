"""Manifests: Kubernetes objects as JSON."""

from collections.abc import Mapping
from typing import Any

from actuator.meta import Object, Raw

__all__ = ["manifest", "manifest_of"]


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
