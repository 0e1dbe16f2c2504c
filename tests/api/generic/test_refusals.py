"""Why the API server refuses a request: the reason and the remedy, from its own answers."""

import secrets
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from itertools import count
from typing import Any

import pytest

from actuator import Resource
from actuator.errors import ApiError, ErrorCode
from actuator.v1alpha1 import Infrastructure
from generic.kube.client import connect
from generic.kube.clusters import NAMESPACES
from generic.kube.errorinfo import read_error
from generic.reconciler.orphans import ORPHANS
from tests.support.cluster.harness import (
    BINDINGS,
    EVENTS,
    INFRASTRUCTURES,
    ROLES,
    eventually,
    is_allowed,
    remove_namespace,
)
from tests.support.objects.builders import infrastructure

SECRETS = Resource("v1", "secrets")
PODS = Resource("v1", "pods")
QUOTAS = Resource("v1", "resourcequotas")
RANGES = Resource("v1", "limitranges")
_ADMISSION = "admissionregistration.k8s.io/v1"
POLICIES = Resource(_ADMISSION, "validatingadmissionpolicies", namespaced=False)
POLICY_BINDINGS = Resource(_ADMISSION, "validatingadmissionpolicybindings", namespaced=False)
WEBHOOKS = Resource(_ADMISSION, "validatingwebhookconfigurations", namespaced=False)
FORBIDDING = {"spec": {"hard": {"count/secrets": "0", f"count/{INFRASTRUCTURES}": "0"}}}
_RULES = [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"]}]
_RESOURCES = ["secrets", "events", "infrastructures", "infrastructures/status", "orphans"]

OBJECT = infrastructure("", "none")
SECRET: dict[str, Any] = {}
EVENT = {"involvedObject": {"kind": "Infrastructure"}, "reason": "Test"}
POD = {"spec": {"containers": [{"name": "a", "image": "a", "resources": {"limits": {"cpu": 2}}}]}}
ORPHAN = {
    "apiVersion": ORPHANS.api_version,
    "kind": "Orphan",
    "spec": {
        "resourceType": "vpc",
        "object": {"apiVersion": "v1", "kind": "Probe", "name": "x", "uid": "x"},
        "reason": "ForceDeleted",
        "recordedAt": "2026-01-01T00:00:00Z",
    },
}


class Scene:
    """A namespace in which something refuses requests, and the client to send them."""

    def __init__(self, environment: Any, admin: Any, stack: ExitStack) -> None:
        self.environment = environment
        self.admin = admin
        self.stack = stack
        self.name = f"refused-{secrets.token_hex(4)}"
        self.client = admin
        self.numbers = count()
        labels = {"kubernetes.io/metadata.name": self.name}
        admin.create(NAMESPACES, {"metadata": {"name": self.name, "labels": labels}})
        self._create(INFRASTRUCTURES, OBJECT, "stored")

    def _create(self, resource: Resource, obj: Any, name: str) -> Any:
        meta = {"name": name, "namespace": self.name}
        return self.client.create(resource, {**obj, "metadata": meta})

    def create(self, resource: Resource, obj: Any) -> None:
        """The refused request; the name of an Orphan begins like that of the namespace."""
        if "involvedObject" in obj:
            obj = {**obj, "involvedObject": {**obj["involvedObject"], "namespace": self.name}}
        self._create(resource, obj, self._next())

    def guard(self) -> None:
        """The refused request: a finalizer on an object."""
        finalizers = [Infrastructure.KIND.finalizer, f"example.org/{self._next()}"]
        patch = {"metadata": {"finalizers": finalizers}}
        self.client.patch(INFRASTRUCTURES, "stored", self.name, patch)

    def report(self) -> None:
        """The refused request: a status."""
        status = {"status": {"state": {"text": self._next()}}}
        self.client.patch(INFRASTRUCTURES, "stored", self.name, status, subresource="status")

    def _next(self) -> str:
        return f"{self.name}-{next(self.numbers)}"

    def _cleaned(self, resource: Resource, obj: Any) -> None:
        self.admin.create(resource, obj)
        self.stack.callback(self.admin.delete, resource, obj["metadata"]["name"])

    def quota(self) -> None:
        self._create(QUOTAS, FORBIDDING, "few")
        hard = FORBIDDING["spec"]["hard"]  # nothing runs the quota controller here
        status = {"status": {"hard": hard, "used": dict.fromkeys(hard, "0")}}
        self.client.patch(QUOTAS, "few", self.name, status, subresource="status")

    def unknown_quota(self) -> None:
        self._create(QUOTAS, FORBIDDING, "few")
        status = {"status": {"hard": FORBIDDING["spec"]["hard"]}}
        self.client.patch(QUOTAS, "few", self.name, status, subresource="status")

    def limits(self) -> None:
        self._create(RANGES, {"spec": {"limits": [{"type": "Container", "max": {"cpu": 1}}]}}, "a")

    def pod_security(self) -> None:
        labels = {"pod-security.kubernetes.io/enforce": "restricted"}
        self.admin.patch(NAMESPACES, self.name, "", {"metadata": {"labels": labels}})

    def terminating(self) -> None:
        held = {"metadata": {"finalizers": ["example.org/held"]}}
        self.client.patch(INFRASTRUCTURES, "stored", self.name, held)
        self.admin.delete(NAMESPACES, self.name)
        self.stack.callback(
            self.admin.patch, INFRASTRUCTURES, "stored", self.name, {"metadata": {"finalizers": []}}
        )

    def policy(self, reason: str = "Invalid", message: str = "not today") -> None:
        ours = f"object.metadata.name.startsWith('{self.name}')"
        ours = f"{ours} || object.metadata.?namespace.orValue('') == '{self.name}'"
        condition = {"name": "ours", "expression": ours}
        spec = {
            "matchConstraints": {"resourceRules": [{**_RULES[0], "resources": _RESOURCES}]},
            "matchConditions": [condition],
            "validations": [{"expression": "false", "reason": reason, "message": message}],
        }
        self._cleaned(POLICIES, {"metadata": {"name": self.name}, "spec": spec})
        binding = {"policyName": self.name, "validationActions": ["Deny"]}
        self._cleaned(POLICY_BINDINGS, {"metadata": {"name": self.name}, "spec": binding})

    def dead_webhook(self) -> None:
        selector = {"matchLabels": {"kubernetes.io/metadata.name": self.name}}
        webhook = {
            "name": "dead.example.org",
            "clientConfig": {"url": "https://127.0.0.1:1/x"},
            "rules": [{**_RULES[0], "resources": _RESOURCES}],
            "namespaceSelector": selector,
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "timeoutSeconds": 1,
        }
        self._cleaned(WEBHOOKS, {"metadata": {"name": self.name}, "webhooks": [webhook]})

    def no_permission(self) -> None:
        self.client = connect(self.environment.user_kubeconfig("nobody-at-all"))

    def role_maker(self) -> None:
        """May create roles and nothing else, so it may grant nothing."""
        meta = {"name": self.name}
        rule = {"apiGroups": [ROLES.group], "resources": ["clusterroles"], "verbs": ["create"]}
        self._cleaned(ROLES, {"metadata": meta, "rules": [rule]})
        subject = {"kind": "User", "name": self.name, "apiGroup": ROLES.group}
        role = {"apiGroup": ROLES.group, "kind": "ClusterRole", "name": self.name}
        self._cleaned(BINDINGS, {"metadata": meta, "roleRef": role, "subjects": [subject]})
        self.client = connect(self.environment.user_kubeconfig(self.name))
        eventually(lambda: is_allowed(self.admin, self.name, "create", "clusterroles", ROLES.group))

    def removed_namespace(self) -> None:
        held = {"metadata": {"finalizers": ["example.org/held"]}}
        self.client.patch(INFRASTRUCTURES, "stored", self.name, held)
        remove_namespace(self.admin, self.name)

    def nothing(self) -> None:
        """Nothing is wrong but the request."""


ROLE = {"rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]}
_THINGS = Resource("no.example/v1", "things")
_OTHER_VERSION = Resource(INFRASTRUCTURES.api_version.replace("v1alpha1", "v9"), "infrastructures")


def creates(resource: Resource, obj: Any) -> Callable[[Scene], None]:
    return lambda scene: scene.create(resource, obj)


IN_PLACE = {"finalizer": Scene.guard, "status": Scene.report}
IN_NAMESPACE = {
    "object": creates(INFRASTRUCTURES, OBJECT),
    "Secret": creates(SECRETS, SECRET),
    "event": creates(EVENTS, EVENT),
}
ALL = IN_PLACE | IN_NAMESPACE | {"Orphan": creates(ORPHANS, ORPHAN)}


def of(requests: dict[str, Any], *names: str) -> list[Any]:
    return [requests[name] for name in names]


LAW = [
    (Scene.quota, "QuotaExceeded", "raise the ResourceQuota", of(ALL, "object", "Secret")),
    (Scene.unknown_quota, "QuotaExceeded", "raise the ResourceQuota", of(ALL, "Secret")),
    (Scene.limits, "AdmissionDenied", "LimitRanger", [creates(PODS, POD)]),
    (Scene.pod_security, "PolicyDenied", "remove the policy", [creates(PODS, POD)]),
    (Scene.terminating, "NamespaceTerminating", "nothing can be created", IN_NAMESPACE.values()),
    (Scene.policy, "PolicyDenied", "remove the policy", ALL.values()),
    (
        partial(Scene.policy, reason="Forbidden", message="exceeded quota: few, says User"),
        "PolicyDenied",
        "remove the policy",
        ALL.values(),
    ),
    (Scene.dead_webhook, "WebhookDenied", "restore its server", [*IN_PLACE.values()]),
    (Scene.no_permission, "Forbidden", "`actuator rbac`", ALL.values()),
    (Scene.role_maker, "Forbidden", "`actuator rbac`", [creates(ROLES, ROLE)]),
    (
        Scene.removed_namespace,
        "NamespaceMissing",
        "create the namespace again",
        [*IN_PLACE.values(), *IN_NAMESPACE.values()],
    ),
    (
        Scene.nothing,
        "NotServed",
        "install the CRD",
        [creates(_THINGS, {}), lambda scene: scene.client.list(_THINGS, scene.name)],
    ),
    (
        Scene.nothing,
        "UnexpectedAnswer",
        "check proxies",
        [lambda scene: scene.client.list(_OTHER_VERSION, scene.name)],
    ),
    (
        Scene.nothing,
        "RefusedByAPIServer",
        "is invalid",
        [
            creates(INFRASTRUCTURES, {**OBJECT, "spec": {"type": 3}}),
            creates(ORPHANS, {**ORPHAN, "spec": {}}),
        ],
    ),
]


@pytest.fixture
def scene(environment, admin):
    with ExitStack() as stack:
        yield Scene(environment, admin, stack)


@pytest.mark.parametrize(
    ("refusing", "reason", "remedy", "requests"),
    LAW,
    ids=[f"{number}-{row[1]}" for number, row in enumerate(LAW)],
)
def test_each_refusal_has_its_reason_and_its_remedy(scene, refusing, reason, remedy, requests):
    refusing(scene)
    for request in requests:
        info = read_error(eventually(lambda request=request: refusal(scene, request)))
        codes = [ErrorCode.ERR_CONFIGURATION_PROBLEM] if reason == "NotServed" else []
        assert (info.blocked_reason, [*info.codes]) == (reason, codes), info.text
        assert remedy in info.text, info.text
        assert ("actuator rbac" in info.text) is (reason == "Forbidden"), info.text


def refusal(scene: Scene, request: Callable[[Scene], None]) -> ApiError | None:
    """The error of the request: a policy and a quota are enforced some moments later."""
    try:
        request(scene)
    except ApiError as error:
        return error
    return None
