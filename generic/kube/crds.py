"""CustomResourceDefinitions, generated from the contract's classes: structural, with a status
subresource and printer columns.

`actuator.schema` generates the schemas (Kubernetes documentation, "Extend the Kubernetes API with
CustomResourceDefinitions").
"""

from collections.abc import Callable, Iterator
from functools import reduce
from itertools import accumulate
from operator import and_
from typing import get_type_hints

import attrs

from actuator.checking import FORMATS, PATTERNS
from actuator.meta import GROUP, Object, Raw, schema_of
from actuator.schema import ALWAYS, content_of, structural
from generic.kube.expressions import Expr, call


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


RULES: dict[str, Callable[[Expr], Expr]] = {
    "cidr": lambda v: call("isCIDR", v) & call("cidr", v).equals(call("cidr", v).method("masked")),
    "ip": lambda v: call("isIP", v),
}
"""The formats that the API server reads differently, or not at all."""
_MAX_NAME = 64
"""Characters of a range or an address; without a limit the rule of a list would be too costly."""


def _root(cls: type[Object]) -> Raw:
    root = structural(cls)
    if cls.KIND.group != GROUP:
        _add_rules(root)
        if "spec" in root["properties"]:
            _add_always(root["properties"]["spec"])
    properties = root["properties"]
    properties["metadata"] = {"type": "object"}
    if "status" in properties:  # a status that was never written lacks every field
        properties["status"].pop("required", None)
    if "spec" in properties and schema_of(get_type_hints(cls, include_extras=True)["spec"]) is None:
        root["required"] = ["spec"]
    return root


def _add_rules(schema: Raw) -> None:
    """Add the rules of formats, everywhere in a schema."""
    if (name := schema.get("format")) in PATTERNS:
        pattern, longest = PATTERNS[name]
        del schema["format"]  # the API server reads some differently
        schema["allOf"] = [{"pattern": f"^(?:{pattern})$", "maxLength": longest}]
    elif name == "password":
        del schema["format"]  # with one, the API server takes a list in place of a text
    elif name in RULES:
        rule = {"rule": RULES[name](Expr("self")).text, "message": f"expected {FORMATS[name]}"}
        schema["x-kubernetes-validations"] = [*schema.get("x-kubernetes-validations", ()), rule]
        schema.setdefault("maxLength", _MAX_NAME)
    for part in filter(None, [*schema.get("properties", {}).values(), content_of(schema)]):
        _add_rules(part)


def _add_always(schema: Raw) -> None:
    """Add the rules of fields that cannot be set later, or removed: their own compares two values.

    Each object that can be matched with its former value has those of the fields inside it.
    """
    for names in filter(None, _always(schema, ())):
        new, old = (_is_set(Expr(root), names) for root in ("self", "oldSelf"))
        rule = {"rule": new.equals(old).text, "message": ALWAYS["message"]}
        schema.setdefault("x-kubernetes-validations", []).append(rule)


def _is_set(v: Expr, names: tuple[str, ...]) -> Expr:
    _, *found = accumulate(names, Expr.field, initial=v)
    return reduce(and_, (call("has", field) for field in found))


def _always(schema: Raw, names: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if ALWAYS in schema.get("x-kubernetes-validations", ()):
        yield names
    if part := content_of(schema):
        _add_always(part)
    for name, part in schema.get("properties", {}).items():
        yield from _always(part, (*names, name))
