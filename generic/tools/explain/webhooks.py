"""Admission webhooks that the API server calls for our patches, and that may refuse them.

Source: Kubernetes documentation, "Dynamic Admission Control" (rules, selectors, failurePolicy).
Of matchConditions, only the exemption of objects under deletion is recognized: only the API server
can evaluate the others. Whether a webhook works is read from the errors that the API server gave.
"""

from collections.abc import Iterator, Mapping, Sequence

import attrs

from actuator.codec import decode
from actuator.errors import DecodeError
from actuator.meta import Kind, Raw
from actuator.v1alpha1 import LabelSelector, LabelSelectorRequirement
from generic.library.webhooks.configurations import EXEMPT, MUTATING, VALIDATING
from generic.tools.explain.facts import CalledWebhook, Standing, WarningEvent
from generic.tools.explain.reader import Reader

Labels = Mapping[str, str]


@attrs.frozen
class SelectedObject:
    """The properties of an object by which webhooks select it."""

    kind: Kind
    labels: Labels
    namespace_labels: Labels | None
    """None if unknown: then every selector may match."""
    errors: Sequence[str] = ()
    """The reported errors, latest first, in which the API server may name a webhook."""


def errors_of(standing: Standing, warnings: Sequence[WarningEvent]) -> list[str]:
    """Return the errors that an object reports, latest first."""
    last = [standing.last_error.description] if standing.last_error else []
    conditions = (condition.message for condition in standing.conditions)
    return [*last, *conditions, *(warning.message for warning in warnings)]


def webhooks(reader: Reader, target: SelectedObject) -> Iterator[CalledWebhook]:
    """Yield the webhooks that select the object, with configuration and name."""
    for resource in (VALIDATING, MUTATING):
        for configuration in reader.list(resource):
            for webhook in configuration.get("webhooks") or ():
                patches = tuple(_patches(webhook.get("rules") or (), target.kind))
                if patches and _is_selected(webhook, target):
                    conditions = webhook.get("matchConditions") or ()
                    name = f'webhook "{webhook["name"]}"'
                    yield CalledWebhook(
                        configuration=configuration["metadata"]["name"],
                        name=webhook["name"],
                        mutating=resource == MUTATING,
                        failure_policy=webhook.get("failurePolicy") or "Fail",
                        patches=patches,
                        conditional=any(not _is_exemption(condition) for condition in conditions),
                        exempts_deletion=any(map(_is_exemption, conditions)),
                        ours=any(condition["name"] == EXEMPT["name"] for condition in conditions),
                        error=next((text for text in target.errors if name in text), ""),
                    )


def _is_exemption(condition: Raw) -> bool:
    return "".join(condition["expression"].split()) == EXEMPT["expression"]


def _patches(rules: Sequence[Raw], kind: Kind) -> Iterator[str]:
    """Yield those of our patches, and gardenlet's deletion, that the rules cover."""
    objects = {"*", "*/*", kind.plural}
    for what, operation, patterns in (
        ("finalizers", "UPDATE", objects),
        ("status", "UPDATE", {"*/*", "*/status", f"{kind.plural}/*", f"{kind.plural}/status"}),
        ("deletion", "DELETE", objects),
    ):
        covering = (rule for rule in rules if _covers(rule, kind, operation))
        if any(patterns & set(rule.get("resources") or ()) for rule in covering):
            yield what


def _covers(rule: Raw, kind: Kind, operation: str) -> bool:
    scope = "Namespaced" if kind.namespaced else "Cluster"
    return all(
        {wanted, "*"} & set(rule.get(field) or ())
        for field, wanted in (
            ("operations", operation),
            ("apiGroups", kind.group),
            ("apiVersions", kind.version),
        )
    ) and rule.get("scope", "*") in ("*", scope)


def _is_selected(webhook: Raw, target: SelectedObject) -> bool:
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
