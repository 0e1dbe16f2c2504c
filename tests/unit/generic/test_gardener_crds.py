"""Our CRDs, field by field, against the facts of Gardener's (`gardener_crds.yaml`)."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from actuator.meta import Object
from actuator.v1alpha1 import KINDS, Cluster
from generic.kube.crds import crd
from generic.library.machines import MACHINE_KINDS
from generic.library.managedresources import ManagedResource
from generic.testing.landscape.programs import gardener_version

AGE = ".metadata.creationTimestamp"
CLASSES: tuple[type[Object], ...] = (*KINDS, Cluster, ManagedResource, *MACHINE_KINDS)
OURS = {cls.KIND.name: cls for cls in CLASSES}
HEAD = ("group", "names", "scope", "columns", "subresources", "differs", "unmodelled")


@cache
def facts() -> dict[str, Any]:
    """The facts of Gardener's CRDs."""
    path = Path(__file__).parents[2] / "gardener_crds.yaml"
    return yaml.safe_load(path.read_text())


def expected(kind: str) -> dict[str, str]:
    """The facts of Gardener's CRD of a kind, by path; about the kind itself in parentheses."""
    given = facts()["kinds"][kind]
    found = {
        "(group)": given.get("group", "extensions.gardener.cloud"),
        "(names)": given["names"],
        "(scope)": given.get("scope", "Namespaced"),
    }
    found |= {f"(column {column})": "" for column in given["columns"]}
    found |= {
        f"(subresource {subresource})": "" for subresource in given.get("subresources", ["status"])
    }
    add_fields(found, "", {name: type for name, type in given.items() if name not in HEAD})
    return found


def add_fields(found: dict[str, str], path: str, fields: dict[str, Any]) -> None:
    for name, type in fields.items():
        if name == "<":
            for shape in type:
                add_fields(found, path, facts()["shapes"][shape])
        else:
            add(found, path + name.removesuffix("!"), type, "required " * name.endswith("!"))


def add(found: dict[str, str], path: str, type: Any, before: str = "") -> None:
    fields = type if isinstance(type, dict) else facts()["shapes"].get(type)
    if fields is not None:
        found[path] = f"{before}object"
        add_fields(found, f"{path}.", fields)
    elif type[:2] in ("[]", "{}"):
        found[path] = before + {"[]": "list", "{}": "map"}[type[:2]]
        add(found, path + type[:2], type[2:])
    else:
        found[path] = before + type


def actual(manifest: dict[str, Any]) -> dict[str, str]:
    """The same facts of a CustomResourceDefinition."""
    spec = manifest["spec"]
    (version,) = spec["versions"]
    names = spec["names"]
    found = {
        "(group)": spec["group"],
        "(names)": " ".join([names["plural"], *names["shortNames"]]),
        "(scope)": spec["scope"],
    }
    for column in version["additionalPrinterColumns"]:
        path = column["jsonPath"]
        is_age = (column["name"], path, column["type"]) == ("Age", AGE, "date")
        found[f"(column {'Age' if is_age else column['name'] + '=' + path})"] = ""
    found |= {f"(subresource {subresource})": "" for subresource in version.get("subresources", {})}
    root = version["schema"]["openAPIV3Schema"]
    fields = {n: s for n, s in root["properties"].items() if n not in HEAD_OF_OBJECTS}
    flatten_fields(found, "", {**root, "properties": fields})
    return found


HEAD_OF_OBJECTS = ("apiVersion", "kind", "metadata")


def flatten_fields(found: dict[str, str], path: str, schema: dict[str, Any]) -> None:
    for name, field in schema["properties"].items():
        flatten(found, path + name, field, "required " * (name in schema.get("required", ())))


def flatten(found: dict[str, str], path: str, schema: dict[str, Any], before: str = "") -> None:
    keeps = schema.get("x-kubernetes-preserve-unknown-fields", False)
    type = schema.get("type", "any" if keeps else "int-or-string")
    if type == "object":
        type = "raw" if keeps else "map" if "additionalProperties" in schema else "object"
    facts = before + {"array": "list"}.get(type, type)
    if "format" in schema:
        facts += f".{schema['format']}"
    if any(
        item["rule"] == "self == oldSelf" for item in schema.get("x-kubernetes-validations", ())
    ):
        facts += " immutable"
    if "enum" in schema:
        facts += f" enum={','.join(schema['enum'])}"
    if "default" in schema:
        facts += f" default={schema['default']}"
    found[path] = facts
    if "properties" in schema:
        flatten_fields(found, f"{path}.", schema)
    if "items" in schema:
        flatten(found, f"{path}[]", schema["items"])
    if "additionalProperties" in schema:
        flatten(found, f"{path}{{}}", schema["additionalProperties"])


