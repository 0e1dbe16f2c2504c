"""The API server calls our webhooks over TLS, and applies their answers."""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from actuator.errors import ApiError, NotFound
from actuator.interface import SECRETS, Resource
from actuator.meta import Raw
from actuator.v1alpha1 import Network
from generic.kube.client import path_of
from generic.kube.deleting import CONFIRM_DELETION
from generic.library.webhooks import AdmissionRequest, Denied, Webhook, mutates, validates
from generic.library.webhooks.certificates import Lifetimes
from generic.library.webhooks.configurations import MUTATING, VALIDATING, prefixed
from generic.manager.webhooks import WebhookService, secret_name
from generic.testing.envtest.servers import free_port
from tests.support.cluster.harness import eventually
from tests.support.cluster.webhook_services import NAME, NETWORKS, Serving


def mark(request: AdmissionRequest[Network]) -> None:
    request.new.metadata.labels["seen"] = request.operation
    request.new.spec.ip_families.append("IPv4")


def marking(namespace: str, **more: Any) -> Webhook:
    given: dict[str, Any] = {"name": "mark", "failure_policy": "Fail", **more}
    return mutates(Network, namespace_labels={NAME: namespace}, **given)(mark)


def test_an_object_is_changed_before_it_is_stored(serving):
    serving.start(marking(serving.namespace))
    created = eventually(lambda: _seen(serving.create(f"n-{time.monotonic_ns()}")))
    assert created["spec"]["ipFamilies"] == ["IPv4"]
    patch = {"metadata": {"annotations": {"a": "b"}}}
    changed = serving.admin.patch(NETWORKS, created["metadata"]["name"], serving.namespace, patch)
    assert changed["metadata"]["labels"]["seen"] == "UPDATE"
    outcomes = serving.metrics.total("actuator_webhook_outcomes_total", "outcome", webhook="mark")
    assert outcomes["allowed"]


def _seen(created: Raw) -> Raw | None:
    """The object, once the API server knows the webhook."""
    return created if "seen" in created["metadata"].get("labels", {}) else None


def test_an_object_without_a_name_yet_is_not_one_of_the_named(serving):
    """With generateName the API server chooses the name only after it called the webhooks."""
    serving.create("mine")
    serving.start(marking(serving.namespace, names=["mine"]))
    change = {"metadata": {"annotations": {"a": "b"}}}
    eventually(lambda: _seen(serving.admin.patch(NETWORKS, "mine", serving.namespace, change)))
    assert not _seen(serving.create("", generateName="n-"))


def test_a_denial_has_its_reason(serving):
    def refuse(request: AdmissionRequest[Network]) -> None:
        raise Denied("pods have no network here")

    webhook = validates(Network, failure_policy="Fail", namespace_labels={NAME: serving.namespace})(
        refuse
    )
    serving.start(webhook)

    def refused() -> str:
        try:
            serving.create(f"n-{time.monotonic_ns()}")
        except ApiError as error:
            return str(error)
        return ""

    assert "refuse: pods have no network here" in eventually(refused)


def test_an_object_under_deletion_needs_no_webhook(serving):
    """The API server does not ask: the finalizer goes while the server is down."""
    serving.create("held", finalizers=["example.org/held"])
    service = serving.start(marking(serving.namespace))
    serving.admin.delete(NETWORKS, "held", serving.namespace)
    eventually(lambda: _seen(serving.create(f"n-{time.monotonic_ns()}")))
    service.stop(0)
    with pytest.raises(ApiError, match="failed calling webhook"):
        serving.create("refused")
    serving.admin.patch(NETWORKS, "held", serving.namespace, {"metadata": {"finalizers": None}})
    with pytest.raises(NotFound):
        serving.admin.get(NETWORKS, "held", serving.namespace)


def test_an_object_is_deleted_as_gardenlet_does_while_the_server_is_down(serving):
    """gardenlet annotates an object that is not under deletion yet, then deletes it."""
    serving.create("held", annotations={"a": "b"})
    service = serving.start(marking(serving.namespace))
    eventually(lambda: _seen(serving.create(f"n-{time.monotonic_ns()}")))
    service.stop(0)
    confirmed = {"metadata": {"annotations": {CONFIRM_DELETION: "true"}}}
    changed = {"spec": {"podCIDR": "10.3.0.0/16"}}
    for refused in ({"metadata": {"annotations": {"a": "c"}}}, changed, confirmed | changed):
        with pytest.raises(ApiError, match="failed calling webhook"):
            serving.admin.patch(NETWORKS, "held", serving.namespace, refused)
    serving.admin.patch(NETWORKS, "held", serving.namespace, confirmed)
    serving.admin.delete(NETWORKS, "held", serving.namespace)
    with pytest.raises(NotFound):
        serving.admin.get(NETWORKS, "held", serving.namespace)


SHORT = Lifetimes(
    authority=timedelta(seconds=12), serving=timedelta(seconds=12), settle=timedelta(seconds=1.5)
)


def authorities(service: WebhookService) -> list[bytes]:
    """The trusted certificates, oldest first."""
    return service.authorities.split(b"-----END CERTIFICATE-----\n")[:-1]


