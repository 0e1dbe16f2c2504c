"""Admission webhooks that the API server calls for our patches, and that may refuse them.

Source: Kubernetes documentation, "Dynamic Admission Control" (rules, selectors, failurePolicy).
matchConditions are only mentioned: only the API server can evaluate them.
"""

from collections.abc import Iterator, Mapping, Sequence

import attrs

from actuator.codec import decode
from actuator.errors import DecodeError
from actuator.interface import Resource
from actuator.meta import Kind, Raw
from actuator.v1alpha1 import LabelSelector, LabelSelectorRequirement
from generic.tools.explain.facts import Webhook
from generic.tools.explain.reader import Reader

_ADMISSION = "admissionregistration.k8s.io/v1"
_VALIDATING = Resource(_ADMISSION, "validatingwebhookconfigurations", namespaced=False)
_MUTATING = Resource(_ADMISSION, "mutatingwebhookconfigurations", namespaced=False)

Labels = Mapping[str, str]


@attrs.frozen
class Target:
    """The properties of an object by which webhooks select it."""

    kind: Kind
    labels: Labels
    namespace_labels: Labels | None
    """None if unknown: then every selector may match."""


def webhooks(reader: Reader, target: Target) -> Iterator[Webhook]:
    """Yield the webhooks that would be called, with configuration and name."""
    for resource in (_VALIDATING, _MUTATING):
        for configuration in reader.list(resource):
            for webhook in configuration.get("webhooks") or ():
                patches = tuple(_patches(webhook.get("rules") or (), target.kind))
                if patches and _is_selected(webhook, target):
                    yield Webhook(
                        configuration=configuration["metadata"]["name"],
                        name=webhook["name"],
                        mutating=resource == _MUTATING,
                        failure_policy=webhook.get("failurePolicy") or "Fail",
                        patches=patches,
                        conditional=bool(webhook.get("matchConditions")),
                    )


def _patches(rules: Sequence[Raw], kind: Kind) -> Iterator[str]:
    """Yield those of our patches that the rules cover."""
    covering = [rule for rule in rules if _covers(rule, kind)]
    for what, patterns in (
        ("finalizers", {"*", "*/*", kind.plural}),
        ("status", {"*/*", "*/status", f"{kind.plural}/*", f"{kind.plural}/status"}),
    ):
        if any(patterns & set(rule.get("resources") or ()) for rule in covering):
            yield what


def _covers(rule: Raw, kind: Kind) -> bool:
    scope = "Namespaced" if kind.namespaced else "Cluster"
    return all(
        {wanted, "*"} & set(rule.get(field) or ())
        for field, wanted in (
            ("operations", "UPDATE"),
            ("apiGroups", kind.group),
            ("apiVersions", kind.version),
        )
    ) and rule.get("scope", "*") in ("*", scope)


def _is_selected(webhook: Raw, target: Target) -> bool:
    if not _matches(webhook.get("objectSelector"), target.labels):
        return False
    if not target.kind.namespaced or target.namespace_labels is None:
        return True
    return _matches(webhook.get("namespaceSelector"), target.namespace_labels)


def _matches(selector: Raw | None, labels: Labels) -> bool:
    """Return whether the selector matches, or may match, these labels."""
    try:
        wanted = decode(LabelSelector, selector or {})
    except DecodeError:
        return True
    exact = all(labels.get(key) == value for key, value in wanted.match_labels.items())
    return exact and all(_meets(requirement, labels) for requirement in wanted.match_expressions)


def _meets(requirement: LabelSelectorRequirement, labels: Labels) -> bool:
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value in requirement.values
        case "NotIn":
            return value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    return True
