"""A manager under its generated Role, a scripted actuator, a seed to read from.

Shared by cluster tests. Nothing in here simulates the Kubernetes API.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from typing import Any, Never

import attrs
import pytest

from actuator import Actuator, Resource
from actuator.errors import NotFound
from actuator.interface import Client, resource_of
from actuator.meta import ClusterNeed, Object, Raw
from actuator.v1alpha1 import Infrastructure
from generic.kube.client import HttpClient, path_of
from generic.kube.clusters import CLUSTERS, NAMESPACES
from generic.kube.headers import Request, cluster_header
from generic.manager.manager import Manager
from generic.manager.options import Options
from generic.manager.rbac import grant, manifests
from generic.testing.garden import Garden, GardenletFlows, not_ready_because
from generic.testing.polling import wait_while

INFRASTRUCTURES = resource_of(Infrastructure.KIND)
EVENTS = Resource("v1", "events")
RBAC = "rbac.authorization.k8s.io/v1"
ROLES = Resource(RBAC, "clusterroles", namespaced=False)
BINDINGS = Resource(RBAC, "clusterrolebindings", namespaced=False)
_REVIEWS = Resource("authorization.k8s.io/v1", "subjectaccessreviews", namespaced=False)
FINALIZER = Infrastructure.KIND.finalizer
OPERATION = "gardener.cloud/operation"
TIMESTAMP = "gardener.cloud/timestamp"


PATIENCE = 60.0
"""Seconds for waits of moments on an idle machine: a busy one only takes longer to fail."""
SOON = (0.02, 0.05, 0.08, 0.13)
LATER = 0.2
"""Seconds between two looks: most waits take moments, and a look is a request."""
_NOT_YET = (AssertionError, LookupError, NotFound)


def eventually(check: Callable[..., Any], seconds: float = PATIENCE) -> Any:
    """Return the first true result of `check`; fail with its last answer.

    An object or key that `check` does not find is not there yet: it is called again, and its
    error is raised in the end.
    """
    deadline = time.monotonic() + seconds
    pauses = chain(SOON, repeat(LATER))
    while True:
        try:
            if answer := check():
                return answer
        except _NOT_YET:
            if time.monotonic() > deadline:
                raise
            answer = None
        if time.monotonic() > deadline:
            raise AssertionError(f"still {answer!r} after {seconds} s: {check}")
        time.sleep(next(pauses))


def is_allowed(
    admin: Client, user: str, verb: str, resource: str, group: str = "", **attributes: str
) -> bool:
    """Whether RBAC lets a user do that, as the API server knows it now: it reads roles late.

    `resource` may have a subresource; attributes are namespace and name.
    """
    plural, _, subresource = resource.partition("/")
    asked = {"verb": verb, "group": group, "resource": plural, "subresource": subresource}
    review = {
        "apiVersion": _REVIEWS.api_version,
        "kind": "SubjectAccessReview",
        "metadata": {},
        "spec": {"user": user, "resourceAttributes": {**asked, **attributes}},
    }
    answer: bool = admin.create(_REVIEWS, review)["status"]["allowed"]
    return answer


def remove_namespace(admin: HttpClient, namespace: str) -> None:
    """Remove a namespace with all that is left in it, as operators do to one that is stuck."""
    admin.delete(NAMESPACES, namespace)
    found = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    body = json.dumps({**found, "spec": {"finalizers": []}}).encode()
    admin.send("PUT", path_of(NAMESPACES, name=namespace, subresource="finalize"), body=body)


def missing(what: str) -> Never:
    """Ends a test for want of something that no package index has: a failure in CI, else a skip."""
    if os.environ.get("CI"):
        pytest.fail(what)
    pytest.skip(what)


def cluster_rules(manager: Manager) -> list[Raw]:
    """The rules of the generated ClusterRole."""
    rules: list[Raw] = next(manifests(manager, "role"))["rules"]
    return rules


def samples(manager: Manager, metric: str) -> dict[str, float]:
    """Of one metric: the value by the last of its labels."""
    return {
        tuple(sample.labels.values())[-1]: sample.value
        for family in manager.metrics.registry.restricted_registry([metric]).collect()
        for sample in family.samples
        if sample.name == metric
    }


class Script(Actuator[Any, Raw]):
    """Calls the function in `on` for an operation, else does nothing; remembers its calls."""

    def __init__(self, of: type[Object] = Infrastructure, /, **on: Callable[..., Any]) -> None:
        self.of = of
        self.on = on
        self.calls: list[tuple[str, str]] = []
        self.lock = threading.Lock()

    def _run(self, operation: str, ctx: Any, obj: Any, cluster: Any) -> Any:
        with self.lock:
            self.calls.append((operation, obj.metadata.name))
        act = self.on.get(operation)
        return act(ctx, obj, cluster) if act else None

    def validate(self, ctx, obj, cluster):
        act = self.on.get("validate")
        return act(ctx, obj, cluster) if act else ()

    def reconcile(self, ctx, obj, cluster):
        return self._run("reconcile", ctx, obj, cluster)

    def delete(self, ctx, obj, cluster):
        self._run("delete", ctx, obj, cluster)

    def migrate(self, ctx, obj, cluster):
        self._run("migrate", ctx, obj, cluster)

    def restore(self, ctx, obj, cluster):
        return self._run("restore", ctx, obj, cluster)

    def force_delete(self, ctx, obj, cluster):
        self._run("force_delete", ctx, obj, cluster)

    def operations(self, name: str = "infra") -> list[str]:
        """The operations called for one object, in order."""
        with self.lock:
            return [operation for operation, called in self.calls if called == name]


class Seed:
    """The API server as an administrator sees it: a namespace, and the objects of one kind."""

    def __init__(
        self,
        client: Client,
        namespace: str,
        cls: type[Object] = Infrastructure,
        name: str = "infra",
        managers: Sequence[Manager] = (),
    ) -> None:
        """Methods wait for `managers` that have to know a Cluster before the next step."""
        self.client = client
        self.managers = managers
        self.kind = cls.KIND
        self.resource = resource_of(cls.KIND)
        self.namespace = namespace
        self.where = namespace if cls.KIND.namespaced else ""
        self.name = name
        self.garden = Garden(client)

    def of(self, cls: type[Object], name: str, namespace: str | None = None) -> Seed:
        """The same seed, looked at for an object of another kind."""
        return Seed(self.client, namespace or self.namespace, cls, name, self.managers)

    def create(self, manifest: Raw) -> Raw:
        if manifest["kind"] != "Cluster":
            return self.client.create(self.resource, manifest)
        written = self.client.create(CLUSTERS, manifest)
        self._wait_until_seen(cluster_header(written).resource_version)
        return written

    def get(self, name: str = "") -> Raw:
        return self.client.get(self.resource, name or self.name, self.where)

    def status(self, name: str = "") -> Raw:
        return self.get(name).get("status") or {}

    def patch(self, patch: Any, name: str = "", subresource: str = "") -> Raw:
        return self.client.patch(
            self.resource, name or self.name, self.where, patch, subresource=subresource
        )

    def annotate(self, name: str = "", **annotations: str | None) -> Raw:
        return self.patch({"metadata": {"annotations": annotations}}, name)

    def ask(self, operation: str, name: str = "") -> None:
        self.garden.ask(self.kind, self.where, name or self.name, operation)

    def delete(self, name: str = "") -> None:
        self.garden.delete(self.kind, self.where, name or self.name)

    def update_cluster(self, manifest: Raw) -> None:
        """Return once managers have seen the change: watches have no order."""
        patch = [{"op": "replace", "path": "/spec", "value": manifest["spec"]}]
        written = self.client.patch(CLUSTERS, self.namespace, "", patch)
        self._wait_until_seen(cluster_header(written).resource_version)

    def delete_cluster(self) -> None:
        """As `update_cluster`: afterwards no manager has it any more."""
        self.client.delete(CLUSTERS, self.namespace)
        self._wait_until_seen(None)

    def _wait_until_seen(self, version: int | None) -> None:
        """None: that there is no Cluster any more."""

        def has_seen(manager: Manager) -> bool:
            entry = manager._clusters.get(Request("", self.namespace))
            if entry is None or version is None:
                return entry is None and version is None
            return entry.header.resource_version >= version

        for manager in self.managers:
            needs = {registration.kind.cluster for registration in manager.registrations}
            if not manager._stop.is_set() and needs != {ClusterNeed.NEVER}:
                eventually(partial(has_seen, manager))

    def is_gone(self, name: str = "") -> bool:
        try:
            self.get(name)
        except NotFound:
            return True
        return False

    def is_ready(self, name: str = "") -> bool:
        return not_ready_because(self.get(name)) is None

    def last_operation(self, name: str = "") -> tuple[str, str]:
        operation = self.status(name).get("lastOperation") or {}
        return operation.get("type", ""), operation.get("state", "")

    def events(self, reason: str) -> list[Raw]:
        found = self.client.list(EVENTS, self.where or "default")
        return [event for event in found if event["reason"] == reason]


class Impatient(GardenletFlows):
    """Gives up once every awaited object has reported `stuck` for `quiet` seconds."""

    def __init__(self, *args: Any, stuck: str, quiet: float = 0.0) -> None:
        super().__init__(*args, patience=PATIENCE)
        self._stuck = stuck
        self._quiet = quiet

    def _until(self, problems: Callable[[], Sequence[str]], seconds: float) -> None:
        since = time.monotonic()

        def hopeful() -> Sequence[str]:
            nonlocal since
            left = problems()
            now = time.monotonic()
            if all(self._stuck in item for item in left):
                return left if now - since < self._quiet else ()
            since = now
            return left

        wait_while(hopeful, min(seconds, PATIENCE), LATER)
        super()._until(problems, 0.0)


@contextmanager
def running(
    environment: Any,
    admin: HttpClient,
    namespace: str,
    actuator: Actuator[Any],
    *,
    second: Actuator[Any] | None = None,
    intercept: Any = None,
    give_up_after: Any = None,
    clock: Any = None,
    synced: bool = True,
    user_for: Callable[[Manager], Path] | None = None,
    **options: Any,
) -> Iterator[Manager]:
    """A started manager, under its generated Role and nothing more.

    `user_for` has the kubeconfig of a user with that Role; without it, the manager has its own.
    """
    base: dict[str, Any] = {
        "metrics_bind_address": "0",
        "health_bind_address": "0",
        "shutdown_timeout": 5.0,
        "leader_election_namespace": namespace,
    }
    manager = Manager(Options(**(base | options)), intercept=intercept, clock=clock)
    for item in filter(None, (actuator, second)):
        manager.add(item, type=namespace, give_up_after=give_up_after)
    with connected(environment, admin, manager, namespace, user_for):
        manager.start()
        assert not synced or manager.wait_synced(PATIENCE)
        yield manager


@contextmanager
def connected(
    environment: Any,
    admin: HttpClient,
    manager: Manager,
    namespace: str,
    user_for: Callable[[Manager], Path] | None = None,
) -> Iterator[None]:
    """Connect a manager as the user of `user_for`, or as its own user; stop it at the end."""
    own = own_user(environment, admin, manager, f"{namespace}-{id(manager):x}")
    with nullcontext(user_for(manager)) if user_for else own as kubeconfig:
        manager.options = attrs.evolve(manager.options, kubeconfig=kubeconfig)
        try:
            yield
        finally:
            manager.stop()


@contextmanager
def own_user(environment: Any, admin: HttpClient, manager: Manager, name: str) -> Iterator[Path]:
    """The kubeconfig of a new user with the permissions of a manager, and with no others."""
    grant(admin, manager, name)
    try:
        yield environment.user_kubeconfig(name)
    finally:
        admin.delete(BINDINGS, name)
        admin.delete(ROLES, name)
