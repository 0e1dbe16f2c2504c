"""Rules of an admission in Python: their arguments, and the changes that call them."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import attrs
import pytest

from actuator import FieldProblem, ObjectMeta, ProviderConfig, Resource
from actuator.codec import decode
from actuator.interface import SECRETS
from actuator.meta import Object, Raw, value_at
from actuator.v1alpha1 import BackupBucket, Infrastructure, Network, Worker
from generic.library.webhooks import (
    CloudProfile,
    ConfigAdmission,
    ConfigReview,
    CredentialsBinding,
    Denied,
    GardenBackupBucket,
    GardenSeed,
    NamespacedCloudProfile,
    Secret,
    SecretBinding,
    Shoot,
)
from generic.library.webhooks.lint import findings
from generic.manager.manager import Manager
from generic.manager.options import Options
from generic.manager.webhooks import permissions
from generic.testing.admission import admit
from generic.testing.recording import RecordingClient


@attrs.frozen(kw_only=True)
class ZonesConfig(ProviderConfig):
    api_version: str = "acme.example.org/v1"
    kind: str = "ZonesConfig"
    zones: list[str] = attrs.field(factory=list)


@attrs.frozen(kw_only=True)
class PoolConfig(ProviderConfig):
    api_version: str = "acme.example.org/v1"
    kind: str = "PoolConfig"
    zone: str = ""


@attrs.frozen(kw_only=True)
class NetworkConfig(ProviderConfig):
    api_version: str = "acme.example.org/v1"
    kind: str = "NetworkConfig"
    overlay: bool = False


Zones = ConfigReview[ZonesConfig, Shoot]


def zones_exist(review: Zones) -> Iterator[FieldProblem]:
    """Each zone is in the CloudProfile."""
    [offered] = review.configs(CloudProfile, ZonesConfig)
    for index, zone in enumerate(review.config.zones):
        if zone not in offered.zones:
            detail = f"{zone!r} is not offered; use {', '.join(offered.zones)}"
            yield review.problem(f"zones[{index}]", detail)


def pools_have_zones(review: Zones) -> Iterator[FieldProblem]:
    """Each worker pool is in a zone of the infrastructure."""
    for pool in review.configs(Worker, PoolConfig):
        if pool.zone and pool.zone not in review.config.zones:
            yield review.problem("zones", f"pool needs {pool.zone!r}; add it")
    if any(network.overlay for network in review.configs(Network, NetworkConfig, "calico")):
        yield FieldProblem(field="spec.networking", detail="an overlay is impossible; remove it")


def zones_stay(review: Zones) -> Iterator[FieldProblem]:
    """No zone is removed."""
    if review.former and review.old:
        region = value_at(review.old.spec, "region")
        for zone in set(review.former.zones) - set(review.config.zones):
            yield review.problem("zones", f"{zone!r} of {region} is in use; add it again")


RULES = (zones_exist, pools_have_zones, zones_stay)
ZONES = ConfigAdmission(kind=Infrastructure, type="acme", config=ZonesConfig, rules=RULES)
READING = attrs.evolve(ZONES, reads=["spec.provider.workers"])
FIELD = "spec.provider.infrastructureConfig.zones"


def shoot(zones: Any, *pools: str, **spec: Any) -> Shoot:
    """A Shoot with a configuration for the infrastructure and each worker pool."""
    workers = [{"providerConfig": {"zone": pool}} for pool in pools] or [{}]
    config = {"zones": zones}
    provider = {"type": "acme", "infrastructureConfig": config, "workers": workers}
    given = {"provider": provider, "region": "north", "cloudProfileName": "acme"}
    return Shoot(metadata=ObjectMeta(name="a", namespace="garden-a"), spec=given | spec)


OFFER = {"type": "acme", "providerConfig": {"zones": ["a", "b", "c"]}}
PROFILE = CloudProfile(metadata=ObjectMeta(name="acme"), spec=OFFER)


def asked(admission: ConfigAdmission, new: Object, old: Object | None = None, *more: Object) -> str:
    """Why the webhook refuses an object, "" if it admits it."""
    [webhook] = [hook for hook in admission.webhooks() if not hook.mutating]
    try:
        admit(webhook, new, old, client=RecordingClient(PROFILE, *more))
    except Denied as denied:
        return denied.message
    return ""


def test_a_rule_gets_the_cloud_profile_and_names_index_and_value():
    assert asked(ZONES, shoot(["a", "x"])) == f"{FIELD}[1]: 'x' is not offered; use a, b, c"
    assert not asked(ZONES, shoot(["a", "c"]))


def test_a_rule_gets_the_merged_spec_of_a_namespaced_cloud_profile():
    merged = {"providerConfig": {"zones": ["x"]}, "type": "acme"}
    meta = ObjectMeta(name="mine", namespace="garden-a")
    own = NamespacedCloudProfile(metadata=meta, status={"cloudProfileSpec": merged})
    reference = {"kind": "NamespacedCloudProfile", "name": "mine"}
    assert not asked(ZONES, shoot(["x"], cloudProfile=reference), None, own)
    text = "spec.cloudProfile: NamespacedCloudProfile 'mine' does not exist; set the name"
    assert text in asked(ZONES, shoot(["x"], cloudProfile=reference))


def test_a_rule_gets_the_other_configurations_of_the_shoot():
    assert asked(ZONES, shoot(["a"], "b")) == f"{FIELD}: pool needs 'b'; add it"
    calico = {"type": "calico", "providerConfig": {"overlay": True}}
    assert asked(ZONES, shoot(["a"], "a", networking=calico)).startswith("spec.networking: an over")
    unreadable = shoot(["a"], "a", networking={"type": "calico", "providerConfig": {"overlay": 1}})
    assert not asked(ZONES, unreadable)


def test_a_rule_gets_the_old_shoot_and_its_configuration():
    assert (
        asked(ZONES, shoot(["b"]), shoot(["a"])) == f"{FIELD}: 'a' of north is in use; add it again"
    )


def test_no_rule_judges_a_configuration_that_has_other_problems():
    assert asked(ZONES, shoot("x")) == f"{FIELD}: expected a list, got a string"


def forbidden(**spec: Any) -> Shoot:
    """A Shoot from before its zone was forbidden."""
    return shoot(["x"], "y", **spec)


@pytest.mark.parametrize("admission", [ZONES, READING], ids=["ZONES", "READING"])
@pytest.mark.parametrize(
    ("new", "old"),
    [
        (forbidden(), forbidden()),
        (forbidden(hibernation={"enabled": True}), forbidden()),
        (forbidden(), forbidden(hibernation={"enabled": True})),
        (forbidden(kubernetes={"version": "2"}, hibernation={"enabled": True}), forbidden()),
        (shoot(["x"]), forbidden()),  # a pool is removed
    ],
)
def test_an_unchanged_configuration_is_not_validated_again(admission, new, old):
    new.metadata = attrs.evolve(new.metadata, labels={"a": "b"})
    assert not asked(admission, new, old)


def test_a_rule_judges_fields_that_it_reads_but_reports_only_new_problems():
    assert asked(READING, shoot(["x"], "y", "z"), forbidden()) == f"{FIELD}: pool needs 'z'; add it"
    assert not asked(ZONES, shoot(["x"], "y", "z"), forbidden())


def test_only_changes_of_the_configuration_and_of_fields_that_rules_read_call_the_webhook():
    [webhook] = ZONES.webhooks()
    [reading] = READING.webhooks()
    own, more = (hook.conditions["configuration-changed"] for hook in (webhook, reading))
    assert more.startswith(own)
    assert "workers" in more.removeprefix(own)
    assert "reads" not in str(ZONES.policy())
    assert '[?"workers"] ==' not in str(READING.policy()[0])


def credentials(review: ConfigReview[None, Secret]) -> Iterator[FieldProblem]:
    if "key" not in review.new.data:
        yield FieldProblem(field="data.key", detail="required key missing; add it")


def credentials_exist(review: ConfigReview[None, Any]) -> Iterator[FieldProblem]:
    field = "secretRef" if isinstance(review.new, SecretBinding) else "credentialsRef"
    reference = getattr(review.new, "secret_ref", None) or review.new.credentials_ref
    found = review.request.client.get(SECRETS, reference["name"], reference["namespace"])
    if "key" not in found.get("data", {}):
        yield FieldProblem(field=field, detail="the Secret has no key; add it")


GET_SECRETS = [SECRETS.permission("get")]
BINDINGS: list[tuple[type[Object], str]] = [
    (SecretBinding, "secretRef"),
    (CredentialsBinding, "credentialsRef"),
]


def of_garden(cls: type[Object], **fields: Any) -> Any:
    return decode(cls, {"metadata": {"name": "a", "namespace": "garden-a"}, **fields})


def test_the_keys_of_a_secret_are_judged_when_its_data_changes():
    admission = ConfigAdmission(kind=Secret, type="acme", rules=[credentials])
    assert asked(admission, of_garden(Secret)) == "data.key: required key missing; add it"
    assert not asked(admission, of_garden(Secret, data={"key": "YQ=="}))
    assert not asked(admission, of_garden(Secret, type="Opaque"), of_garden(Secret))
    assert asked(admission, of_garden(Secret, data={"b": ""}), of_garden(Secret))
    assert admission.label == {"provider.shoot.gardener.cloud/acme": "true"}


@pytest.mark.parametrize(("kind", "field"), BINDINGS)
def test_a_binding_is_judged_by_the_secret_that_it_names(kind, field):
    rules = [credentials_exist]
    admission = ConfigAdmission(kind=kind, type="acme", rules=rules, permissions=GET_SECRETS)
    reference = {field: {"name": "s", "namespace": "garden-a"}}
    meta = ObjectMeta(name="s", namespace="garden-a")
    bad = Secret(metadata=meta)
    good = Secret(metadata=meta, data={"key": "YQ=="})
    binding = of_garden(kind, **reference)
    assert asked(admission, binding, None, bad) == f"{field}: the Secret has no key; add it"
    assert not asked(admission, binding, None, good)
    labelled = of_garden(kind, **reference, quotas=[{"name": "q"}])
    assert not asked(admission, labelled, binding, bad)
    manager = Manager(Options(webhook_config_namespace="a"))
    manager.add_admission(admission)
    assert GET_SECRETS[0] in permissions(manager)


OBJECTS: dict[type[Object], tuple[type[Object], Raw]] = {
    CloudProfile: (CloudProfile, {"type": "acme", "providerConfig": ...}),
    NamespacedCloudProfile: (NamespacedCloudProfile, {"providerConfig": ...}),
    GardenSeed: (GardenSeed, {"backup": {"provider": "acme", "providerConfig": ...}}),
    BackupBucket: (GardenBackupBucket, {"provider": {"type": "acme"}, "providerConfig": ...}),
}


def filled(spec: Any, config: Any) -> Any:
    if spec is ...:
        return config
    return {k: filled(v, config) for k, v in spec.items()} if isinstance(spec, dict) else spec


def no_x(review: ConfigReview[ZonesConfig, Any]) -> Iterator[FieldProblem]:
    if "x" in review.config.zones:
        yield review.problem(f"zones[{review.config.zones.index('x')}]", "'x' is closed; remove it")


@pytest.mark.parametrize(("kind", "given"), OBJECTS.items(), ids=lambda item: str(item)[:40])
def test_configurations_of_other_objects_are_judged_in_the_same_way(kind, given):
    cls, spec = given
    admission = ConfigAdmission(kind=kind, type="acme", config=ZonesConfig, rules=[no_x])

    def made(zones: Any, **more: Any) -> Any:
        return of_garden(cls, spec=filled(spec, {"zones": zones}) | more)

    assert "zones[1]: 'x' is closed; remove it" in asked(admission, made(["a", "x"]))
    assert "zones: expected a list, got a string" in asked(admission, made("x"))
    assert not asked(admission, made(["a"]))
    assert not asked(admission, made(["x"], region="b"), made(["x"]))
    assert asked(admission, made(["x", "b"]), made(["x"]))
    [policy, _] = admission.policy()
    constraints = policy["spec"]["matchConstraints"]
    assert constraints["resourceRules"][0]["resources"] == [cls.KIND.plural]
    label = "provider.extensions.gardener.cloud/acme"
    assert constraints["objectSelector"] == {"matchLabels": {label: "true"}}
    assert findings(admission.webhooks()) == []


def test_rules_for_shoots_need_no_configuration():
    def small(review: ConfigReview[None, Shoot]) -> Iterator[FieldProblem]:
        if len(review.new.spec["provider"]["workers"]) > 1:
            yield FieldProblem(field="spec.provider.workers", detail="use one pool")

    admission = ConfigAdmission(
        kind=Shoot, type="acme", rules=[small], reads=["spec.provider.workers"]
    )
    assert (
        asked(admission, shoot([], "a", "b"), shoot([], "a"))
        == "spec.provider.workers: use one pool"
    )
    assert not asked(admission, shoot([], "a", "c"), shoot([], "a", "b"))


def test_the_process_may_read_cloud_profiles_and_no_more_than_declared():
    manager = Manager(Options(webhook_config_namespace="a"))
    manager.add_admission(ZONES)
    read = {str(permission.resource): permission.verbs for permission in permissions(manager)}
    plurals = ("cloudprofiles", "namespacedcloudprofiles")
    assert [read[f"{name}.core.gardener.cloud"] for name in plurals] == [("get",), ("get",)]
    pages = Resource("v1", "configmaps").permission("get")
    other = attrs.evolve(ZONES, rules=[], permissions=[pages])
    assert other.webhooks() == []


def test_defaults_are_written_only_if_the_author_asks_for_them():
    assert [hook.name for hook in ZONES.webhooks()] == ["validate-infrastructure-acme"]
    names = [hook.name for hook in attrs.evolve(ZONES, defaults=True).webhooks()]
    assert names == ["default-infrastructure-acme", "validate-infrastructure-acme"]


@pytest.mark.parametrize("path", ["spec", "spec.hibernation", "spec.hibernation.enabled", "status"])
def test_a_rule_that_would_judge_a_hibernation_is_refused(path):
    with pytest.raises(ValueError, match="a Shoot hibernates and wakes up without a validation"):
        attrs.evolve(ZONES, reads=[path])


def test_a_configuration_is_declared_exactly_where_one_exists():
    with pytest.raises(TypeError, match="; remove it, and set rules="):
        ConfigAdmission(kind=Secret, type="acme", config=ZonesConfig)
    with pytest.raises(TypeError, match="Infrastructure: config=None; set its class"):
        ConfigAdmission(kind=Infrastructure, type="acme", rules=[no_x])
    with pytest.raises(TypeError, match="secret-acme: a policy needs config="):
        ConfigAdmission(kind=Secret, type="acme", rules=[credentials]).policy()


def test_no_rule_changes_the_object():
    given = shoot(["a", "x"])
    before = deepcopy(given)
    asked(ZONES, given)
    assert given == before
