"""Manifests: Kubernetes objects as JSON."""

import hashlib
from collections.abc import Mapping
from typing import Any

from actuator.meta import Object, Raw

__all__ = ["MAX_LABEL", "MAX_NAME", "manifest", "manifest_of", "shortened"]

MAX_LABEL = 63
MAX_NAME = 253
"""Maximum characters of a label's value and of most objects' names (Kubernetes documentation,
"Labels and Selectors" and "Object Names and IDs")."""
_DIGEST = 16


def shortened(name: str, most: int = MAX_LABEL) -> str:
    """Return a name, or if it is too long its beginning with a hash of the whole."""
    if len(name) <= most:
        return name
    return f"{name[: most - _DIGEST - 1]}-{hashlib.sha256(name.encode()).hexdigest()[:_DIGEST]}"


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