def differences(kind: str, manifest: dict[str, Any]) -> list[str]:
    """Differences between a CRD of ours and Gardener's, except for the intended ones."""
    given = facts()["kinds"][kind]
    wanted = expected(kind)
    missing = set(given.get("unmodelled", ())) - set(wanted)
    assert not missing, "listed as unmodelled, but not a fact of Gardener's"
    for path in given.get("unmodelled", ()):
        del wanted[path]
    for path, ours in given.get("differs", {}).items():
        assert wanted.get(path) != ours, f"{path} does not differ"
        wanted[path] = ours
    found = actual(manifest)
    lines = [f"missing: {path}" for path in wanted.keys() - found.keys()]
    lines += [f"additional: {path}" for path in found.keys() - wanted.keys()]
    both = wanted.keys() & found.keys()
    lines += [f"{p}: {found[p]}, not {wanted[p]}" for p in both if found[p] != wanted[p]]
    return sorted(lines)


@pytest.mark.parametrize("path", ["gardener_crds.yaml", "api/generic/golibrary/go.mod"])
def test_facts_and_the_go_library_have_the_version_of_gardener_that_the_landscape_runs(path):
    text = (Path(__file__).parents[2] / path).read_text()
    (named,) = re.findall(r"^(?:# Facts.*Gardener|.*gardener/gardener) (v\S+)", text, re.MULTILINE)
    assert named == gardener_version()


def test_the_table_has_every_kind_of_gardener_that_we_generate_a_crd_for():
    assert set(OURS) == set(facts()["kinds"])


@pytest.mark.parametrize("kind", OURS)
def test_a_crd_agrees_with_gardeners_field_by_field(kind):
    assert differences(kind, crd(OURS[kind])) == []


def schema_at(manifest: dict[str, Any], *path: str) -> dict[str, Any]:
    schema = manifest["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    for name in path:
        schema = schema["items"] if name == "[]" else schema["properties"][name]
    return schema


def removes_a_field(one):
    del schema_at(one, "spec", "files", "[]")["properties"]["hostName"]


def adds_a_field(one):
    schema_at(one, "status")["properties"]["command"] = {"type": "string"}


def changes_a_type(one):
    schema_at(one, "spec", "inPlaceUpdates")["properties"]["kubelet"] = {"type": "object"}


def changes_a_format(one):
    schema_at(one, "status", "observedGeneration")["format"] = "int32"


def requires_less(one):
    schema_at(one, "spec", "criConfig", "containerd")["required"] = []


def adds_an_enum(one):
    schema_at(one, "spec", "purpose")["enum"] = ["provision"]


def lets_a_field_change(one):
    del schema_at(one, "spec", "class")["x-kubernetes-validations"]


def prunes_a_field(one):
    del schema_at(one, "spec", "providerConfig")["x-kubernetes-preserve-unknown-fields"]


def has_no_status_subresource(one):
    one["spec"]["versions"][0].pop("subresources")


def has_another_scope(one):
    one["spec"]["scope"] = "Cluster"


def has_another_short_name(one):
    one["spec"]["names"]["shortNames"] = []


def has_another_column(one):
    one["spec"]["versions"][0]["additionalPrinterColumns"][1]["jsonPath"] = ".spec.type"


BROKEN = {
    removes_a_field: ["missing: spec.files[].hostName"],
    adds_a_field: ["additional: status.command"],
    changes_a_type: ["spec.inPlaceUpdates.kubelet: required object, not required string"],
    changes_a_format: ["status.observedGeneration: integer.int32, not integer.int64"],
    requires_less: [
        "spec.criConfig.containerd.sandboxImage: string, not required string",
    ],
    adds_an_enum: ["spec.purpose: required string enum=provision, not required string"],
    lets_a_field_change: ["spec.class: string, not string immutable"],
    prunes_a_field: ["spec.providerConfig: object, not raw"],
    has_no_status_subresource: ["missing: (subresource status)"],
    has_another_scope: ["(scope): Cluster, not Namespaced"],
    has_another_short_name: ["(names): operatingsystemconfigs, not operatingsystemconfigs osc"],
    has_another_column: [
        "additional: (column Purpose=.spec.type)",
        "missing: (column Purpose=.spec.purpose)",
    ],
}


@pytest.mark.parametrize(
    ("breaks", "reported"), BROKEN.items(), ids=lambda it: getattr(it, "__name__", "")
)
def test_the_comparison_reports_a_crd_that(breaks, reported):
    broken = crd(OURS["OperatingSystemConfig"])
    breaks(broken)
    assert differences("OperatingSystemConfig", broken) == reported
