"""Admission of provider configurations in the garden, from their typed classes. Pure.

`ConfigAdmission` is one declaration for a configuration in Shoots. Everything that CEL can express
becomes a ValidatingAdmissionPolicy, which needs no server. Problems that only Python can find
(`ProviderConfig.problems`) become a validating webhook, defaults a mutating one. Shoots under
deletion, and configurations that an update does not change, are never checked, so that a Shoot can
be changed elsewhere after rules became stricter (Gardener documentation, "Extension Admission";
Kubernetes documentation, "Validating Admission Policy").
"""

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

import attrs

from actuator.interface import FieldProblem, ProviderConfig, Resource
from actuator.meta import Kind, Object, Raw
from actuator.provider_config import changes_of, immutable_fields, problems_of
from actuator.schema import json_schema
from generic.library.manifests import manifest
from generic.library.webhooks.cel import Check, at, checks, present, text
from generic.library.webhooks.configurations import EXEMPT, EXEMPTION, GROUP_VERSION
from generic.library.webhooks.jsonpatch import difference
from generic.library.webhooks.objects import kubernetes_kind
from generic.library.webhooks.places import IN_SHOOT, Place, objects
from generic.library.webhooks.webhook import AdmissionRequest, Webhook, mutates, validates

_EACH = "variables.changed.all(c, {})"
POLICIES = Resource(GROUP_VERSION, "validatingadmissionpolicies", namespaced=False)
BINDINGS = Resource(GROUP_VERSION, "validatingadmissionpolicybindings", namespaced=False)


