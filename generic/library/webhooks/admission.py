"""Admission of provider configurations in the garden, from their typed classes. Pure.

`ConfigAdmission` is one declaration for a configuration in Shoots. Everything that CEL can express
becomes a ValidatingAdmissionPolicy, which needs no server. Problems that only Python can find
(`ProviderConfig.problems`) become a validating webhook, defaults a mutating one. Shoots under
deletion, and updates that do not change the spec, are never checked (Gardener documentation,
"Extension Admission"; Kubernetes documentation, "Validating Admission Policy").
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

import attrs

from actuator.interface import FieldProblem, ProviderConfig, Resource
from actuator.meta import Kind, Object, Raw
from actuator.provider_config import changes_of, immutable_fields, problems_of
from actuator.schema import json_schema
from generic.library.manifests import manifest
from generic.library.webhooks.cel import Check, at, checks, present, text
from generic.library.webhooks.configurations import EXEMPT, EXEMPTION, GROUP_VERSION
from generic.library.webhooks.objects import kubernetes_kind
from generic.library.webhooks.webhook import AdmissionRequest, Webhook

POLICIES = Resource(GROUP_VERSION, "validatingadmissionpolicies", namespaced=False)
BINDINGS = Resource(GROUP_VERSION, "validatingadmissionpolicybindings", namespaced=False)
_CHANGED = {
    "name": "spec-changed",
    "expression": 'request.operation == "CREATE" || object.spec != oldObject.spec',
}


@attrs.frozen
class Place:
    """The place of a kind's configuration in a Shoot."""

    holder: str
    """The path of the part with the configuration; `[]` after a list."""
    type_field: str
    """The field with the type there; "": the type is that of the shoot's provider."""
    field: str
    label: str
    """The prefix of the label that Gardener sets on Shoots of a type."""


_POOLS = "spec.provider.workers[]"
PLACES = {
    "Infrastructure": Place("spec.provider", "type", "infrastructureConfig", "provider"),
    "ControlPlane": Place("spec.provider", "type", "controlPlaneConfig", "provider"),
    "Worker": Place(_POOLS, "", "providerConfig", "provider"),
    "OperatingSystemConfig": Place(
        f"{_POOLS}.machine.image", "name", "providerConfig", "operatingsystemconfig"
    ),
    "ContainerRuntime": Place(
        f"{_POOLS}.cri.containerRuntimes[]", "type", "providerConfig", "containerruntime"
    ),
    "Network": Place("spec.networking", "type", "providerConfig", "networking"),
    "Extension": Place("spec.extensions[]", "type", "providerConfig", "extensions"),
}
"""Sources: Gardener documentation, "Extension contract"; Gardener's `LabelExtension…` constants."""


