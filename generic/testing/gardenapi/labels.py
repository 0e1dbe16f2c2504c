"""The labels by which admissions select objects of the garden, set by the API server.

In a garden, the admission plugin ExtensionLabels of gardener-apiserver sets them; here,
MutatingAdmissionPolicies do (Kubernetes documentation, "Mutating Admission Policy"). Extensions
that a ControllerRegistration enables for all Shoots have no label here. Pure.
"""

from collections.abc import Mapping

from actuator.interface import Resource
from actuator.meta import Kind, Raw, plural_of
from generic.kube.expressions import Expr, call, choose, joined, literal, message
from generic.library.manifests import manifest
from generic.library.webhooks import (
    CloudProfile,
    CredentialsBinding,
    GardenBackupBucket,
    GardenSeed,
    NamespacedCloudProfile,
    SecretBinding,
    Shoot,
)

_GROUP = "admissionregistration.k8s.io/v1"
_NAME = "extension-labels"
PROVIDER, _EXTENSION, _DNS, _NETWORK, _OS, _RUNTIME = _PREFIXES = [
    f"{name}.gardener.cloud/"
    for name in (
        "provider.extensions",
        "extensions.extensions",
        "dnsrecord.extensions",
        "networking.extensions",
        "operatingsystemconfig.extensions",
        "containerruntime.extensions",
    )
]
NO_PARENT = "spec.parent.name: there is no such CloudProfile; create it first"
_OBJECT = Expr("object")
_PARAMS = Expr("params")
_WANTED = Expr("variables").field("wanted")
_ITEM, _TYPE, _LABEL, _PREFIX = (Expr(name) for name in "itlp")


def _all(*path: str, of: Expr = _OBJECT) -> Expr:
    """Return the items of a list that may be absent."""
    return of.optional(*path).method("orValue", [])


def _one(*path: str) -> Expr:
    """Return a type that may be absent, as a list."""
    one = _OBJECT.optional(*path).method("optMap", _TYPE, literal([_TYPE]))
    return one.method("orValue", [])


def _labels(prefix: str, types: Expr) -> Expr:
    return types.method("map", _TYPE, joined(prefix, _TYPE))


def _other(types: Expr, than: str) -> Expr:
    return types.method("filter", _TYPE, ~_TYPE.equals(than))


def _set(types: Expr) -> Expr:
    """Return the values that are there."""
    there = types.method("filter", _TYPE, _TYPE.method("hasValue"))
    return there.method("map", _TYPE, _TYPE.method("value"))


_POOLS = _all("spec", "provider", "workers")
_RUNTIMES = _all("cri", "containerRuntimes", of=_ITEM).method("map", _TYPE, _TYPE["type"])
_IMAGE = _ITEM.optional("machine", "image", "name")
_ENABLED = ~_ITEM.optional("disabled").method("orValue", call("dyn", False)).equals(True)
_EXTENSIONS = (
    _all("spec", "extensions").method("filter", _ITEM, _ENABLED).method("map", _ITEM, _ITEM["type"])
)
_ZONE = _ITEM.optional("type").method("orValue", "unmanaged")
_LISTED = _OBJECT.optional("provider", "type").method("orValue", "").method("split", ",")
_PARENT = _OBJECT["spec"]["parent"]["name"].equals(_PARAMS["metadata"]["name"])
_WANTED_LABELS: Mapping[Kind, list[Expr]] = {
    Shoot.KIND: [
        _labels(PROVIDER, _one("spec", "provider", "type")),
        _labels(_NETWORK, _one("spec", "networking", "type")),
        _labels(_EXTENSION, _EXTENSIONS),
        _labels(_OS, _set(_POOLS.method("map", _ITEM, _IMAGE))),
        _labels(_RUNTIME, _POOLS.method("map", _ITEM, _RUNTIMES).method("flatten")),
        _labels(
            _DNS, _other(_all("spec", "dns", "providers").method("map", _ITEM, _ZONE), "unmanaged")
        ),
    ],
    CloudProfile.KIND: [_labels(PROVIDER, _one("spec", "type"))],
    NamespacedCloudProfile.KIND: [
        _labels(PROVIDER, choose(_PARENT, literal([_PARAMS["spec"]["type"]]), []))
    ],
    GardenSeed.KIND: [
        _labels(PROVIDER, _one("spec", "provider", "type")),
        _labels(PROVIDER, _one("spec", "backup", "provider")),
        _labels(_DNS, _one("spec", "dns", "provider", "type")),
        _labels(_EXTENSION, _EXTENSIONS),
    ],
    GardenBackupBucket.KIND: [_labels(PROVIDER, _one("spec", "provider", "type"))],
    SecretBinding.KIND: [_labels(PROVIDER, _other(_LISTED, ""))],
    CredentialsBinding.KIND: [_labels(PROVIDER, _one("provider", "type"))],
}
_OWN_LABELS = _OBJECT.optional("metadata", "labels")
_IS_OURS = literal(_PREFIXES).method("exists", _PREFIX, _LABEL.method("startsWith", _PREFIX))
_FORMER = _OWN_LABELS.method("orValue", {}).method(
    "filter", _LABEL, _IS_OURS & ~_LABEL.relation("in", _WANTED)
)
_PATH = joined("/metadata/labels/", call("jsonpatch.escapeKey", _LABEL))
_PATCH = joined(
    choose(
        _OWN_LABELS.method("hasValue"),
        [],
        literal([message("JSONPatch", op="add", path="/metadata/labels", value={})]),
    ),
    _FORMER.method("map", _LABEL, message("JSONPatch", op="remove", path=_PATH)),
    _WANTED.method("map", _LABEL, message("JSONPatch", op="add", path=_PATH, value="true")),
)


