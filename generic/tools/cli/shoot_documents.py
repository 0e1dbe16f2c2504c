"""The Cluster of a shoot, from the documents of its file: profiles, Seed, Shoot, Cluster. Pure."""

from collections.abc import Iterable
from typing import Any

from actuator.cluster import Cluster
from actuator.errors import ConfigurationError
from actuator.meta import Raw
from generic.library.manifests import merged
from generic.testing.gardenapi.controllers import united

_FIELDS = {"CloudProfile": "cloudProfile", "Seed": "seed", "Shoot": "shoot"}
_OF_PROJECT = "NamespacedCloudProfile"


def of_cluster(given: Iterable[Any], where: str) -> tuple[Raw, list[Any]]:
    """Separate the fields of the Cluster's spec from the other manifests of a file.

    Raises ConfigurationError for a document without fields.
    """
    fields: Raw = {}
    others = []
    of_project = []
    for item in given:
        kind = item.get("kind") if isinstance(item, dict) else None
        if kind == _OF_PROJECT:
            of_project.append(item)
        elif kind in (*_FIELDS, Cluster.KIND.name):
            content = item.get("spec") if kind == Cluster.KIND.name else {_FIELDS[kind]: item}
            if not _has_objects(content):
                raise ConfigurationError(f"{where}: {kind}: set spec, with objects as its fields")
            fields = merged(fields, content)
        else:
            others.append(item)
    for item in of_project:  # after the CloudProfile, wherever that is in the file
        fields["cloudProfile"] = _with_project(fields.get("cloudProfile", {}), item, where)
    return fields, others


def _has_objects(content: Any) -> bool:
    return isinstance(content, dict) and all(isinstance(value, dict) for value in content.values())


def _with_project(profile: Raw, item: Raw, where: str) -> Raw:
    """Return the CloudProfile that gardenlet writes for a NamespacedCloudProfile.

    Its spec is the status of the document. Without a status, the spec of the document is merged
    into the CloudProfile, as gardener-controller-manager and the webhooks of providers do.
    """
    parts = {name: item.get(name) or {} for name in ("metadata", "spec", "status")}
    if not _has_objects(parts):
        raise ConfigurationError(f"{where}: {_OF_PROJECT}: set metadata, spec, status to objects")
    own = {key: value for key, value in parts["spec"].items() if key != "parent"}
    spec = parts["status"].get("cloudProfileSpec") or united(profile.get("spec", {}), own)
    if not isinstance(spec, dict):
        raise ConfigurationError(
            f"{where}: {_OF_PROJECT}: set status.cloudProfileSpec to an object"
        )
    return {**profile, "metadata": parts["metadata"], "spec": spec}