@attrs.define(kw_only=True)
class Shoot(Object):
    """core.gardener.cloud/v1beta1 Shoot."""

    KIND: ClassVar[Kind] = kubernetes_kind("Shoot", "core.gardener.cloud", "v1beta1")

    spec: Raw = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class ConfigAdmission:
    """The admission of the configurations of one kind and type, in Shoots.

    Raises ValueError for a kind that a Shoot does not configure.
    """

    kind: type[Object]
    config: type[ProviderConfig]
    type: str
    name: str = ""
    """A DNS label for policy and webhooks; by default from kind and type."""
    place: Place = attrs.field(init=False)

    @place.default
    def _find_place(self) -> Place:
        if self.kind.KIND.name not in PLACES:
            raise ValueError(f"{self.kind.KIND.name}: a Shoot has no configuration of this kind")
        return PLACES[self.kind.KIND.name]

    @property
    def label(self) -> dict[str, str]:
        """The label of Shoots that use this type."""
        return {f"{self.place.label}.extensions.gardener.cloud/{self.type}": "true"}

    @property
    def chosen_name(self) -> str:
        """The name of policy and webhooks."""
        return self.name or f"{self.kind.KIND.name}-{self.type}".lower()

    def policy(self) -> tuple[Raw, Raw]:
        """Return the ValidatingAdmissionPolicy and its binding."""
        name = f"{self.chosen_name}.extensions.gardener.cloud"
        rule = {
            "apiGroups": [Shoot.KIND.group],
            "apiVersions": [Shoot.KIND.version],
            "operations": ["CREATE", "UPDATE"],
            "resources": [Shoot.KIND.plural],
        }
        spec: Raw = {
            "failurePolicy": "Fail",
            "matchConstraints": {
                "resourceRules": [rule],
                "objectSelector": {"matchLabels": self.label},
            },
            "matchConditions": [{"name": EXEMPT, "expression": EXEMPTION}, _CHANGED],
            "validations": [
                {"expression": one.expression, "message": one.message, "reason": "Invalid"}
                for one in (*self._checks(), *self._immutable())
            ],
        }
        binding = {"policyName": name, "validationActions": ["Deny"]}
        return (
            manifest(GROUP_VERSION, "ValidatingAdmissionPolicy", name, spec=spec),
            manifest(GROUP_VERSION, "ValidatingAdmissionPolicyBinding", name, spec=binding),
        )

    def webhooks(self) -> list[Webhook]:
        """Return the webhook for defaults and, if the class has problems of its own, for these."""
        shared: dict[str, Any] = {
            "kinds": [Shoot],
            "object_labels": self.label,
            "conditions": {_CHANGED["name"]: _CHANGED["expression"]},
        }
        found = [
            Webhook(
                name=f"default-{self.chosen_name}",
                handle=self._set_defaults,
                mutating=True,
                failure_policy="Ignore",  # the extension knows the defaults as well
                **shared,
            )
        ]
        if self.config.problems is not ProviderConfig.problems:
            found.append(
                Webhook(
                    name=f"validate-{self.chosen_name}",
                    handle=self._find_problems,
                    mutating=False,
                    failure_policy="Fail",
                    **shared,
                )
            )
        return found

    def problems(self, spec: Raw, old: Raw) -> Iterator[FieldProblem]:
        """Yield the problems of a Shoot's spec, and of the changes to the old one ({} for none).

        Finds at least all that the policy finds.
        """
        found = list(self._configs(spec))
        for field, config in found:
            yield from problems_of(self.config, config, field)
        for _, before in () if self._in_pools else self._configs(old):
            for field, config in found:
                yield from changes_of(self.config, before, config, field)

    @property
    def _in_pools(self) -> bool:
        return self.place.holder.startswith(_POOLS)

    def _configs(self, spec: Raw) -> Iterator[tuple[str, Any]]:
        """Yield each configuration of this type with its path."""
        holders: list[tuple[str, Any]] = [("spec", spec)]
        for step in self._steps:
            name = step.removesuffix("[]")
            inner = [(f"{path}.{name}", value.get(name)) for path, value in _maps(holders)]
            if name != step:
                lists = ((path, value) for path, value in inner if isinstance(value, list))
                inner = [(f"{p}[{i}]", one) for p, value in lists for i, one in enumerate(value)]
            holders = inner
        place = self.place
        for path, holder in _maps(holders):
            is_ours = not place.type_field or holder.get(place.type_field) == self.type
            if is_ours and holder.get(place.field) is not None:
                yield f"{path}.{place.field}", holder[place.field]

    @property
    def _steps(self) -> list[str]:
        return self.place.holder.split(".")[1:]

    def _each(self, root: str, prefix: str, check: str) -> str:
        """Return the CEL expression that `check` holds for each configuration below a spec."""

        def descend(v: str, steps: Sequence[str]) -> str:
            if not steps:
                found = present(v, self.place.field)
                if self.place.type_field:
                    found += f" && {self._has_type(v)}"
                return f"(!({found}) || {check})"
            name = steps[0].removesuffix("[]")
            inner = at(v, name)
            if name == steps[0]:
                rest = descend(inner, steps[1:])
            else:
                item = f"{prefix}{name}"
                below = descend(item, steps[1:])
                rest = f"(type({inner}) != list || {inner}.all({item}, {below}))"
            return f"(!({present(v, name)}) || {rest})"

        return descend(root, self._steps)

    def _has_type(self, v: str) -> str:
        field = self.place.type_field
        return f"{present(v, field)} && {at(v, field)} == {text(self.type)}"

    def _value(self, root: str, prefix: str) -> str:
        """Return the CEL expression of a configuration inside `_each`."""
        v = root
        for step in self._steps:
            name = step.removesuffix("[]")
            v = at(v, name) if name == step else f"{prefix}{name}"
        return at(v, self.place.field)

    def _checks(self) -> Iterator[Check]:
        value = self._value("object.spec", "n_")
        field = f"{self.place.holder}.{self.place.field}"
        for one in checks(json_schema(self.config), value, field):
            yield Check(self._each("object.spec", "n_", one.expression), one.message)

    def _immutable(self) -> Iterator[Check]:
        paths = () if self._in_pools else immutable_fields(self.config)
        for path in paths:
            new, old = self._value("object.spec", "n_"), self._value("oldObject.spec", "o_")
            same = f"{_at(new, path)} == {_at(old, path)}"
            both = f"!({_present(new, path)}) || !({_present(old, path)}) || {same}"
            inner = self._each("object.spec", "n_", f"({both})")
            whole = self._each("oldObject.spec", "o_", inner)
            field = ".".join((self.place.holder, self.place.field, *path))
            yield Check(f"oldObject == null || {whole}", f"{field}: field is immutable")

    def _find_problems(self, request: AdmissionRequest[Shoot]) -> Iterator[FieldProblem]:
        yield from self.problems(request.new.spec, request.old.spec if request.old else {})

    def _set_defaults(self, request: AdmissionRequest[Shoot]) -> None:
        defaults = _defaults(json_schema(self.config))
        for _, config in self._configs(request.new.spec):
            if isinstance(config, dict) and not list(problems_of(self.config, config, "")):
                _fill(config, defaults)


def objects(admissions: Iterable[ConfigAdmission]) -> list[tuple[Resource, Raw]]:
    """Return the policies and bindings to install in the garden."""
    return [
        pair for one in admissions for pair in zip((POLICIES, BINDINGS), one.policy(), strict=True)
    ]


def _maps(found: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Raw]]:
    return ((path, value) for path, value in found if isinstance(value, dict))


def _at(v: str, path: Sequence[str]) -> str:
    for name in path:
        v = at(v, name)
    return v


def _present(v: str, path: Sequence[str]) -> str:
    return " && ".join(present(_at(v, path[:index]), name) for index, name in enumerate(path))


def _defaults(schema: Raw) -> Raw:
    """Return the defaults of a schema's fields, with those of nested objects."""
    found: Raw = {}
    for name, part in schema.get("properties", {}).items():
        if name in ("apiVersion", "kind") and len(part.get("enum", ())) == 1:
            found[name] = part["enum"][0]
        elif "default" in part:
            found[name] = part["default"]
        elif "properties" in part:
            found[name] = _defaults(part)
    return found


def _fill(config: Raw, defaults: Raw) -> None:
    """Set absent fields; an absent object stays absent."""
    for name, default in defaults.items():
        if isinstance(default, dict):
            if isinstance(config.get(name), dict):
                _fill(config[name], default)
        elif config.get(name) is None:
            config[name] = default
