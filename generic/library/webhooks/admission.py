"""Admission of provider configurations in the garden, from their typed classes. Pure.

`ConfigAdmission` is one declaration for a configuration in Shoots, or in another object of the
garden. Everything that CEL can express becomes a ValidatingAdmissionPolicy, which needs no server
(`policies`). Problems that only Python can find become a validating webhook, defaults a mutating
one. Objects under deletion, and configurations that an update does not change, are never checked,
so that an object can be changed elsewhere after rules became stricter (Gardener documentation,
"Extension Admission"; Kubernetes documentation, "Validating Admission Policy").
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from operator import or_
from typing import Any

import attrs

from actuator.immutability import immutable_fields
from actuator.interface import FieldProblem, Permission, ProviderConfig, Resource, texts
from actuator.meta import Object, Raw, value_at
from actuator.provider_config import accepted_versions, changes_of, load_config, version_of
from actuator.schema import content_of, json_schema
from generic.kube.expressions import Expr
from generic.library.webhooks.garden import Shoot
from generic.library.webhooks.jsonpatch import difference
from generic.library.webhooks.places import Place, configurations, place_of
from generic.library.webhooks.policies import BINDINGS, CREATED, POLICIES, configs, policy
from generic.library.webhooks.rules import READ_CLOUD_PROFILES, ConfigReview, Rule, fields_of
from generic.library.webhooks.webhook import AdmissionRequest, Webhook, mutates, validates

_HIBERNATION = "spec.hibernation"


def _check_reads(admission: "ConfigAdmission", _field: object, reads: Sequence[str]) -> None:
    for path in reads:
        if not path.startswith("spec.") or f"{path}.".startswith(f"{_HIBERNATION}."):
            raise ValueError(
                f"{admission.name}: reads={path!r}: set fields such as 'spec.networking', but not "
                f"{_HIBERNATION}: a Shoot hibernates and wakes up without a validation"
            )


def _rules(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    return tuple(rules)


@attrs.frozen(kw_only=True)
class ConfigAdmission:
    """The admission of the configurations of one kind and type, in objects of the garden.

    Raises ValueError for a kind that is not in the garden, and TypeError for a class without a
    schema, or with immutable fields in lists without key or the configurations of pools.
    """

    kind: type[Object]
    """The kind that is configured in a Shoot, or a kind of the garden: CloudProfile,
    NamespacedCloudProfile, Seed, BackupBucket, Shoot, Secret, SecretBinding, CredentialsBinding."""
    config: type[ProviderConfig] | None = None
    """None for the last four, which have only rules."""
    type: str
    rules: Sequence[Rule] = attrs.field(default=(), converter=_rules)
    """Functions of a ConfigReview. They judge a new or changed configuration."""
    reads: Sequence[str] = attrs.field(default=(), converter=texts, validator=_check_reads)
    """The fields of the object, such as "spec.networking", whose changes the rules judge as well.
    Then a problem that the stored object has, too, is no problem."""
    permissions: Sequence[Permission] = ()
    """API access of the rules, besides that to the CloudProfile of a Shoot."""
    defaults: bool = False
    """Whether to write defaults into the configurations of users."""
    place: Place = attrs.field(init=False)

    @place.default
    def _find_place(self) -> Place:
        place = place_of(self.kind)
        if bool(place.field) != (self.config is not None):
            remedy = "set its class" if place.field else "remove it, and set rules=…"
            raise TypeError(f"{place.kind}: config={self.config}; {remedy}")
        if self._has_immutable() and not place.is_single:
            raise TypeError(f"{place.kind}: a field of pools cannot be immutable; remove it")
        return place

    @property
    def label(self) -> dict[str, str]:
        """The label of objects that use this type."""
        return {f"{self.place.label}.gardener.cloud/{self.type}": "true"}

    @property
    def name(self) -> str:
        """The name of policy and webhooks, a DNS label."""
        return f"{self.kind.KIND.name}-{self.type}".lower()

    @property
    def selected(self) -> Webhook:
        """The mutating webhook for defaults; policies select the same requests."""
        # the extension knows the defaults as well
        declare = mutates(self.place.of, failure_policy="Ignore", **self._selection("default"))
        return declare(self._set_defaults)

    def policy(self) -> tuple[Raw, Raw]:
        """Return the ValidatingAdmissionPolicy and its binding. Raises TypeError without config."""
        if self.config is None:
            raise TypeError(f"{self.name}: a policy needs config=…")
        name = f"{self.name}.extensions.gardener.cloud"
        return policy(name, self.selected, self.place, self.type, self.config)

    def webhooks(self) -> list[Webhook]:
        """Return the webhook for defaults, and that for what only Python can find, if needed."""
        found = [self.selected] if self.defaults and self.config else []
        if self.rules or self._needs_python():
            has_profile = self.rules and self.place.of is Shoot
            declare = validates(
                self.place.of,
                failure_policy="Fail",
                permissions=(*(READ_CLOUD_PROFILES if has_profile else ()), *self.permissions),
                **self._selection("validate", *self.reads),
            )
            found.append(declare(self._find_problems))
        return found

    def _selection(self, verb: str, *reads: str) -> dict[str, Any]:
        """Return the fields of a webhook for changes of configurations and of these fields."""
        judged = (self._judged(Expr(root), reads) for root in ("object", "oldObject"))
        differ = (~new.equals(old) for new, old in zip(*judged, strict=True))
        return {
            "name": f"{verb}-{self.name}",
            "object_labels": self.label,
            "conditions": {"configuration-changed": reduce(or_, differ, CREATED).text},
        }

    def _judged(self, root: Expr, reads: Sequence[str]) -> list[Expr]:
        found = [root.optional(*names) for names in self._paths(reads)]
        return [configs(root, self.place, self.type), *found] if self.config else found

    def _paths(self, reads: Sequence[str]) -> list[list[str]]:
        return [path.split(".") for path in (*self.place.reads, *reads)]

    def _needs_python(self) -> bool:
        """Whether the class has rules that no policy can express."""
        versions = accepted_versions(self.config) if self.config else ()
        has_rules = any(version.problems is not ProviderConfig.problems for version in versions)
        return has_rules or (len(versions) > 1 and self._has_immutable())

    def _has_immutable(self) -> bool:
        return self.config is not None and any(immutable_fields(json_schema(self.config)))

    def problems(self, spec: Raw, old: Raw) -> Iterator[FieldProblem]:
        """Yield the problems of a spec, and of the changes to the old one ({} for none).

        Finds at least all that the policy finds, but calls no `rules`.
        """
        before = {"spec": old}
        for path, given in self._given({"spec": spec}):
            if self._is_changed(given, before):
                yield from self._of_class(path, given, before)

    def _of_class(self, path: str, given: Any, old: Raw) -> Iterator[FieldProblem]:
        if self.config is None:
            return
        yield from load_config(self.config, given, path)[1]
        for _, former in self._given(old) if self.place.is_single else ():
            yield from changes_of(self.config, former, given, path)

    def _given(self, obj: Raw) -> list[tuple[str, Any]]:
        """Return the configurations of this type in an object, with their paths."""
        if not self.place.field:
            return [("", None)] if obj else []
        return [
            (path, {} if given is None else given)
            for path, type, given in configurations(self.place, obj)
            if type == self.type or self.place.type_field is None
        ]

    def _is_changed(self, given: Any, old: Raw) -> bool:
        """Whether no configuration before the update is equal."""
        return all(any(difference(former, given)) for _, former in self._given(old))

    def _find_problems(self, request: AdmissionRequest[Any]) -> Iterator[FieldProblem]:
        new = fields_of(request.new)
        old = fields_of(request.old) if request.old else {}
        is_read = _differ(new, old, self._paths(self.reads))
        is_whole = not old or _differ(new, old, self._paths(()))
        for path, given in self._given(new):
            if self._is_changed(given, old) or is_whole:
                found = list(self._of_class(path, given, old))
                yield from found or self._by_rules(path, given, request)
            elif is_read:
                yield from self._by_rules_if_new(path, given, request)

    def _by_rules_if_new(
        self, path: str, given: Any, request: AdmissionRequest[Any]
    ) -> Iterator[FieldProblem]:
        """Yield the problems of an unchanged configuration that the stored object does not have."""
        stored = attrs.evolve(request, operation="CREATE", new=request.old, old=None)
        known = {
            (problem.field.removeprefix(where), problem.detail)
            for where, former in self._given(fields_of(stored.new))
            for problem in self._by_rules(where, former, stored)
        }
        for problem in self._by_rules(path, given, request):
            if (problem.field.removeprefix(path), problem.detail) not in known:
                yield problem

    def _by_rules(
        self, path: str, given: Any, request: AdmissionRequest[Any]
    ) -> Iterator[FieldProblem]:
        """Yield the problems that the rules find in a configuration that can be read."""
        config = self._loaded(given)
        if self.config and config is None:
            return
        old = self._given(fields_of(request.old)) if request.old and self.place.is_single else []
        review = ConfigReview(
            config=config,
            former=self._loaded(old[0][1]) if old else None,
            field=path,
            provider=self.type,
            request=request,
        )
        for rule in self.rules:
            yield from rule(review)

    def _loaded(self, given: Any) -> ProviderConfig | None:
        return load_config(self.config, given, "", rules=False)[0] if self.config else None

    def _set_defaults(self, request: AdmissionRequest[Any]) -> None:
        old = fields_of(request.old) if request.old else {}
        for _, given in self._given(fields_of(request.new)) if self.config else ():
            if self.config and self._is_changed(given, old):
                version, _ = version_of(self.config, given)
                _fill(json_schema(version) if version else {}, given)


def policies(admissions: Iterable[ConfigAdmission]) -> list[tuple[Resource, Raw]]:
    """Return the policies and bindings to install in the garden."""
    return [
        pair
        for admission in admissions
        if admission.config
        for pair in zip((POLICIES, BINDINGS), admission.policy(), strict=True)
    ]


def _differ(new: Raw, old: Raw, paths: Sequence[Sequence[str]]) -> bool:
    return any(any(difference(value_at(old, *at), value_at(new, *at))) for at in paths)


def _fill(schema: Raw, value: Any) -> None:
    """Set absent fields to their defaults; absent and immutable objects stay as they are.

    A password gets none: whoever reads the Shoot would read it.
    """
    if entries := content_of(schema):
        listed = value.values() if isinstance(value, dict) else value
        for item in listed if isinstance(value, list | dict) else ():
            _fill(entries, item)
    for name, part in schema.get("properties", {}).items() if isinstance(value, dict) else ():
        is_constant = name in ("apiVersion", "kind") and len(part.get("enum", ())) == 1
        default = part["enum"][0] if is_constant else part.get("default")
        if value.get(name) is None and default is not None and part.get("format") != "password":
            value[name] = default
        elif "x-kubernetes-validations" not in part:  # the stored value has no defaults
            _fill(part, value.get(name))