@pytest.mark.long
def test_no_request_fails_while_certificates_rotate(serving):
    """A thousand requests at least, and until the second rotation is over."""
    service = serving.start(marking(serving.namespace), lifetimes=SHORT)
    eventually(lambda: _seen(serving.create(f"n-{time.monotonic_ns()}")))
    bundles = [authorities(service)]
    done = threading.Event()

    def watch() -> None:
        dropped = 0
        while dropped < 2 and not done.wait(0.05):
            bundle = authorities(service)
            dropped += bundle[0] != bundles[-1][0]
            bundles.append(bundle)
        done.set()

    def ask(worker: int) -> int:
        count = 0
        while not done.is_set() or count < 250:
            created = serving.try_create(f"w{worker}-{count}")
            assert _seen(created), created
            count += 1
            time.sleep(0.05)
        return count

    with ThreadPoolExecutor(5) as pool:
        pool.submit(watch)
        asked = sum(pool.map(ask, range(4)))
    assert asked >= 1000
    assert all(set(item) & set(following) for item, following in pairwise(bundles))
    outcomes = serving.metrics.total("actuator_webhook_outcomes_total", "outcome", webhook="mark")
    assert outcomes["failed"] == 0


def test_replicas_share_the_certificates(serving):
    first = serving.start(marking(serving.namespace))
    second = serving.start(marking(serving.namespace), port=free_port())
    assert first.authorities == second.authorities
    stored = serving.admin.get(SECRETS, secret_name(serving.options()), serving.namespace)
    assert set(stored["data"]) == {"ca.crt", "ca.key", "tls.crt", "tls.key"}


def left_by_go(serving: Serving, resource: Resource, kind: str, *names: str) -> None:
    """The configuration of a former extension, whose server does not answer any more."""
    rule = {"apiGroups": ["extensions.gardener.cloud"], "apiVersions": ["v1alpha1"]}
    entry = {
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "rules": [{**rule, "operations": ["CREATE"], "resources": ["networks"]}],
        "namespaceSelector": {"matchLabels": {NAME: serving.namespace}},
        "objectSelector": {"matchLabels": {"only": "some"}} if len(names) == 2 else {},
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    meta = {"name": prefixed(serving.namespace)}
    obj = {"kind": kind, "metadata": meta, "webhooks": [{**entry, "name": name} for name in names]}
    path = path_of(resource)
    query = {"fieldManager": "gardener-extension-provider-x"}
    body = json.dumps({"apiVersion": resource.api_version, **obj}).encode()
    serving.admin.send("POST", path, query=query, body=body)


def configured(serving: Serving, resource: Resource = MUTATING) -> Raw:
    return serving.admin.get(resource, prefixed(serving.namespace))


def test_entries_of_a_former_extension_refuse_no_request(serving):
    """Beside ours, in ours, and in the configuration of the other kind."""
    ours = f"mark.{serving.namespace}.extensions.gardener.cloud"
    kind = "WebhookConfiguration"
    left_by_go(serving, MUTATING, f"Mutating{kind}", "left.example.org", ours)
    left_by_go(serving, VALIDATING, f"Validating{kind}", "left.example.org")
    serving.start(marking(serving.namespace))
    [entry] = configured(serving)["webhooks"]
    assert entry["name"] == ours
    assert entry["objectSelector"] == {}
    assert not configured(serving, VALIDATING).get("webhooks")
    eventually(lambda: _seen(serving.create(f"n-{time.monotonic_ns()}")))


def change_entry(serving: Serving, **more: Any) -> None:
    [entry] = configured(serving)["webhooks"]
    patch = {"webhooks": [{**entry, **more}]}
    where = MUTATING, prefixed(serving.namespace)
    serving.admin.patch(*where, "", patch)


def conflicts(serving: Serving) -> str:
    name = "actuator_webhook_configurations_in_conflict"
    return str(serving.metrics.registry.get_sample_value(name))


SOON = Lifetimes(
    authority=timedelta(days=1), serving=timedelta(days=1), settle=timedelta(seconds=0.4)
)
"""A pass of the service each tenth of a second."""


def test_a_selector_that_a_policy_adds_stays_and_is_reported_once(serving, caplog):
    serving.start(marking(serving.namespace), lifetimes=SOON)
    added = {"key": "control-plane", "operator": "DoesNotExist"}
    [entry] = configured(serving)["webhooks"]
    change_entry(
        serving, namespaceSelector={**entry["namespaceSelector"], "matchExpressions": [added]}
    )
    before = configured(serving)
    eventually(lambda: conflicts(serving) == "1.0")
    time.sleep(1)
    assert configured(serving) == before
    said = [
        record.fields for record in caplog.records if "changed by others" in record.getMessage()
    ]
    [fields] = said
    assert fields["changed"] == f"webhooks.{entry['name']}.namespaceSelector.matchExpressions"
    change_entry(serving, namespaceSelector=entry["namespaceSelector"])
    eventually(lambda: conflicts(serving) == "0.0")


@pytest.mark.parametrize(
    "change",
    [
        {"failurePolicy": "Ignore"},
        {"timeoutSeconds": 30},
        {"matchConditions": []},
        {"namespaceSelector": {}},
        {"name": "other.example.org"},
    ],
)
def test_a_part_that_we_decide_is_written_again(serving, change):
    serving.start(marking(serving.namespace), lifetimes=SOON)
    before = configured(serving)["webhooks"]
    change_entry(serving, **change)
    eventually(lambda: configured(serving)["webhooks"] == before)


def test_only_the_webhooks_of_this_version_remain(serving):
    """Of two versions that run one after the other, also if the second one decides less."""
    first = marking(serving.namespace, object_labels={"only": "some"})
    kept = first.name
    one = serving.start(
        first,
        validates(
            Network, name="gone", failure_policy="Fail", namespace_labels={NAME: serving.namespace}
        )(lambda _request: None),
    )
    serving.stop(one)
    serving.start(marking(serving.namespace))
    [entry] = configured(serving)["webhooks"]
    assert entry["name"].startswith(kept)
    assert entry["objectSelector"] == {}
    assert not configured(serving, VALIDATING).get("webhooks")
