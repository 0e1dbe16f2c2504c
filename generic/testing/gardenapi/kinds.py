"""The garden's types as CRDs, with the documented fields of `schemas.yaml`.

All other fields are kept.
"""

from collections.abc import Mapping
from pathlib import Path

import yaml

from actuator.meta import Object, Raw
from actuator.schema import content_of
from generic.kube.crds import crd
from generic.library.manifests import merged
from generic.library.webhooks import (
    CloudProfile,
    CredentialsBinding,
    GardenBackupBucket,
    GardenSeed,
    NamespacedCloudProfile,
    SecretBinding,
    Shoot,
)

_SCHEMAS = Path(__file__).with_name("schemas.yaml")
_PROVIDER: Raw = {"provider": {"type": "probe"}}
GARDEN_KINDS: Mapping[type[Object], Raw] = {
    Shoot: {"spec": {"region": "probe", **_PROVIDER}},
    CloudProfile: {"spec": {"type": "probe"}},
    NamespacedCloudProfile: {"spec": {"parent": {"name": "probe"}}},
    GardenSeed: {"spec": _PROVIDER},
    GardenBackupBucket: {"spec": _PROVIDER},
    SecretBinding: {"secretRef": {}, **_PROVIDER},
    CredentialsBinding: {"credentialsRef": {}, **_PROVIDER},
}
"""The fields of the smallest object of each type, whose provider is "probe"."""


def garden_crds() -> list[Raw]:
    """Return the CRDs: types and descriptions of the documented fields, all others are kept."""
    schemas = yaml.safe_load(_SCHEMAS.read_text(encoding="utf-8"))
    return [_documented(crd(cls), schemas[cls.KIND.name]) for cls in GARDEN_KINDS]


def _documented(definition: Raw, documentation: Raw) -> Raw:
    """Add the documentation of a kind to the schema of its CRD."""
    _keep_unknown(documentation)
    version = definition["spec"]["versions"][0]
    schema = version["schema"]["openAPIV3Schema"]
    version["schema"]["openAPIV3Schema"] = merged(schema, documentation)
    return definition


def _keep_unknown(schema: Raw) -> None:
    """Keep unknown fields of objects, and null in place of a configuration, as Go does."""
    is_object = schema.get("type", "object") == "object" and "anyOf" not in schema
    if is_object and "additionalProperties" not in schema:
        schema["x-kubernetes-preserve-unknown-fields"] = True
    for part in schema.get("properties", {}).values():
        if "type" not in part and "anyOf" not in part:
            part["nullable"] = True
        _keep_unknown(part)
    if content := content_of(schema):
        _keep_unknown(content)
