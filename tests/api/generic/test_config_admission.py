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

from actuator import FieldProblem, ProviderConfig
from actuator.checking import check
from actuator.errors import ApiError, NotFound
from actuator.interface import SECRETS, Resource, resource_of
from actuator.meta import Base64, KeepsUnknownFields, Kind, Object, Raw, Schema, own_kind
from actuator.provider_config import accepted_versions, changes_of, load_config, version_of
from actuator.schema import json_schema
from actuator.v1alpha1 import (
    BackupBucket,
    ContainerRuntime,
    ControlPlane,
    Extension,
    Infrastructure,
    Network,
    OperatingSystemConfig,
    Worker,
)
from extensions.aws import config as aws
from extensions.certificate.config import API_VERSION, CertificateConfig
from extensions.local.config import NetworkConfig, ShareConfig
from extensions.networkfilter.config import FilterConfig
from generic.kube.client import HttpClient, Silence, connect, path_of
from generic.library.manifests import manifest_of
from generic.library.webhooks import ConfigReview, Secret
from generic.library.webhooks.admission import ConfigAdmission, policies
from generic.library.webhooks.configurations import MUTATING, VALIDATING
from generic.library.webhooks.garden import (
    CloudProfile,
    GardenSeed,
    NamespacedCloudProfile,
    Shoot,
    cloud_profile_status,
    provider_label,
)
from generic.library.webhooks.policies import BINDINGS, POLICIES
from generic.manager.manager import Manager
from generic.manager.options import Options
from generic.manager.rbac import grant
from generic.testing.envtest import Environment
from generic.testing.envtest.servers import free_port
from generic.testing.gardenapi.kinds import garden_crds
from generic.testing.seed import install_crds
from tests.support.cluster.harness import eventually
from tests.support.objects.configurations import changed, equal, spoilt, valid
from tests.support.objects.present import present
from tests.support.samples.ruled import RULED

OBJECTS = int(os.environ.get("ADMISSION_OBJECTS", "400"))
SHOOTS = resource_of(Shoot.KIND)
PARENT = {"kind": "CloudProfile", "name": "parent"}


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
    key: Annotated[str, Schema(immutable=True, max_length=9, format="password")] = ""
    level: Annotated[int | None, Schema(immutable="always")] = None
    note: str = ""


@attrs.frozen(kw_only=True)
class Formats:
    cpu: Annotated[int | float | str, Schema(format="quantity")] = 1
    memory: Annotated[str, Schema(format="quantity")] = "1Gi"
    timeout: Annotated[str | None, Schema(format="duration")] = None
    label: Annotated[str, Schema(format="dns-label")] = "a"
    host: Annotated[str, Schema(format="dns-name")] = "a.b"
    server: Annotated[str | None, Schema(format="url")] = None


@attrs.frozen(kw_only=True)
class Inner:
    size: int = 1
    names: list[str] = attrs.field(factory=list)
    policy: Policy = Policy.DELETE


@attrs.frozen(kw_only=True)
class Zone:
    """An entry with a key."""

    name: Annotated[str, Schema(min_length=1, max_length=1, pattern="[ab]")]
    cidr: Annotated[str, Schema(immutable=True, max_length=1)] = ""
    inner: Annotated[Inner, Schema(immutable=True)] = attrs.field(factory=Inner)
    level: Annotated[int | None, Schema(immutable="always", minimum=0, maximum=1)] = None


ZONES = Schema(key="name", max_length=3)


@attrs.frozen(kw_only=True)
class OldConfig(ProviderConfig):
    """The version before, which may omit apiVersion and kind."""

    api_version: str = "versioned.example.org/v1"
    kind: str = "VersionedConfig"
    zone: Annotated[str, Schema(immutable=True, max_length=1)] = ""
    count: Annotated[int, Schema(maximum=3)] = 1


@attrs.frozen(kw_only=True)
class OldestConfig(ProviderConfig):
    """One that the version before converts."""

    api_version: str = "versioned.example.org/v0"
    kind: str = "VersionedConfig"
    zone: Annotated[str, Schema(immutable="always", max_length=1)] = "a"


