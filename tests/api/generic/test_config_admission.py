"""Policies in the garden, and the rules of CRDs, judge configurations as Python does.

ADMISSION_OBJECTS is the number of generated objects (default: 400).
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from functools import partial
from random import Random
from typing import Annotated, Any, ClassVar, Literal

import attrs
import pytest
from generated import changed, spoilt, valid
from harness import eventually

from actuator import ProviderConfig
from actuator.checking import check
from actuator.errors import ApiError, NotFound
from actuator.interface import resource_of
from actuator.meta import Base64, KeepsUnknownFields, Kind, Object, Raw, Schema, own_kind
from actuator.provider_config import changes_of
from actuator.schema import json_schema
from actuator.v1alpha1 import (
    ContainerRuntime,
    ControlPlane,
    Extension,
    Infrastructure,
    Network,
    OperatingSystemConfig,
    Worker,
)
from extensions.aws import config as aws
from extensions.certificate import admission as certificate
from extensions.certificate.config import API_VERSION, CertificateConfig
from extensions.local.config import NetworkConfig, ShareConfig
from extensions.networkfilter.config import FilterConfig
from generic.kube.client import HttpClient, connect, path_of
from generic.library.webhooks.admission import BINDINGS, POLICIES, ConfigAdmission, Shoot, policies
from generic.library.webhooks.configurations import MUTATING, VALIDATING
from generic.manager.manager import Manager
from generic.manager.options import Options
from generic.manager.rbac import grant
from generic.testing.envtest import Environment
from generic.testing.envtest.servers import free_port
from generic.testing.seed import install

OBJECTS = int(os.environ.get("ADMISSION_OBJECTS", "400"))
SHOOTS = resource_of(Shoot.KIND)


class Policy(StrEnum):
    DELETE = "Delete"
    RETAIN = "Retain"


@attrs.frozen(kw_only=True)
class Part:
    name: Annotated[str, Schema(pattern=r"[a-z]\w*(-\d{1,3})?", example="a")]
    cidr: Annotated[str, Schema(format="cidr")] = "10.0.0.0/8"
    address: Annotated[str | None, Schema(format="ip")] = None
    token: Annotated[str | None, Schema(format="password", min_length=2, max_length=4)] = None
    fixed: Annotated[str, Schema(max_length=5)] = "fixed"


@attrs.frozen(kw_only=True)
class Settings:
    region: Annotated[str, Schema(immutable=True, max_length=9)] = "here"
    zones: Annotated[list[str] | None, Schema(immutable=True, max_length=4)] = None
    note: str = ""


@attrs.frozen(kw_only=True)
class EverythingConfig(ProviderConfig):
    """Every construct that a configuration may have."""

    api_version: str = "everything.example.org/v1"
    kind: str = "EverythingConfig"
    settings: Settings = attrs.field(factory=Settings)
    owner: Annotated[str, Schema(required=True, immutable=True)] = ""
    parts: Annotated[list[Part], Schema(min_length=1, max_length=3)]
    mtu: Annotated[int | None, Schema(minimum=1280, maximum=9000)] = None
    count: int = 1
    ratio: Annotated[float, Schema(minimum=0, maximum=1)] = 0.5
    policy: Policy = Policy.DELETE
    mode: Literal["fast", "safe"] = "fast"
    is_public: bool = False
    size: int | str = 1
    counts: Annotated[dict[str, int], Schema(min_length=0, max_length=2)] = attrs.field(
        factory=dict
    )
    labels: dict[str, Annotated[str, Schema(max_length=3)]] = attrs.field(factory=dict)
    byname: dict[str, Part] = attrs.field(factory=dict)
    matrix: list[list[int]] = attrs.field(factory=list)
    data: Base64 | None = None
    raw: Raw | None = None
    anything: Any = None


@attrs.frozen(kw_only=True)
class EverythingSpec(KeepsUnknownFields):
    """The same for an own kind."""

    parts: Annotated[list[Part], Schema(min_length=1, max_length=3)] = attrs.field(factory=list)
    mtu: Annotated[int | None, Schema(minimum=1280, maximum=9000)] = None
    count: int = 1
    policy: Policy = Policy.DELETE
    mode: Literal["fast", "safe"] = "fast"
    is_public: bool = False
    size: int | str = 1
    cidrs: Annotated[list[Annotated[str, Schema(format="cidr")]], Schema(max_length=100)] = (
        attrs.field(factory=list)
    )
    address: Annotated[str | None, Schema(format="ip")] = None
    labels: dict[str, Annotated[str, Schema(max_length=3)]] = attrs.field(factory=dict)
    raw: Raw | None = None


@attrs.define(kw_only=True)
class Everything(Object):
    KIND: ClassVar[Kind] = own_kind("Everything", "example.org")

    spec: Annotated[EverythingSpec, Schema(required=True)] = attrs.field(factory=EverythingSpec)


@attrs.frozen(kw_only=True)
class PoolConfig(ProviderConfig):
    api_version: str = "pool.example.org/v1"
    kind: str = "PoolConfig"
    parts: list[Part] = attrs.field(factory=list)


ADMISSIONS = [
    ConfigAdmission(kind=kind, type=type, config=config)
    for kind, type, config in (
        (Extension, "everything", EverythingConfig),
        (Infrastructure, "aws", aws.InfrastructureConfig),
        (ControlPlane, "aws-control-plane", aws.ControlPlaneConfig),
        (Worker, "aws-worker", aws.WorkerConfig),
        (Extension, "certificate-service", CertificateConfig),
        (Extension, "networkfilter", FilterConfig),
        (Network, "local", NetworkConfig),
        (Extension, "share", ShareConfig),
        (ContainerRuntime, "pooled", PoolConfig),
        (OperatingSystemConfig, "imaged", PoolConfig),
    )
]


@pytest.fixture
def environment_of_garden(borrowed) -> Iterator[Environment]:
    """No cluster of other tests: it has Shoots, and policies for all of them."""
    with Environment() as started:
        yield started


@pytest.fixture
def garden(environment_of_garden) -> Iterator[HttpClient]:
    """A garden whose Shoots have no schema, as raw configurations have none in Gardener."""
    install(environment_of_garden, [Shoot, Everything])
    client = connect(environment_of_garden.kubeconfig)
    yield client
    for resource in (POLICIES, BINDINGS, MUTATING, VALIDATING):
        for found in client.list(resource):
            client.delete(resource, found["metadata"]["name"])


def shoot(admission: ConfigAdmission, config: Any, name: str = "one", **more: Any) -> Raw:
    """A Shoot that has a configuration, or nothing in its place."""
    place = admission.place
    configured = {} if config is ... else {place.field: config}
    type = {place.type_field or "unused": admission.type}
    provider: Raw = {"type": admission.type if not place.type_field else "other", "workers": [{}]}
    spec: Raw = {"provider": provider}
    match place.holder.split("."):
        case ["spec", "provider"]:
            provider |= type | configured
        case ["spec", "provider", "workers[]"]:
            provider["workers"] = [configured]
        case ["spec", "provider", "workers[]", "machine", "image"]:
            provider["workers"] = [{"machine": {"image": type | configured}}, {"machine": {}}]
        case ["spec", "provider", "workers[]", *_]:
            runtimes = {
                "containerRuntimes": [{"type": "other", "providerConfig": 1}, type | configured]
            }
            provider["workers"] = [{"cri": runtimes}, {}]
        case ["spec", "networking"]:
            spec["networking"] = type | configured
        case _:
            spec["extensions"] = [{"type": "other", "providerConfig": 1}, type | configured]
    labels = {} if name.startswith("stored") and not more else admission.label
    meta = {"name": name, "namespace": "default", **more, "labels": dict(labels)}
    return {"apiVersion": SHOOTS.api_version, "kind": "Shoot", "metadata": meta, "spec": spec}


def verdict(client: HttpClient, path: str, obj: Raw, method: str = "POST") -> str:
    """The reason why the API server refuses an object, or ""; nothing is stored."""
    query = {"dryRun": "All", "fieldValidation": "Strict"}
    body = json.dumps(obj).encode()
    try:
        client.send(method, path, query=query, body=body)
    except ApiError as error:
        return str(error)
    return ""


def install_policies(client: HttpClient) -> None:
    for resource, manifest in policies(ADMISSIONS):
        client.apply(resource, manifest)
    path = path_of(SHOOTS, "default")
    for admission in ADMISSIONS:
        eventually(lambda one=admission: verdict(client, path, shoot(one, "spoilt")))


def stored(client: HttpClient) -> list[tuple[ConfigAdmission, Any, Raw]]:
    """Shoots from before the policies, with valid and invalid configurations, or none."""
    dice = Random(1)
    found = []
    for admission in ADMISSIONS:
        schema = json_schema(admission.config)
        configs = [..., valid(schema, dice), valid(schema, dice), spoilt(schema, dice), None]
        for config in configs:
            manifest = shoot(admission, config, f"stored-{time.monotonic_ns()}")
            found.append((admission, config, client.create(SHOOTS, manifest)))
    return found


def compare(client: HttpClient, old: list[tuple[ConfigAdmission, Any, Raw]], number: int) -> str:
    """Create or update a generated Shoot; return the difference of the decisions, or ""."""
    dice = Random(number)
    path, method, before, meta = path_of(SHOOTS, "default"), "POST", ..., {}
    admission = ADMISSIONS[0 if number % 2 else number // 2 % len(ADMISSIONS)]
    if update := number % 3 == 0:
        admission, before, existing = dice.choice(old)
        method, meta = "PUT", existing["metadata"]
        path = f"{path}/{meta['name']}"
    schema = json_schema(admission.config)
    config = dice.choice([valid, spoilt, spoilt])(schema, dice)
    if update and dice.random() < 0.5:
        config = changed(before if isinstance(before, dict) else {}, dice)
    given = {} if config is None else config
    former = {} if before in (None, ...) else before
    problems = []
    if not update or _as_read(given) != _as_read(former):
        problems = [*check(admission.config, given)]
        problems += changes_of(admission.config, former, given, "") if update else []
    refused = verdict(client, path, shoot(admission, config, **(meta or {"name": "new"})), method)
    assert not refused or admission.name in refused, refused
    if bool(problems) == bool(refused):
        return "refused" if refused else "admitted"
    return f"{number} {admission.type} {before!r} -> {config!r}: {problems} but {refused!r}"


def test_policies_decide_like_python(garden):
    old = stored(garden)
    install_policies(garden)
    with ThreadPoolExecutor(8) as pool:
        found = Counter(pool.map(partial(compare, garden, old), range(OBJECTS)))
    assert set(found) == {"refused", "admitted"}, list(found)[:20]
    assert min(found.values()) > OBJECTS / 5


def test_rules_of_own_kinds_decide_like_python(garden):
    schema = json_schema(EverythingSpec)
    path = path_of(resource_of(Everything.KIND), "default")

    def compare(number: int) -> str:
        dice = Random(number)
        spec = dice.choice([valid, spoilt, spoilt])(schema, dice)
        meta = {"name": "one", "namespace": "default"}
        made = {"apiVersion": "example.org/v1alpha1", "kind": "Everything", "metadata": meta}
        refused = verdict(garden, path, {**made, "spec": spec})
        problems = check(EverythingSpec, _as_stored(spec))
        if spec is None:
            problems = [("spec", "required")]
        if bool(problems) == bool(refused):
            return "refused" if refused else "admitted"
        return f"{number} {spec!r}: {problems} but {refused!r}"

    with ThreadPoolExecutor(8) as pool:
        found = Counter(pool.map(compare, range(OBJECTS)))
    assert set(found) == {"refused", "admitted"}, list(found)[:20]


def _as_stored(value: Any, field: str = "") -> Any:
    """The API server stores 1.0 in a field for integers as 1, and no null in a map."""
    if isinstance(value, dict):
        return {
            name: _as_stored(item, name)
            for name, item in value.items()
            if item is not None or field != "labels"
        }
    if isinstance(value, list):
        return [_as_stored(item) for item in value]
    is_whole = isinstance(value, float) and value.is_integer() and abs(value) < 2**53
    return int(value) if is_whole else value


def _as_read(value: Any) -> Any:
    """The API server reads an integer of more than 64 bits as a float."""
    return json.loads(json.dumps(value), parse_int=lambda text: _int64(int(text)))


def _int64(value: int) -> int | float:
    return value if -(2**63) <= value < 2**63 else float(value)


def test_a_message_names_the_field_and_the_expectation(garden):
    install_policies(garden)
    config = {"issuers": [{"name": "Upper", "server": "https://example.org"}]}
    path = path_of(SHOOTS, "default")
    field = "spec.extensions[].providerConfig.issuers[].name"
    refused = verdict(garden, path, shoot(ADMISSIONS[4], config))
    assert f"{field}: expected a string like 'letsencrypt' (pattern [a-z0-9]" in refused
    assert "Upper" not in refused


def test_a_shoot_with_an_invalid_configuration_is_changed_elsewhere_and_deleted(garden):
    """As after rules became stricter: hibernated, then deleted with a finalizer."""
    name = f"old-{time.monotonic_ns()}"
    bad = shoot(ADMISSIONS[7], {"capacity": 7}, f"stored-{name}", finalizers=["example.org/held"])
    bad["metadata"]["labels"] = {}
    stored = garden.create(SHOOTS, bad)
    install_policies(garden)
    path = f"{path_of(SHOOTS, 'default')}/stored-{name}"
    stored["metadata"]["labels"] = dict(ADMISSIONS[7].label)
    hibernated = {**stored, "spec": {**stored["spec"], "hibernation": {"enabled": True}}}
    assert not verdict(garden, path, hibernated, "PUT")
    worse = {**stored, "spec": shoot(ADMISSIONS[7], {"capacity": 8})["spec"]}
    assert verdict(garden, path, worse, "PUT")
    confirmed = {"confirmation.gardener.cloud/deletion": "true"}
    stored["metadata"]["annotations"] = confirmed
    assert not verdict(garden, path, stored, "PUT")
    garden.delete(SHOOTS, f"stored-{name}", "default")
    patch: Raw = {"metadata": {"finalizers": None}, "spec": worse["spec"]}
    garden.patch(SHOOTS, f"stored-{name}", "default", patch)
    with pytest.raises(NotFound):
        garden.get(SHOOTS, f"stored-{name}", "default")


def test_a_long_list_stays_in_the_budget(garden):
    install_policies(garden)
    blocked = [f"10.{number // 256}.{number % 256}.0/24" for number in range(5000)]
    path = path_of(SHOOTS, "default")
    assert not verdict(garden, path, shoot(ADMISSIONS[5], {"blocked": blocked}))
    refused = verdict(garden, path, shoot(ADMISSIONS[5], {"blocked": [*blocked, "10.0.0.1/8"]}))
    assert "blocked[]: expected a string like '203.0.113.0/24' (the first address" in refused


def test_the_process_checks_and_defaults_what_a_policy_cannot(garden, environment_of_garden):
    """The sample's admission under its roles: its policies, and its webhooks over TLS."""
    port = free_port()
    options = Options(
        kubeconfig=environment_of_garden.user_kubeconfig("admission", []),
        leader_election_id="certificate-admission",
        webhook_config_mode="url",
        webhook_config_url=f"127.0.0.1:{port}",
        webhook_config_namespace="default",
        webhook_config_server_port=port,
        metrics_bind_address="0",
        health_bind_address="0",
    )
    manager = Manager(options)
    certificate.admission(manager)
    grant(garden, manager, "admission")
    for resource, manifest in policies(manager.admissions):
        garden.apply(resource, manifest)
    path = path_of(SHOOTS, "default")
    one = {"name": "a", "server": "https://example.org"}
    sample = certificate.ISSUERS
    manager.start()
    try:
        twice = shoot(sample, {"issuers": [one, one]}, "twice")
        refused = eventually(lambda: verdict(garden, path, twice))
        field = "spec.extensions[1].providerConfig.issuers"
        assert f"{field}: 'a' is there 2 times; keep one of them" in refused
        created = garden.create(
            SHOOTS, shoot(certificate.ISSUERS, {"issuers": [one]}, f"made-{port}")
        )
        config = created["spec"]["extensions"][1]["providerConfig"]
        assert config == {"issuers": [one], "apiVersion": API_VERSION, "kind": "CertificateConfig"}
    finally:
        manager.stop()
    created["spec"]["hibernation"] = {}
    assert not verdict(garden, f"{path}/made-{port}", created, "PUT")
    created["spec"]["extensions"][1]["providerConfig"]["issuers"] = []
    assert "failed calling webhook" in verdict(garden, f"{path}/made-{port}", created, "PUT")
    garden.delete(SHOOTS, f"made-{port}", "default")
