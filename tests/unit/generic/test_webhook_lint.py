"""The webhooks that could block deletions or a cluster are found, each with a remedy."""

from typing import Any, ClassVar

import attrs
import pytest

from actuator.cluster import Cluster
from actuator.meta import Kind, Object
from actuator.v1alpha1 import KINDS, BackupBucket, OperatingSystemConfig
from generic.library.managedresources import ManagedResource
from generic.library.webhooks import CloudProfile, NamespacedCloudProfile, Shoot, Webhook
from generic.library.webhooks.lint import findings
from generic.library.webhooks.targets import of_type
from generic.reconciler.orphans import Orphan

LABELS = {"shoot.gardener.cloud/provider": "acme"}


def kind(name: str, group: str = "") -> type[Object]:
    """Return a class for a kind that belongs to no extension."""

    @attrs.define(kw_only=True)
    class Other(Object):
        KIND: ClassVar[Kind] = Kind(name=name, plural=f"{name.lower()}s", finalizer="", group=group)

    return Other


def webhook(**given: Any) -> Webhook:
    """Return a webhook without findings, except for the given fields."""
    usual: dict[str, Any] = {
        "name": "mine",
        "kinds": [OperatingSystemConfig],
        "handle": lambda _request: None,
        "mutating": True,
        "failure_policy": "Fail",
        "namespace_labels": LABELS,
    }
    return Webhook(**usual | given)


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"failure_policy": "Ignore"},
        {"object_labels": LABELS, "namespace_labels": {}},
        {"names": ["kube-apiserver"], "namespace_labels": {}, "failure_policy": "Ignore"},
        {"conditions": of_type("acme"), "namespace_labels": {}},
        {"kinds": [BackupBucket], "object_labels": LABELS},
        {"operations": ["CREATE"]},
        {"kinds": [kind("Deployment", "apps")]},
        {"kinds": [kind("Secret")]},
        {"kinds": [item for item in KINDS if item.KIND.namespaced]},
        {"subresource": "status", "failure_policy": "Ignore"},
        {"subresource": "status", "kinds": [NamespacedCloudProfile]},
        {"subresource": "status", "kinds": [CloudProfile], "object_labels": LABELS},
        {"subresource": "status", "kinds": [NamespacedCloudProfile], "mutating": False},
    ],
)
def test_a_webhook_that_selects_its_objects_has_no_finding(given):
    assert findings([webhook(**given)]) == []


NEVER = [Cluster, Orphan, ManagedResource]
NEVER += [kind(name) for name in ("Namespace", "Node", "Event")]
NEVER += [
    kind("Lease", "coordination.k8s.io"),
    kind("Event", "events.k8s.io"),
    kind("ValidatingWebhookConfiguration", "admissionregistration.k8s.io"),
    kind("ValidatingAdmissionPolicy", "admissionregistration.k8s.io"),
    kind("CustomResourceDefinition", "apiextensions.k8s.io"),
    kind("APIService", "apiregistration.k8s.io"),
    kind("ClusterRole", "rbac.authorization.k8s.io"),
    kind("TokenReview", "authentication.k8s.io"),
    kind("SubjectAccessReview", "authorization.k8s.io"),
    kind("CertificateSigningRequest", "certificates.k8s.io"),
    kind("Machine", "machine.sapcloud.io"),
]


@pytest.mark.parametrize("cls", NEVER, ids=lambda cls: cls.KIND.name)
@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
def test_kinds_that_deletions_and_clusters_depend_on_are_never_intercepted(cls, policy):
    name = cls.KIND.name
    found = findings([webhook(kinds=[cls], failure_policy=policy, object_labels=LABELS)])
    text = f"webhook mine: kinds contains {name}, which deletions or the cluster itself depend on"
    assert found == [f"{text}; remove it"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"namespace_labels": {}}, "it has no selector, so every object of its kinds depends on"),
        (
            {"namespace_labels": {}, "failure_policy": "Ignore"},
            "it has no selector, so every object of its kinds depends on it; set namespace_labels",
        ),
        (
            {"namespace_labels": {}, "names": ["kube-apiserver"]},
            "failure_policy='Fail' with names alone blocks the objects of every extension",
        ),
        # a selector of namespaces selects every object without a namespace
        ({"kinds": [BackupBucket]}, "depends on it; set object_labels"),
        ({"failure_policy": "fail"}, "failure_policy='fail': set Fail or Ignore"),
        ({"kinds": []}, "kinds is empty, so it is never called; set the classes of its objects"),
        ({"operations": ["DELETE"]}, "operations=['DELETE']: set CREATE or UPDATE, or both"),
        ({"operations": ["*"]}, "operations=['*']: set CREATE or UPDATE, or both"),
        ({"operations": []}, "operations=[]: set CREATE or UPDATE, or both"),
        ({"subresource": "status"}, "controllers report about OperatingSystemConfig, which a"),
        (
            {"subresource": "status", "mutating": False, "failure_policy": "Ignore"},
            "which a deletion waits for; remove it, or use mutates(…, failure_policy='Ignore')",
        ),
        ({"subresource": "status", "kinds": [NamespacedCloudProfile, Shoot]}, "about Shoot, which"),
        ({"subresource": "finalizers"}, "subresource='finalizers' intercepts what controllers"),
        ({"subresource": "*"}, "subresource='*' intercepts what controllers report"),
        ({"subresource": "eviction"}, "subresource='eviction' intercepts what controllers"),
    ],
)
def test_a_webhook_that_could_block_a_deletion_is_found_with_its_remedy(given, words):
    [found] = findings([webhook(), webhook(**given)])
    assert found.startswith("webhook mine: ")
    assert words in found


def test_every_problem_of_every_webhook_is_found():
    bad = {"namespace_labels": {}, "operations": ["DELETE"], "subresource": "status"}
    assert len(findings([webhook(**bad), webhook(**bad)])) == 6
