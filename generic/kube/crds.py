"""CustomResourceDefinitions, generated from the contract's classes: structural, with a status
subresource and printer columns.

`actuator.schema` generates the schemas (Kubernetes documentation, "Extend the Kubernetes API with
CustomResourceDefinitions").
"""

from typing import get_type_hints

import attrs

from actuator.checking import FORMATS
from actuator.meta import GROUP, Object, Raw, schema_of
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


RULES = {
    "cidr": "isCIDR({0}) && cidr({0}) == cidr({0}).masked()",
    "ip": "isIP({0})",
}
"""CEL expressions for formats that the API server reads differently, or not at all."""
_LONGEST = 64
"""Characters of a range or an address; without a limit the rule of a list would be too costly."""


def _root(cls: type[Object]) -> Raw:
    root = structural(cls)
    if cls.KIND.group != GROUP:
        _add_rules(root)
    properties = root["properties"]
    properties["metadata"] = {"type": "object"}
    if "status" in properties:  # a status that was never written lacks every field
        properties["status"].pop("required", None)
    if "spec" in properties and schema_of(get_type_hints(cls, include_extras=True)["spec"]) is None:
        root["required"] = ["spec"]
    return root


def _add_rules(schema: Raw) -> None:
    """Add the rules of formats, everywhere in a schema."""
    if (name := schema.get("format")) in RULES:
        rule = {"rule": RULES[name].format("self"), "message": f"expected {FORMATS[name]}"}
        schema["x-kubernetes-validations"] = [*schema.get("x-kubernetes-validations", ()), rule]
        schema.setdefault("maxLength", _LONGEST)
    parts = [*schema.get("properties", {}).values()]
    parts += [schema.get("items"), schema.get("additionalProperties")]
    for part in parts:
        if isinstance(part, dict):
            _add_rules(part)