OldConfig.versions = {OldestConfig: lambda old: OldConfig(zone=old.zone)}


@attrs.frozen(kw_only=True)
class VersionedConfig(ProviderConfig):
    """Keys, formats, immutability and versions."""

    api_version: Annotated[str, Schema(required=True)] = "versioned.example.org/v2"
    kind: str = "VersionedConfig"
    zones: Annotated[list[Zone], ZONES] = attrs.field(factory=list)
    fixed: Annotated[list[Inner], Schema(immutable=True, max_length=2)] = attrs.field(factory=list)
    keyed: Annotated[list[Zone], Schema(key="name", max_length=3, immutable="always")] = (
        attrs.field(factory=list)
    )
    named: dict[str, Zone] = attrs.field(factory=dict)
    pairs: Annotated[dict[str, Inner] | None, Schema(immutable="always", max_length=2)] = None
    inner: Annotated[Inner | None, Schema(immutable=True)] = None
    formats: Formats = attrs.field(factory=Formats)
    versions = {OldConfig: lambda old: VersionedConfig(zones=[Zone(name=old.zone or "a")])}


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
    cpu: Annotated[int | str, Schema(format="quantity")] = 1
    memories: list[Annotated[str, Schema(format="quantity")]] = attrs.field(factory=list)
    timeouts: list[Annotated[str, Schema(format="duration")]] = attrs.field(factory=list)
    label: Annotated[str, Schema(format="dns-label")] = "a"
    hosts: list[Annotated[str, Schema(format="dns-name")]] = attrs.field(factory=list)
    server: Annotated[str, Schema(format="url")] = "https://a"
    zones: Annotated[list[Zone], ZONES] = attrs.field(factory=list)
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
        (Extension, "versioned", VersionedConfig),
        (Infrastructure, "aws", aws.InfrastructureConfig),
        (ControlPlane, "aws-control-plane", aws.ControlPlaneConfig),
        (Worker, "aws-worker", aws.WorkerConfig),
        (Extension, "certificate-service", CertificateConfig),
        (Extension, "networkfilter", FilterConfig),
        (Network, "local", NetworkConfig),
        (Extension, "share", ShareConfig),
        (ContainerRuntime, "pooled", PoolConfig),
        (OperatingSystemConfig, "imaged", PoolConfig),
        (CloudProfile, "offered", aws.WorkerConfig),
        (NamespacedCloudProfile, "offered", ShareConfig),
        (GardenSeed, "backed-up", ShareConfig),
        (BackupBucket, "backed-up", FilterConfig),
    )
]


@pytest.fixture
def environment_of_garden(borrowed) -> Iterator[Environment]:
    """No cluster of other tests: it has Shoots, and policies for all of them."""
    with Environment() as started:
        yield started


@pytest.fixture
def garden(environment_of_garden) -> Iterator[HttpClient]:
    """A garden without the labels of extensions: a test decides which objects have them."""
    client = connect(environment_of_garden.kubeconfig)
    install_crds(client, [Everything, *garden_crds()])
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
    spec: Raw = {"region": "here", "provider": provider}
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


def of_garden(admission: ConfigAdmission, config: Any, name: str = "one", **more: Any) -> Raw:
    """An object of the garden that has a configuration, or nothing in its place."""
    place = admission.place
    if place.of is Shoot:
        return shoot(admission, config, name, **more)
    holder: Raw = {} if config is ... else {place.field: config}
    if place.type_field:
        holder[place.type_field] = admission.type
    spec = {place.holder.partition(".")[2]: holder} if "." in place.holder else holder
    if place.type_field == "":
        spec["provider"] = {"type": admission.type}
    if place.of is NamespacedCloudProfile:
        spec["parent"] = PARENT
    made = manifest_of(place.of, name, "default", spec=spec)
    labels = {} if name.startswith("stored") and not more else admission.label
    made["metadata"] |= {**more, "labels": dict(labels)}
    return made


