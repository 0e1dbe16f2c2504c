"""Unique ConfigMaps and Secrets, and the annotations that tell which ones a workload uses.

gardener-resource-manager deletes an immutable ConfigMap or Secret that no workload refers to any
more (Gardener documentation, "gardener-resource-manager", "Garbage Collector For Immutable
ConfigMaps/Secrets"). Names and annotations are those of Gardener's Go library (`MakeUnique`,
`InjectAnnotations`), so that a take-over restarts no pod.
"""

import copy
import hashlib
from collections.abc import Iterable, Iterator

from actuator.errors import ConfigurationError
from actuator.meta import Base64, Raw, value_at

__all__ = [
    "GARBAGE_COLLECTABLE",
    "PREFIX",
    "digest",
    "make_unique",
    "references_to",
    "with_references",
]

GARBAGE_COLLECTABLE = "resources.gardener.cloud/garbage-collectable-reference"
"""The label of a ConfigMap or Secret that is deleted once nothing refers to it."""
PREFIX = "reference.resources.gardener.cloud/"
"""How the annotations begin."""
_DIGITS = 8


def make_unique(manifest: Raw) -> Raw:
    """Return the ConfigMap or Secret immutable, with a hash of its values at the end of its name.

    The hash is Gardener's: keys that change while the values stay need another name. Raises
    ConfigurationError for another kind.
    """
    kind = manifest["kind"]
    name = manifest["metadata"]["name"]
    if kind not in ("ConfigMap", "Secret"):
        raise ConfigurationError(f"{kind} {name}: only a ConfigMap or Secret can be unique")
    text, encoded = ("data", "binaryData") if kind == "ConfigMap" else ("stringData", "data")
    content = {key: value.encode() for key, value in (manifest.get(text) or {}).items()}
    for key, value in (manifest.get(encoded) or {}).items():
        content[key] = Base64(value).decode_bytes()
    hashes = "".join(hashlib.sha256(content[key]).hexdigest() for key in sorted(content))
    unique = copy.deepcopy(manifest)
    unique["immutable"] = True
    unique["metadata"]["name"] = f"{name.removesuffix('-')}-{digest(hashes.encode())}"
    labels = unique["metadata"].get("labels") or {}
    unique["metadata"]["labels"] = {**labels, GARBAGE_COLLECTABLE: "true"}
    return unique


def with_references(manifest: Raw) -> Raw:
    """Return the workload with an annotation for each ConfigMap and Secret that its pods use.

    It and its templates get them, in place of former ones. For pods, all kinds with a template of
    pods, and ManagedResources.
    """
    annotated = copy.deepcopy(manifest)
    parts = [annotated]
    while inner := _template(parts[-1]):
        parts.append(inner)
    references = references_to(_used(parts[-1].get("spec") or {}))
    for part in parts:
        meta = part["metadata"] = part.get("metadata") or {}
        given = (meta.get("annotations") or {}).items()
        others = {key: value for key, value in given if not key.startswith(PREFIX)}
        meta["annotations"] = {**others, **references}
    return annotated


def references_to(used: Iterable[tuple[str, str | None]]) -> dict[str, str]:
    """Return the annotations for objects: `secret` or `configmap`, and the name if there is one."""
    return {f"{PREFIX}{kind}-{digest(name.encode())}": name for kind, name in used if name}


def digest(data: bytes) -> str:
    """Return the hash that Gardener puts into names."""
    return hashlib.sha256(data).hexdigest()[:_DIGITS]


def _template(part: Raw) -> Raw | None:
    found = value_at(part, "spec", "jobTemplate") or value_at(part, "spec", "template")
    return found if isinstance(found, dict) else None


def _used(spec: Raw) -> Iterator[tuple[str, str | None]]:
    """Return kind and name of each object that a pod, or a ManagedResource, uses."""
    for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        for item in container.get("envFrom") or ():
            yield "secret", value_at(item, "secretRef", "name")
            yield "configmap", value_at(item, "configMapRef", "name")
        for element in container.get("env") or ():
            yield "secret", value_at(element, "valueFrom", "secretKeyRef", "name")
            yield "configmap", value_at(element, "valueFrom", "configMapKeyRef", "name")
    for volume in spec.get("volumes") or ():
        yield "secret", value_at(volume, "secret", "secretName")
        for candidate in (volume, *(value_at(volume, "projected", "sources") or ())):
            yield "secret", value_at(candidate, "secret", "name")
            yield "configmap", value_at(candidate, "configMap", "name")
    for image_pull_secret in (
        *(spec.get("imagePullSecrets") or ()),
        *(spec.get("secretRefs") or ()),
    ):
        yield "secret", image_pull_secret.get("name")
