"""Lint: which webhooks could block deletions, or a whole cluster. Pure.

`Manager.add_webhooks` refuses such a webhook. Objects under deletion are exempt anyway; these rules
are about the requests before and around a deletion: a webhook without selectors, or on the kinds
that Kubernetes and Gardener need to work at all. Sources: Kubernetes documentation, "Admission
Webhook Good Practices"; Gardener documentation, "Shoot Status" (problematic webhooks).
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import get_args

from actuator.cluster import Cluster
from actuator.meta import GROUP, Kind
from generic.library.webhooks.webhook import FailurePolicy, Operation, Webhook
from generic.reconciler.orphans import RECORD_KINDS, Orphan

_NEVER: Mapping[str, str] = {
    "": "Event Namespace Node",
    "admissionregistration.k8s.io": "*",
    "apiextensions.k8s.io": "*",
    "apiregistration.k8s.io": "*",
    "authentication.k8s.io": "*",
    "authorization.k8s.io": "*",
    "certificates.k8s.io": "*",
    "coordination.k8s.io": "*",
    "events.k8s.io": "*",
    "machine.sapcloud.io": "*",
    "rbac.authorization.k8s.io": "*",
    "resources.gardener.cloud": "*",
    GROUP: Cluster.KIND.name,
    Orphan.KIND.group: " ".join(cls.KIND.name for cls in RECORD_KINDS),
}
"""Kinds by group that are never intercepted; a force deletion writes Machines, ManagedResources,
the Cluster and its records while these are not under deletion themselves."""


_REPORTS_NOTHING: Mapping[str, str] = {"core.gardener.cloud": "CloudProfile NamespacedCloudProfile"}
"""Kinds by group whose status no deletion waits for."""


def findings(webhooks: Iterable[Webhook]) -> list[str]:
    """Return one sentence for each problem: the webhook, its field, and the remedy."""
    return [
        f"webhook {webhook.name}: {problem}"
        for webhook in webhooks
        for problem in (*_of_rules(webhook), *_of_selectors(webhook))
    ]


def _of_rules(webhook: Webhook) -> Iterator[str]:
    if not webhook.kinds:
        yield "kinds is empty, so it is never called; set the classes of its objects"
    for kind in (cls.KIND for cls in webhook.kinds):
        if _contains(_NEVER, kind):
            yield (
                f"kinds contains {kind.name}, which deletions or the cluster itself depend on; "
                "remove it"
            )
    if webhook.subresource in ("*", "eviction", "finalizers"):
        yield (
            f"subresource={webhook.subresource!r} intercepts what controllers report, evict or "
            "release; remove it"
        )
    if webhook.subresource == "status" and not webhook.never_refuses:
        for kind in (cls.KIND for cls in webhook.kinds):
            if not _contains(_REPORTS_NOTHING, kind):
                yield (
                    f"subresource='status' intercepts what controllers report about {kind.name}, "
                    "which a deletion waits for; remove it, or use mutates(…, "
                    "failure_policy='Ignore')"
                )
    known = get_args(Operation)
    if not webhook.operations or not set(webhook.operations) <= {*known}:
        yield f"operations={list(webhook.operations)}: set {' or '.join(known)}, or both"


def _of_selectors(webhook: Webhook) -> Iterator[str]:
    namespaced = all(cls.KIND.namespaced for cls in webhook.kinds)
    labels = webhook.object_labels or (namespaced and webhook.namespace_labels)
    fields = "namespace_labels or object_labels" if namespaced else "object_labels"
    if webhook.failure_policy not in get_args(FailurePolicy):
        yield f"failure_policy={webhook.failure_policy!r}: set Fail or Ignore"
    elif not (labels or webhook.names or webhook.conditions):
        yield f"it has no selector, so every object of its kinds depends on it; set {fields}"
    elif not (labels or webhook.conditions) and webhook.failure_policy == "Fail":
        yield (
            "failure_policy='Fail' with names alone blocks the objects of every extension while "
            f"its server is down; set {fields}, or failure_policy='Ignore'"
        )


def _contains(kinds: Mapping[str, str], kind: Kind) -> bool:
    names = kinds.get(kind.group, "").split()
    return "*" in names or kind.name in names