def at(admission: ConfigAdmission) -> str:
    """The path at which the API server has such objects."""
    return path_of(resource_of(admission.place.of.KIND), "default")


def verdict(client: HttpClient, path: str, obj: Raw, method: str = "POST") -> str:
    """The reason why the API server refuses an object, or ""; nothing is stored."""
    query = {"dryRun": "All", "fieldValidation": "Strict"}
    body = json.dumps(obj).encode()
    try:
        client.send(method, path, query=query, body=body)
    except ApiError as error:
        return str(error)
    return ""


def is_applied(client: HttpClient, resource: Resource, manifest: Raw) -> bool:
    """Whether the API server has written it: it compiles a policy first, slowly under load."""
    try:
        client.apply(resource, manifest)
    except Silence:
        return False
    return True


def install_policies(client: HttpClient, *numbers: int) -> None:
    """Install the policies of these admissions, or of all."""
    chosen = [ADMISSIONS[number] for number in numbers] or ADMISSIONS
    for resource, manifest in policies(chosen):
        eventually(partial(is_applied, client, resource, manifest))
    for admission in chosen:
        eventually(partial(verdict, client, at(admission), of_garden(admission, "spoilt")))


def stored(client: HttpClient) -> list[tuple[ConfigAdmission, Any, Raw]]:
    """Shoots from before the policies, with valid and invalid configurations, or none."""
    rng = Random(1)
    found = []
    for admission in ADMISSIONS:
        schema = json_schema(rng.choice([*accepted_versions(present(admission.config))]))
        configs = [..., valid(schema, rng), valid(schema, rng), spoilt(schema, rng), None]
        for config in configs:
            manifest = of_garden(admission, config, f"stored-{time.monotonic_ns()}")
            resource = resource_of(admission.place.of.KIND)
            found.append((admission, config, client.create(resource, manifest)))
    return found


