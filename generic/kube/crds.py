"""CustomResourceDefinitions, generated from the contract's classes: structural, with a status
subresource and printer columns.

`actuator.schema` generates the schemas (Kubernetes documentation, "Extend the Kubernetes API with
CustomResourceDefinitions").
"""

from typing import get_type_hints

import attrs

from actuator.meta import Object, Raw, schema_of
from actuator.schema import structural


def crd(cls: type[Object]) -> Raw:
    """Return the CustomResourceDefinition of a class with a KIND."""
    kind = cls.KIND
    has_status = any(field.name == "spec" for field in attrs.fields(cls))  # Gardener: Cluster too
    version: Raw = {
        "name": kind.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": _root(cls)},
        "additionalPrinterColumns": [
            {"name": c.name, "type": c.type, "jsonPath": c.json_path} for c in kind.columns
        ],
    }
    if has_status:
        version["subresources"] = {"status": {}}
    names = {"kind": kind.name, "plural": kind.plural, "singular": kind.name.lower()}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{kind.group}"},
        "spec": {
            "group": kind.group,
            "names": {
                **names,
                "listKind": f"{kind.name}List",
                "shortNames": list(kind.short_names),
            },
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "versions": [version],
        },
    }


def _root(cls: type[Object]) -> Raw:
    root = structural(cls)
    properties = root["properties"]
    properties["metadata"] = {"type": "object"}
    if "status" in properties:  # a status that was never written lacks every field
        properties["status"].pop("required", None)
    if "spec" in properties and schema_of(get_type_hints(cls, include_extras=True)["spec"]) is None:
        root["required"] = ["spec"]
    return root