def label_policies() -> list[tuple[Resource, Raw]]:
    """Return the policies and their bindings."""
    found = [item for kind, wanted in _WANTED_LABELS.items() for item in _mutating(kind, wanted)]
    return [*found, *_refusing_without_parent()]


def _mutating(kind: Kind, wanted: list[Expr]) -> list[tuple[Resource, Raw]]:
    has_parent = kind == NamespacedCloudProfile.KIND
    patch = choose(_PARENT, _PATCH, []) if has_parent else _PATCH
    spec: Raw = {
        "failurePolicy": "Ignore",  # for a wrong type, the schema has a better message
        "reinvocationPolicy": "IfNeeded",
        "variables": [{"name": "wanted", "expression": joined(*wanted).text}],
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": patch.text}}],
    }
    bound: Raw = {}
    if has_parent:  # the API server evaluates the policy with each CloudProfile
        parent = CloudProfile.KIND
        spec["paramKind"] = {"apiVersion": parent.api_version, "kind": parent.name}
        bound["paramRef"] = {"selector": {}, "parameterNotFoundAction": "Allow"}
    return _pair("Mutating", kind, spec, bound)


def _refusing_without_parent() -> list[tuple[Resource, Raw]]:
    """Refuse a NamespacedCloudProfile that has no label, as the admission plugin does."""
    known = _LABEL.method("startsWith", PROVIDER)
    is_labelled = _OWN_LABELS.method("orValue", {}).method("exists", _LABEL, known)
    spec: Raw = {
        "failurePolicy": "Fail",
        "validations": [
            {"expression": is_labelled.text, "message": NO_PARENT, "reason": "Invalid"}
        ],
    }
    return _pair("Validating", NamespacedCloudProfile.KIND, spec, {"validationActions": ["Deny"]})


def _pair(form: str, kind: Kind, spec: Raw, bound: Raw) -> list[tuple[Resource, Raw]]:
    """Return a policy for creations and updates of a kind, and its binding."""
    name = f"{_NAME}.{kind.plural}.{kind.group}"
    rule = {
        "apiGroups": [kind.group],
        "apiVersions": [kind.version],
        "operations": ["CREATE", "UPDATE"],
        "resources": [kind.plural],
    }
    specs = {
        "": {**spec, "matchConstraints": {"resourceRules": [rule]}},
        "Binding": {**bound, "policyName": name},
    }
    kinds = [f"{form}AdmissionPolicy{part}" for part in specs]
    return [
        (
            Resource(_GROUP, plural_of(made), namespaced=False),
            manifest(_GROUP, made, name, spec=content),
        )
        for made, content in zip(kinds, specs.values(), strict=True)
    ]
