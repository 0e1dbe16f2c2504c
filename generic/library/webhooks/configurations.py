"""Renders webhooks as MutatingWebhookConfiguration and ValidatingWebhookConfiguration. Pure.

Everything that decides about blast radius is explicit: operations, selectors, failure policy,
timeout, side effects (Kubernetes documentation, "Dynamic Admission Control" and "Admission Webhook
Good Practices"). The API server itself exempts objects under deletion, so that a deletion works
while no server answers.
"""

import base64
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from urllib.parse import urlsplit

import attrs

from actuator.interface import Resource
from actuator.meta import Raw
from generic.kube.deleting import CONFIRM_DELETION
from generic.kube.expressions import Expr
from generic.library.manifests import manifest
from generic.library.webhooks.webhook import Webhook

GROUP_VERSION = "admissionregistration.k8s.io/v1"
MUTATING = Resource(GROUP_VERSION, "mutatingwebhookconfigurations", namespaced=False)
VALIDATING = Resource(GROUP_VERSION, "validatingwebhookconfigurations", namespaced=False)
PREFIX = "gardener-extension-"
EXEMPTION = "!has(object.metadata.deletionTimestamp)"
EXEMPT = {"name": "exempt-objects-under-deletion", "expression": EXEMPTION}
_NO_REMEDIATION = "remediation.webhook.shoot.gardener.cloud/exclude"
"""gardenlet changes webhooks in shoots that could block them, unless they have this label."""
_SPEC = Expr("object").optional("spec")
_CONFIRMATION = Expr("object").optional("metadata", "annotations", CONFIRM_DELETION)
_CONFIRMED = {
    "name": "exempt-confirmed-deletions",
    "expression": (
        ~Expr("request.operation").equals("UPDATE")
        | ~_CONFIRMATION.method("hasValue")
        | ~_SPEC.method("hasValue")
        | ~_SPEC.equals(Expr("oldObject").optional("spec"))
    ).text,
}
"""gardenlet confirms a deletion in the annotations of an object just before it deletes it."""


class Mode(StrEnum):
    """How the API server reaches the server (Gardener's values of --webhook-config-mode)."""

    SERVICE = "service"
    """By the Service of the extension, in the cluster of the manager."""
    URL = "url"
    """By a URL: the manager runs outside of the cluster."""
    URL_SERVICE = "url-service"
    """By the host name of the Service, for API servers that run in the manager's cluster."""


@attrs.frozen(kw_only=True)
class Endpoint:
    """Where the server is reached."""

    mode: Mode
    name: str
    """The extension; its Service is gardener-extension-NAME."""
    namespace: str
    """The namespace of the Service."""
    port: int
    host: str = ""
    """HOST or HOST:PORT of the mode url."""

    @property
    def service(self) -> str:
        """The name of the Service and of the configurations."""
        return prefixed(self.name)

    @property
    def host_names(self) -> list[str]:
        """The names, or addresses, that the certificate of the server is for."""
        if self.mode is Mode.URL:
            return [urlsplit(f"//{self.host}").hostname or ""]
        short = f"{self.service}.{self.namespace}"
        return [short, f"{short}.svc", f"{short}.svc.cluster.local"]

    def client_config(self, path: str, authorities: bytes) -> Raw:
        """Return the clientConfig for a path of the server, trusting these PEM certificates."""
        trust = {"caBundle": base64.b64encode(authorities).decode()}
        if self.mode is Mode.SERVICE:
            where = {"namespace": self.namespace, "name": self.service}
            return {**trust, "service": {**where, "path": path, "port": self.port}}
        host = f"{self.service}.{self.namespace}:{self.port}"
        return {**trust, "url": f"https://{self.host if self.mode is Mode.URL else host}{path}"}


def prefixed(name: str) -> str:
    """Return the name of an extension with Gardener's prefix."""
    return f"{PREFIX}{_short(name)}"


def _short(name: str) -> str:
    return name.removeprefix("gardener-").removeprefix("extension-")


def configurations(
    webhooks: Iterable[Webhook], endpoint: Endpoint, authorities: bytes, *, suffix: str = ""
) -> list[tuple[Resource, Raw]]:
    """Return up to two configurations with these webhooks; their name ends with `suffix`."""
    given = list(webhooks)
    found = []
    for resource, kind, mutating in (
        (MUTATING, "MutatingWebhookConfiguration", True),
        (VALIDATING, "ValidatingWebhookConfiguration", False),
    ):
        entries = [
            _entry(item, endpoint, authorities) for item in given if item.mutating is mutating
        ]
        if entries:
            name = f"{endpoint.service}{suffix}"
            labels = {_NO_REMEDIATION: "true"}
            rendered = manifest(GROUP_VERSION, kind, name, labels=labels, webhooks=entries)
            found.append((resource, rendered))
    return found


def _entry(webhook: Webhook, endpoint: Endpoint, authorities: bytes) -> Raw:
    short = _short(endpoint.name).removeprefix("provider-")
    return {
        "name": f"{webhook.name}.{short}.extensions.gardener.cloud",
        "clientConfig": endpoint.client_config(webhook.path, authorities),
        "rules": list(rules(webhook)),
        "matchConditions": list(conditions(webhook)),
        # A rule names one version of a kind; objects sent in another version are converted to it.
        "matchPolicy": "Equivalent",
        "namespaceSelector": _selector(webhook.namespace_labels),
        "objectSelector": _selector(webhook.object_labels),
        "failurePolicy": webhook.failure_policy,
        "sideEffects": "None",
        "timeoutSeconds": webhook.timeout_seconds,
        "admissionReviewVersions": ["v1"],
        **({"reinvocationPolicy": "Never"} if webhook.mutating else {}),
    }


def rules(webhook: Webhook) -> Iterator[Raw]:
    """Yield the rules that select the requests of a webhook."""
    for cls in webhook.kinds:
        kind = cls.KIND
        resource = f"{kind.plural}/{webhook.subresource}" if webhook.subresource else kind.plural
        yield {
            "operations": list(webhook.operations),
            "apiGroups": [kind.group],
            "apiVersions": [kind.version],
            "resources": [resource],
            "scope": "Namespaced" if kind.namespaced else "Cluster",
        }


def conditions(webhook: Webhook) -> Iterator[Raw]:
    """Yield the expressions that have to be true for such a request."""
    yield EXEMPT
    if any(cls.KIND.group.endswith("gardener.cloud") for cls in webhook.kinds):
        yield _CONFIRMED
    if webhook.names:
        own = Expr("object").optional("metadata", "name").method("orValue", "")  # or generateName
        yield {"name": "names", "expression": own.relation("in", webhook.names).text}
    for name, expression in webhook.conditions.items():
        yield {"name": name, "expression": expression}


def _selector(labels: Mapping[str, str]) -> Raw:
    return {"matchLabels": dict(labels)} if labels else {}