def compare(client: HttpClient, old: list[tuple[ConfigAdmission, Any, Raw]], number: int) -> str:
    """Create or update a generated Shoot; return the difference of the decisions, or ""."""
    rng = Random(number)
    method = "POST"
    before: Any = ...
    meta: Raw = {}
    admission = ADMISSIONS[number // 2 % 2 if number % 2 else number // 2 % len(ADMISSIONS)]
    if update := number % 3 == 0:
        admission, before, existing = rng.choice(old)
        method = "PUT"
        meta = existing["metadata"]
    path = "/".join([at(admission), *([meta["name"]] if meta else [])])
    cls = present(admission.config)
    schema = json_schema(rng.choice([*accepted_versions(cls)]))
    config = rng.choice([valid, spoilt, spoilt])(schema, rng)
    if update and rng.random() < 0.5:
        config = changed(before if isinstance(before, dict) else {}, rng)
    given = {} if config is None else config
    former: Any = {} if before in (None, ...) else before
    problems = []
    is_absent = config in (None, ...) and not _counts_when_absent(admission)
    if not is_absent and (not update or not equal(_as_read(given), _as_read(former))):
        problems = load_config(cls, given, "", rules=False)[1]
        versions = [version_of(cls, data)[0] for data in (former, given)]
        if update and versions[0] is versions[1]:  # no policy converts one
            problems += changes_of(cls, former, given, "")
    made = of_garden(admission, config, **(meta or {"name": "new"}))
    refused = verdict(client, path, made, method)
    assert not refused or admission.name in refused, refused
    if bool(problems) == bool(refused):
        return "refused" if refused else "admitted"
    return f"{number} {admission.type} {before!r} -> {config!r}: {problems} but {refused!r}"


def _counts_when_absent(admission: ConfigAdmission) -> bool:
    return admission.place.of is Shoot or admission.place.is_always_needed


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
        rng = Random(number)
        spec = rng.choice([valid, spoilt, spoilt])(schema, rng)
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


ISSUER = {"name": "a", "server": "https://example.org"}
PART = {"name": "a", "token": "hidden secret"}
EVERYTHING: Raw = {"owner": "a", "parts": [{"name": "a"}]}
AT = "spec.extensions[1].providerConfig"
MESSAGES: list[tuple[int, Raw, list[str]]] = [
    (
        5,
        {"issuers": [ISSUER, {**ISSUER, "name": "Upper"}]},
        [
            f"{AT}.issuers[1].name: expected a string like 'letsencrypt' (a DNS label of lower-",
            "got 'Upper'",
        ],
    ),
    (5, {"issuers": [ISSUER, "text"]}, [f"{AT}.issuers[1]: expected an object, got a string"]),
    (5, {"issuers": [ISSUER, ISSUER]}, [f"{AT}.issuers[0]: is a duplicate; keep one of them"]),
    (5, {"issuers": 7}, [f"{AT}.issuers: expected a list (entries: at most 64), got 7"]),
    (5, {"isuers": []}, [f"{AT}: unknown field isuers; use only apiVersion, kind, issuers"]),
    (5, {"issuers": [{"name": "b"}]}, [f"{AT}.issuers[0].server: required field missing; set a"]),
    (
        0,
        EVERYTHING | {"parts": [PART]},
        [f"{AT}.parts[0].token: expected a string", "got a secret value"],
    ),
    (
        0,
        EVERYTHING | {"labels": {"a": "b", "c": "long"}},
        [f"{AT}.labels.c: expected a string", "got 'long'"],
    ),
    (0, EVERYTHING | {"mtu": 9001}, [f"{AT}.mtu: expected an integer", "got 9001"]),
    (
        0,
        EVERYTHING | {"parts": [{"name": "é" * 70}]},
        [f"{AT}.parts[0].name: expected", "got a longer string"],
    ),
]


def test_a_message_names_index_and_value_but_no_secret(garden):
    install_policies(garden, 0, 5)
    for number, config, words in MESSAGES:
        admission = ADMISSIONS[number]
        refused = verdict(garden, path_of(SHOOTS, "default"), shoot(admission, config))
        for text in words:
            assert text in refused, refused
        assert "hidden" not in refused


CHANGES: list[tuple[Raw, Raw, str]] = [
    (
        {"settings": {"region": "a"}},
        {"settings": {"region": "b"}},
        "settings.region: field is immutable; set its former value 'a' instead of 'b'",
    ),
    (
        {},
        {"settings": {"region": "b"}},
        "settings.region: field is immutable; set its former value 'here' instead of 'b'",
    ),
    (
        {"settings": {"zones": ["a"]}},
        {"settings": {"zones": ["b"]}},
        "settings.zones: field is immutable; set its former value",
    ),
    (
        {"settings": {"key": "former"}},
        {"settings": {"key": "hidden"}},
        "settings.key: field is immutable; set its former value",
    ),
    ({}, {"settings": {"level": 5}}, "settings.level: field is immutable; remove its value 5"),
]


def test_a_message_about_an_immutable_field_has_both_values_but_no_secret(garden):
    """In the same words as that of Python."""
    install_policies(garden, 0)
    admission = ADMISSIONS[0]
    for before, after, words in CHANGES:
        name = f"stored-{time.monotonic_ns()}"
        old = shoot(admission, EVERYTHING | before, name)
        old["metadata"]["labels"] = {}
        stored = garden.create(SHOOTS, old)
        new = shoot(admission, EVERYTHING | after, name)
        new["metadata"] = {**stored["metadata"], "labels": dict(admission.label)}
        refused = verdict(garden, f"{path_of(SHOOTS, 'default')}/{name}", new, "PUT")
        [problem] = admission.problems(new["spec"], old["spec"])
        assert str(problem) == f"{AT}.{words}"
        assert f"{AT}.{words}" in refused, refused
        assert ("instead of" in refused) == ("instead of" in words)
        assert "hidden" not in refused
        assert "former'" not in refused


def test_a_shoot_with_an_invalid_configuration_is_changed_elsewhere_and_deleted(garden):
    """As after rules became stricter: hibernated, then deleted with a finalizer."""
    name = f"old-{time.monotonic_ns()}"
    bad = shoot(ADMISSIONS[8], {"capacity": 7}, f"stored-{name}", finalizers=["example.org/held"])
    bad["metadata"]["labels"] = {}
    stored = garden.create(SHOOTS, bad)
    install_policies(garden, 8)
    path = f"{path_of(SHOOTS, 'default')}/stored-{name}"
    stored["metadata"]["labels"] = dict(ADMISSIONS[8].label)
    hibernated = {**stored, "spec": {**stored["spec"], "hibernation": {"enabled": True}}}
    assert not verdict(garden, path, hibernated, "PUT")
    worse = {**stored, "spec": shoot(ADMISSIONS[8], {"capacity": 8})["spec"]}
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
    install_policies(garden, 6)
    blocked = [f"10.{number // 256}.{number % 256}.0/24" for number in range(5000)]
    path = path_of(SHOOTS, "default")
    assert not verdict(garden, path, shoot(ADMISSIONS[6], {"blocked": blocked}))
    refused = verdict(garden, path, shoot(ADMISSIONS[6], {"blocked": [*blocked, "10.0.0.1/8"]}))
    assert "blocked[5000]: expected a string like '203.0.113.0/24' (the first address" in refused


def process(environment: Environment, port: int) -> Manager:
    """The manager of an admission, with a user of its own."""
    options = Options(
        kubeconfig=environment.user_kubeconfig("admission", []),
        leader_election_id="certificate-admission",
        webhook_config_mode="url",
        webhook_config_url=f"127.0.0.1:{port}",
        webhook_config_namespace="default",
        webhook_config_server_port=port,
        metrics_bind_address="0",
        health_bind_address="0",
    )
    return Manager(options)


def test_the_status_of_a_namespaced_cloud_profile_is_completed_and_its_deletion_works(
    garden, environment_of_garden
):
    """As gardener-controller-manager writes it; then the server is down."""
    profiles = resource_of(NamespacedCloudProfile.KIND)
    manager = process(environment_of_garden, free_port())
    manager.add_webhooks(cloud_profile_status("acme"))
    grant(garden, manager, "admission")
    name = f"profile-{time.monotonic_ns()}"
    meta: Raw = {"name": name, "finalizers": ["example.org/held"]}
    labels = provider_label("acme")
    own = {"machineImages": [{"name": "a", "versions": [{"version": "1", "id": "own"}]}]}
    spec = {"parent": PARENT, "providerConfig": own}
    made = manifest_of(NamespacedCloudProfile, name, "default", spec=spec)
    made["metadata"] |= {**meta, "labels": labels}
    created = garden.create(profiles, made)
    parent = {"machineImages": [], "zone": "a"}
    status = {"observedGeneration": created["metadata"]["generation"]}
    status["cloudProfileSpec"] = {"providerConfig": parent}

    def written() -> Raw:
        found: Raw = garden.patch(
            profiles, name, "default", {"status": status}, subresource="status"
        )
        return found["status"]["cloudProfileSpec"]["providerConfig"]

    manager.start()
    try:
        eventually(lambda: written() == parent | own)
    finally:
        manager.stop()
    with pytest.raises(ApiError, match="failed calling webhook"):
        written()
    garden.delete(profiles, name, "default")
    assert written() == parent
    garden.patch(profiles, name, "default", {"metadata": {"finalizers": None}})
    with pytest.raises(NotFound):
        garden.get(profiles, name, "default")


def region_has_room(review: ConfigReview[ShareConfig, Shoot]) -> Iterator[FieldProblem]:
    """A rule about the CloudProfile and the Shoot."""
    regions = [region["name"] for region in review.cloud_profile().spec["regions"]]
    if (region := review.new.spec["region"]) not in regions:
        yield FieldProblem(field="spec.region", detail=f"{region!r} is full; use {regions[0]}")


def secret_has_key(review: ConfigReview[None, Secret]) -> Iterator[FieldProblem]:
    if "key" not in review.new.data:
        yield FieldProblem(field="data.key", detail="required key missing; add it")


SHARE = ConfigAdmission(
    kind=Extension,
    type="share",
    config=ShareConfig,
    rules=[region_has_room],
    reads=["spec.region"],
)


def test_rules_judge_shoots_and_secrets_and_stop_no_shoot_that_hibernates(
    garden, environment_of_garden
):
    manager = process(environment_of_garden, free_port())
    credentials = ConfigAdmission(kind=Secret, type="acme", rules=[secret_has_key])
    manager.add_admission(SHARE, credentials)
    grant(garden, manager, "admission")
    name = f"ruled-{time.monotonic_ns()}"
    offered = {"type": "acme", "regions": [{"name": "north"}]}
    profile = manifest_of(CloudProfile, name, spec=offered)
    garden.create(resource_of(CloudProfile.KIND), profile)
    made = shoot(SHARE, {}, name)
    made["spec"] |= {"cloudProfileName": name, "region": "south"}
    old = garden.create(SHOOTS, {**made, "metadata": {**made["metadata"], "name": f"old-{name}"}})
    secret = manifest_of(Secret, name, "default", credentials.label, data={"key": "YQ=="})
    kept = garden.create(SECRETS, secret)
    paths = [path_of(SHOOTS, "default"), path_of(SECRETS, "default")]
    manager.start()
    try:
        refused = "spec.region: 'south' is full; use north"
        eventually(lambda: refused in verdict(garden, paths[0], made))
        bad = {**secret, "metadata": {**secret["metadata"], "name": "bad"}, "data": {}}
        assert "data.key: required key missing; add it" in verdict(garden, paths[1], bad)
        old["spec"]["region"] = "west"
        assert "'west' is full" in verdict(garden, f"{paths[0]}/old-{name}", old, "PUT")
    finally:
        manager.stop()
    old["spec"] |= {"region": "south", "hibernation": {"enabled": True}}
    assert not verdict(garden, f"{paths[0]}/old-{name}", old, "PUT")
    kept["metadata"]["annotations"] = {"a": "b"}
    assert not verdict(garden, f"{paths[1]}/{name}", kept, "PUT")
    kept["data"] = {}
    assert "failed calling webhook" in verdict(garden, f"{paths[1]}/{name}", kept, "PUT")
    garden.delete(SECRETS, name, "default")


def test_the_process_checks_and_defaults_fields_that_a_policy_cannot(garden, environment_of_garden):
    """An admission under its roles: its policies, and its webhooks over TLS."""
    port = free_port()
    manager = process(environment_of_garden, port)
    manager.add_admission(RULED)
    grant(garden, manager, "admission")
    for resource, manifest in policies(manager.admissions):
        garden.apply(resource, manifest)
    path = path_of(SHOOTS, "default")
    one = {"name": "a", "server": "https://example.org"}
    manager.start()
    try:
        twice = shoot(RULED, {"issuers": [one, one]}, "twice")
        field = "spec.extensions[1].providerConfig.issuers"
        found = f"{field}: 'a' is there 2 times; keep one of them"
        eventually(lambda: found in verdict(garden, path, twice))  # not by an earlier policy
        created = garden.create(SHOOTS, shoot(RULED, {"issuers": [one]}, f"made-{port}"))
        config = created["spec"]["extensions"][1]["providerConfig"]
        assert config == {"issuers": [one], "apiVersion": API_VERSION, "kind": "CertificateConfig"}
    finally:
        manager.stop()
    created["spec"]["hibernation"] = {}
    assert not verdict(garden, f"{path}/made-{port}", created, "PUT")
    created["spec"]["extensions"][1]["providerConfig"]["issuers"] = []
    assert "failed calling webhook" in verdict(garden, f"{path}/made-{port}", created, "PUT")
    garden.delete(SHOOTS, f"made-{port}", "default")