@attrs.define(kw_only=True)
class Shoot(Object):
    """core.gardener.cloud/v1beta1 Shoot."""

    KIND: ClassVar[Kind] = kubernetes_kind("Shoot", "core.gardener.cloud", "v1beta1")

    spec: Raw = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class ConfigAdmission:
    """The admission of the configurations of one kind and type, in Shoots.

    Raises ValueError for a kind that a Shoot does not configure, and TypeError for a class without
    a schema, or with immutable fields in lists, maps or the configurations of pools.
    """

    kind: type[Object]
    config: type[ProviderConfig]
    type: str
    place: Place = attrs.field(init=False)

    @place.default
    def _find_place(self) -> Place:
        name = self.kind.KIND.name
        for place in IN_SHOOT:
            if place.kind == name:
                if immutable_fields(self.config) and not place.is_single:
                    raise TypeError(f"{name}: a field of pools cannot be immutable; remove it")
                return place
        raise ValueError(f"{name}: a Shoot has no configuration of this kind")

    @property
    def label(self) -> dict[str, str]:
        """The label of Shoots that use this type."""
        return {f"{self.place.label}.extensions.gardener.cloud/{self.type}": "true"}

    @property
    def name(self) -> str:
        """The name of policy and webhooks, a DNS label."""
        return f"{self.kind.KIND.name}-{self.type}".lower()

    def policy(self) -> tuple[Raw, Raw]:
        """Return the ValidatingAdmissionPolicy and its binding."""
        name = f"{self.name}.extensions.gardener.cloud"
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
            "matchConditions": [
                {"name": EXEMPT, "expression": EXEMPTION},
                *({"name": name, "expression": cel} for name, cel in self._conditions.items()),
            ],
            "variables": list(self._variables()),
            "validations": [
                {
                    "expression": one.expression,
                    "message": " ".join(one.message.split()),
                    "reason": "Invalid",
                }
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
        name = self.name
        shared: dict[str, Any] = {"object_labels": self.label, "conditions": self._conditions}
        # the extension knows the defaults as well
        defaults = mutates(Shoot, name=f"default-{name}", failure_policy="Ignore", **shared)
        found = [defaults(self._set_defaults)]
        if self.config.problems is not ProviderConfig.problems:
            problems = validates(Shoot, name=f"validate-{name}", failure_policy="Fail", **shared)
            found.append(problems(self._find_problems))
        return found

    def problems(self, spec: Raw, old: Raw) -> Iterator[FieldProblem]:
        """Yield the problems of a Shoot's spec, and of the changes to the old one ({} for none).

        Finds at least all that the policy finds.
        """
        before = self._configurations(old)
        for path, holder in self._changed(spec, before):
            config = self._given(holder)
            yield from problems_of(self.config, config, path)
            for one in before if self.place.is_single else ():
                yield from changes_of(self.config, one, config, path)

    def _configurations(self, spec: Raw) -> list[Any]:
        return [self._given(holder) for _, holder in self._holders(spec)]

    def _changed(self, spec: Raw, before: list[Any]) -> list[tuple[str, Raw]]:
        """Return the holders, with the paths, of configurations that are not in the old spec."""
        return [
            one
            for one in self._holders(spec)
            if all(any(difference(old, self._given(one[1]))) for old in before)
        ]

    def _given(self, holder: Raw) -> Any:
        given = holder.get(self.place.field)
        return {} if given is None else given

    def _holders(self, spec: Raw) -> Iterator[tuple[str, Raw]]:
        """Yield each object with a configuration of this type, and the configuration's path.

        A shoot without workers needs only configurations of Extensions.
        """
        place, provider = self.place, spec.get("provider") or {}
        for path, holder in objects({"spec": spec}, place.holder):
            found = (holder if place.type_field else provider).get(place.type_field or "type")
            given = holder.get(place.field) is not None
            if found == self.type and (given or self._is_extension or provider.get("workers")):
                yield f"{path}.{place.field}", holder

    @property
    def _is_extension(self) -> bool:
        return self.place.kind == "Extension"

    @property
    def _conditions(self) -> dict[str, str]:
        new, old = self._configs("object"), self._configs("oldObject")
        return {"configuration-changed": f"request.operation == 'CREATE' || {new} != {old}"}

    def _variables(self) -> Iterator[Raw]:
        """Yield the configurations before an update, and those to check."""
        yield {
            "name": "before",
            "expression": f"request.operation == 'CREATE' ? [] : {self._configs('oldObject')}",
        }
        changed = ".filter(c, !(c in variables.before))"
        if self._is_nested:
            changed = ".map(l, l.filter(c, !variables.before.exists(b, c in b)))"
        yield {"name": "changed", "expression": f"{self._configs('object')}{changed}"}

    @property
    def _is_nested(self) -> bool:
        return self.place.holder.count("[]") > 1

    def _configs(self, root: str) -> str:
        """Return the CEL expression of the list of configurations, for lists in lists of lists."""
        place = self.place
        given = f"has(h.{place.field}) && h.{place.field} != null"
        beside = f"h.?{place.type_field}" if place.type_field else f"{root}.spec.?provider.?type"
        chosen = f"{beside}.orValue('') == {text(self.type)}"
        if not self._is_extension:
            chosen += f" && ({given} || size({root}.spec.?provider.?workers.orValue([])) > 0)"
        mapped = f".map(h, {chosen}, {given} ? h.{place.field} : {{}})"
        *lists, last = place.holder.split("[]")
        if not lists:
            return f"[{_select(root, last)}.orValue({{}})]{mapped}"
        outer = f"{_select(root, lists[0])}.orValue([])"
        if self._is_nested:
            return f"{outer}.map(w, {_select('w', lists[1])}.orValue([]){mapped})"
        return (
            f"{outer}.map(w, {_select('w', last)}.orValue({{}})){mapped}"
            if last
            else outer + mapped
        )

    def _checks(self) -> Iterator[Check]:
        each = "variables.changed.all(l, l.all(c, {}))" if self._is_nested else _EACH
        field = f"{self.place.holder}.{self.place.field}"
        for one in checks(json_schema(self.config), "c", field):
            yield Check(each.format(one.expression), one.message)

    def _immutable(self) -> Iterator[Check]:
        for path, default in immutable_fields(self.config):
            old, new = _at("b", path, default), _at("c", path, default)
            same = f"variables.before.all(b, {old} == null || {old} == {new})"
            field = ".".join((self.place.holder, self.place.field, *path))
            message = f"{field}: field is immutable; set its former value"
            yield Check(_EACH.format(same), message)

    def _find_problems(self, request: AdmissionRequest[Shoot]) -> Iterator[FieldProblem]:
        yield from self.problems(request.new.spec, request.old.spec if request.old else {})

    def _set_defaults(self, request: AdmissionRequest[Shoot]) -> None:
        schema = json_schema(self.config)
        before = self._configurations(request.old.spec) if request.old else []
        for _, holder in self._changed(request.new.spec, before):
            _fill(schema, holder.get(self.place.field))


def policies(admissions: Iterable[ConfigAdmission]) -> list[tuple[Resource, Raw]]:
    """Return the policies and bindings to install in the garden."""
    return [
        pair for one in admissions for pair in zip((POLICIES, BINDINGS), one.policy(), strict=True)
    ]


def _select(root: str, path: str) -> str:
    return "".join([root, *(f".?{name}" for name in path.strip(".").split("."))])


def _at(v: str, path: Iterable[str], default: object) -> str:
    """Return the CEL expression of the value at a path, or the default."""
    tests = []
    for name in path:
        tests.append(present(v, name))
        v = at(v, name)
    return f"({' && '.join(tests)} ? {v} : {text(default)})"


def _fill(schema: Raw, value: Any) -> None:
    """Set absent fields to their defaults; absent and immutable objects stay as they are.

    A password gets none: whoever reads the Shoot would read it.
    """
    if isinstance(value, list):
        for item in value:
            _fill(schema.get("items", {}), item)
    if not isinstance(value, dict):
        return
    if isinstance(entries := schema.get("additionalProperties"), dict):
        for item in value.values():
            _fill(entries, item)
    for name, part in schema.get("properties", {}).items():
        is_constant = name in ("apiVersion", "kind") and len(part.get("enum", ())) == 1
        default = part["enum"][0] if is_constant else part.get("default")
        if value.get(name) is None and default is not None and part.get("format") != "password":
            value[name] = default
        elif "x-kubernetes-validations" not in part:  # the stored value has no defaults
            _fill(part, value.get(name))
