"""Webhooks in shoots: their configuration, and its update in all shoots at once."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from actuator.errors import Forbidden, NotFound
from actuator.meta import Raw
from generic.library.managedresources.kind import MANAGED_RESOURCES, ORIGIN
from generic.library.webhooks import Webhook, WebhookTarget, shoot
from generic.library.webhooks.configurations import Endpoint, Mode
from generic.library.webhooks.objects import Deployment
from generic.library.webhooks.targets import in_shoot
from tests.support.objects.stand_ins import StandIn

SERVICE = Endpoint(mode=Mode.SERVICE, name="acme", namespace="extension-acme", port=443)


def webhook(name: str, **more: Any) -> Webhook:
    given: dict[str, Any] = {"failure_policy": "Fail", "mutating": True, **more}
    return Webhook(name=name, kinds=[Deployment], handle=lambda _: None, **given)


def test_the_api_server_of_a_shoot_calls_the_service_of_the_seed():
    hooks = [in_shoot(webhook("a")), webhook("b"), webhook("c", target=WebhookTarget.SHOOT)]
    [config] = shoot.manifests(hooks, SERVICE, b"PEM")
    assert config["metadata"]["name"] == "gardener-extension-acme-shoot"
    [first, second] = config["webhooks"]
    place = "https://gardener-extension-acme.extension-acme:443/webhooks/"
    assert [item["clientConfig"]["url"] for item in (first, second)] == [f"{place}a", f"{place}c"]
    assert [item["failurePolicy"] for item in (first, second)] == ["Ignore", "Fail"]


def test_gardenlet_does_not_change_them():
    [config] = shoot.manifests([in_shoot(webhook("a"))], SERVICE, b"PEM")
    assert config["metadata"]["labels"] == {
        "remediation.webhook.shoot.gardener.cloud/exclude": "true"
    }


class Seed(StandIn):
    """ManagedResources and Secrets in memory."""

    def __init__(self, *namespaces: str, **meta: Any) -> None:
        self.managed = {namespace: managed(namespace, **meta) for namespace in namespaces}
        self.forbidden = ""
        """No Secret can be created in this namespace: it is being deleted."""

    def list(self, resource: Any, **selectors: str) -> list[Raw]:
        assert (resource, selectors) == (MANAGED_RESOURCES, {"label_selector": f"{ORIGIN}=acme"})
        return copy.deepcopy(list(self.managed.values()))

    def get(self, resource: Any, name: str, namespace: str = "") -> Raw:
        raise NotFound(404, name)

    def create(self, resource: Any, obj: Raw) -> Raw:
        assert obj["kind"] == "Secret"
        if obj["metadata"]["namespace"] == self.forbidden:
            raise Forbidden(403, "the namespace is being terminated")
        return obj

    def patch(self, resource: Any, name: str, namespace: str, patch: Any, **_: Any) -> Raw:
        if namespace not in self.managed:
            raise NotFound(404, name)
        found = self.managed[namespace]
        for operation in patch:
            if operation["path"] == "/spec":
                found["spec"] = operation["value"]
        return found

    def secrets(self) -> dict[str, str]:
        return {n: obj["spec"]["secretRefs"][0]["name"] for n, obj in self.managed.items()}


def managed(namespace: str, **meta: Any) -> Raw:
    labels = {ORIGIN: "acme"}
    given = {"name": shoot.NAME, "namespace": namespace, "uid": "u", "labels": labels, **meta}
    spec = {"secretRefs": [{"name": "old"}], "injectLabels": {"a": "b"}, "keepObjects": False}
    kind = {"apiVersion": MANAGED_RESOURCES.api_version, "kind": "ManagedResource"}
    return {**kind, "metadata": given, "spec": spec}


def test_every_shoot_gets_the_new_authorities():
    seed = Seed("a", "b")
    assert shoot.refresh(seed, [{"kind": "X"}], "acme")
    assert len(set(seed.secrets().values()) - {"old"}) == 1
    assert seed.managed["a"]["spec"]["injectLabels"] == {"a": "b"}


def test_a_shoot_that_cannot_be_updated_does_not_affect_the_others(caplog):
    seed = Seed("a", "b", "c")
    seed.forbidden = "b"
    assert not shoot.refresh(seed, [{"kind": "X"}], "acme")
    assert [name == "old" for name in seed.secrets().values()] == [False, True, False]
    assert caplog.records[0].fields["namespace"] == "b"


@pytest.mark.parametrize("meta", [{"name": "other"}, {"deletionTimestamp": "2026-01-01T00:00:00Z"}])
def test_other_and_deleted_managed_resources_stay(meta):
    seed = Seed("a", **meta)
    assert shoot.refresh(seed, [{"kind": "X"}], "acme")
    assert seed.secrets() == {"a": "old"}


def test_one_that_was_deleted_meanwhile_is_not_created_again():
    seed = Seed("a")
    listed = seed.list

    def then_deleted(*args: Any, **more: Any) -> list[Raw]:
        found = listed(*args, **more)
        seed.managed.clear()
        return found

    seed.list = then_deleted  # type: ignore[method-assign]
    assert shoot.refresh(seed, [{"kind": "X"}], "acme")
    assert seed.managed == {}
