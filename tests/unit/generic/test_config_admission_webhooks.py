"""The webhooks and policies of a ConfigAdmission, without an API server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated, Any

import attrs
import pytest

from actuator import FieldProblem, ProviderConfig
from actuator.meta import Raw, Schema
from actuator.v1alpha1 import Bastion, Extension, Infrastructure, Network, Worker
from extensions.certificate.config import API_VERSION
from extensions.local.config import NetworkConfig, ShareConfig
from generic.library.webhooks.admission import ConfigAdmission
from generic.library.webhooks.review import evaluate, parse
from tests.support.samples.ruled import RULED as CERTIFICATE

NETWORK = ConfigAdmission(kind=Network, type="local", config=NetworkConfig, defaults=True)


@attrs.frozen(kw_only=True)
class Pool:
    name: str
    size: int = 3


@attrs.frozen(kw_only=True)
class PoolConfig(ProviderConfig):
    api_version: str = "pool.example.org/v1"
    kind: str = "PoolConfig"
    pools: list[Pool] = attrs.field(factory=list)
    by_name: dict[str, Pool] = attrs.field(factory=dict)
    first: Pool | None = None
    fixed: Annotated[list[Pool], Schema(immutable=True)] = attrs.field(factory=list)
    key: Annotated[str, Schema(immutable=True, format="password")] = "secret"

    def problems(self) -> Iterator[FieldProblem]:
        if len({pool.name for pool in self.pools}) < len(self.pools):
            yield FieldProblem(field="pools", detail="two have one name; rename one")


CHANGED = "configuration-changed"
POOL = ConfigAdmission(kind=Infrastructure, type="pool", config=PoolConfig, defaults=True)


def extension(config: Any, **more: Any) -> Raw:
    entry = {"type": "certificate-service", "providerConfig": config, **more}
    return {"extensions": [{"type": "other", "providerConfig": {"a": 1}}, entry]}


def issuers(*names: str) -> Raw:
    listed = [{"name": name, "server": "https://example.org"} for name in names]
    return {"apiVersion": API_VERSION, "kind": "CertificateConfig", "issuers": listed}


def infrastructure(config: Any) -> Raw:
    return {"provider": {"type": "pool", "workers": [{}], "infrastructureConfig": config}}


def ask(admission: ConfigAdmission, verb: str, spec: Raw, old: Raw | None = None, **meta: Any):
    """The answer of a webhook for a Shoot."""
    [webhook] = [webhook for webhook in admission.webhooks() if webhook.name.startswith(verb)]

    def shoot(spec: Raw) -> Raw:
        head = {"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot"}
        return {**head, "metadata": {"name": "one", "namespace": "garden-a", **meta}, "spec": spec}

    request = {
        "uid": "1",
        "resource": {"group": "core.gardener.cloud", "version": "v1beta1", "resource": "shoots"},
        "operation": "CREATE" if old is None else "UPDATE",
        "object": shoot(spec),
        "oldObject": None if old is None else shoot(old),
    }
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    return evaluate(webhook, parse(json.dumps(review).encode()), client=None)  # type: ignore[arg-type]


def test_problems_of_the_class_are_refused_with_their_field():
    answer = ask(CERTIFICATE, "validate", extension(issuers("a", "a")))
    field = "spec.extensions[1].providerConfig.issuers"
    assert not answer.allowed
    assert answer.message.endswith(f"{field}: 'a' is there 2 times; keep one of them")


@pytest.mark.parametrize(
    ("spec", "old"),
    [
        (extension(issuers("a", "b")), None),
        ({"extensions": []}, None),
        ({}, None),
        (extension(issuers("a", "a")), extension(issuers("a", "a"))),
        ({"extensions": [{"type": "certificate-service"}]}, None),
    ],
)
def test_a_valid_or_unchanged_configuration_is_admitted(spec, old):
    assert ask(CERTIFICATE, "validate", spec, old).allowed


def test_a_value_of_another_type_is_a_change():
    """1 and True are equal in Python, but not in the policy."""
    old = {"pools": [{"name": "a", "size": 1}]}
    changed = {"pools": [{"name": "a", "size": True}]}
    answer = ask(POOL, "validate", infrastructure(changed), infrastructure(old))
    assert "pools[0].size: expected an integer, got a boolean" in answer.message


def test_a_shoot_under_deletion_is_admitted():
    spec = extension(issuers("a", "a"))
    assert ask(CERTIFICATE, "validate", spec, {}, deletionTimestamp="2026-01-01T00:00:00Z").allowed


def test_an_immutable_field_is_not_changed_and_its_value_is_in_no_message():
    answer = ask(POOL, "validate", infrastructure({"key": "new"}), infrastructure({}))
    message = "spec.provider.infrastructureConfig.key: field is immutable; set its former value"
    assert answer.message == f"validate-infrastructure-pool: {message}"
    assert ask(POOL, "validate", infrastructure({"key": "secret"}), infrastructure(None)).allowed


def test_only_a_class_with_checks_of_its_own_has_a_webhook_for_them():
    assert [webhook.name for webhook in NETWORK.webhooks()] == ["default-network-local"]
    assert [webhook.mutating for webhook in CERTIFICATE.webhooks()] == [True, False]


def test_absent_fields_get_their_defaults_except_passwords():
    config = {"pools": [{"name": "a"}], "byName": {"b": {"name": "b"}}, "first": None}
    answer = ask(POOL, "default", infrastructure(config))
    at = "/spec/provider/infrastructureConfig"
    found = {item["path"].removeprefix(at): item["value"] for item in answer.patch}
    assert found == {
        "/apiVersion": "pool.example.org/v1",
        "/kind": "PoolConfig",
        "/pools/0/size": 3,
        "/byName/b/size": 3,
    }


def test_no_default_changes_an_immutable_field():
    """The stored Shoot can be older than the webhook, and then has no defaults."""
    old = {"fixed": [{"name": "a"}]}
    answer = ask(POOL, "default", infrastructure(old | {"pools": []}), infrastructure(old))
    assert [item["path"].rpartition("/")[2] for item in answer.patch] == ["apiVersion", "kind"]


@pytest.mark.parametrize("config", [None, "text", issuers("a")])
def test_nothing_else_is_changed(config):
    answer = ask(CERTIFICATE, "default", extension(config))
    assert answer.allowed
    assert not answer.patch


def test_an_unchanged_configuration_is_not_defaulted():
    assert not ask(NETWORK, "default", NETWORKING, NETWORKING).patch
    assert ask(NETWORK, "default", NETWORKING).patch


NETWORKING = {
    "networking": {"type": "local", "providerConfig": {}},
    "provider": {"type": "local", "workers": [{}]},
}


def test_messages_name_field_and_expectation_and_no_secret():
    [policy, binding] = POOL.policy()
    messages = [validation["message"] for validation in policy["spec"]["validations"]]
    field = "spec.provider.infrastructureConfig"
    assert f"{field}.pools[].name: required field missing; set a string" in messages
    assert f"{field}.byName.*.size: expected an integer" in messages
    assert (
        f"{field}: unknown field; use only apiVersion, kind, pools, byName, first, fixed, key"
        in messages
    )
    assert not any("secret" in message for message in messages)
    assert binding["spec"]["policyName"] == policy["metadata"]["name"]


def test_deletions_are_exempt_from_policies_and_webhooks():
    [policy, _] = CERTIFICATE.policy()
    names = [match_condition["name"] for match_condition in policy["spec"]["matchConditions"]]
    assert names == ["exempt-objects-under-deletion", "exempt-confirmed-deletions", CHANGED]
    [rule] = policy["spec"]["matchConstraints"]["resourceRules"]
    assert rule["operations"] == ["CREATE", "UPDATE"]
    selector = policy["spec"]["matchConstraints"]["objectSelector"]
    label = "extensions.extensions.gardener.cloud/certificate-service"
    assert selector == {"matchLabels": {label: "true"}}


def test_a_rule_that_no_policy_can_express_is_refused():
    with pytest.raises(ValueError, match="Bastion: no object of the garden has a configuration"):
        ConfigAdmission(kind=Bastion, type="a", config=ShareConfig)
    with pytest.raises(TypeError, match="a field of pools cannot be immutable"):
        ConfigAdmission(kind=Worker, type="a", config=PoolConfig)

    @attrs.frozen(kw_only=True)
    class Listed(ProviderConfig):
        api_version: str = "v1"
        kind: str = "Listed"
        names: list[Annotated[str, Schema(immutable=True)]] = attrs.field(factory=list)

    with pytest.raises(TypeError, match="names: entries cannot be immutable"):
        ConfigAdmission(kind=Extension, type="a", config=Listed)
