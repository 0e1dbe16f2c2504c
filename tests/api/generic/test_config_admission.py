"""Policies in the garden judge configurations as Python does.

ADMISSION_OBJECTS is the number of generated objects (default: 400).
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from enum import StrEnum
from typing import Annotated, Any, Literal

import attrs
import pytest
from harness import eventually

from actuator import FieldProblem, ProviderConfig
from actuator.checking import check
from actuator.errors import ApiError, Forbidden, Invalid
from actuator.meta import KeepsUnknownFields, Object, Raw, Schema, own_kind
from actuator.schema import json_schema
from actuator.v1alpha1 import ContainerRuntime, Extension, Infrastructure, Network, Worker
from extensions.aws.config import InfrastructureConfig, WorkerConfig
from extensions.certificate.config import CertificateConfig
from extensions.networkfilter.config import FilterConfig
from generic.kube.client import HttpClient, connect
from generic.kube.crds import crd
from generic.library.webhooks.admission import ConfigAdmission, Shoot, objects
from generic.testing.envtest import Environment
from generic.testing.seed import CRDS

COUNT = int(os.environ.get("ADMISSION_OBJECTS", "400"))
SHOOTS = "/apis/core.gardener.cloud/v1beta1/namespaces/default/shoots"


class Color(StrEnum):
    RED = "red"
    GREEN = "green"


@attrs.frozen(kw_only=True)
class Inner:
    name: Annotated[str, Schema(pattern="[a-zé]{2,4}", immutable=True)]
    number: Annotated[int, Schema(minimum=-2, maximum=5)] = 1
    ratio: Annotated[float | None, Schema(maximum=3)] = None
    deep: list[list[int]] = attrs.field(factory=list)


@attrs.frozen(kw_only=True)
class Everything(ProviderConfig):
    """Every construct of a configuration."""

    api_version: str = "test.example.org/v1"
    kind: str = "Everything"
    text: Annotated[str, Schema(min_length=1, max_length=3)] = "a"
    color: Color = Color.RED
    mode: Literal["fast", "slow"] = "fast"
    region: Annotated[str | None, Schema(immutable=True)] = None
    flag: bool = False
    range: Annotated[str | None, Schema(format="cidr")] = None
    either: int | str = 1
    anything: Any = None
    free: dict[str, Any] = attrs.field(factory=dict)
    labels: Annotated[dict[str, str], Schema(max_length=2)] = attrs.field(factory=dict)
    by_name: dict[str, Inner] = attrs.field(factory=dict)
    inner: Inner | None = None
    many: Annotated[list[Inner], Schema(max_length=3)] = attrs.field(factory=list)


ADMISSIONS = [
    ConfigAdmission(kind=Extension, type="everything", config=Everything),
    ConfigAdmission(kind=Extension, type="certificate-service", config=CertificateConfig),
    ConfigAdmission(kind=Network, type="filter", config=FilterConfig),
    ConfigAdmission(kind=Infrastructure, type="aws", config=InfrastructureConfig),
    ConfigAdmission(kind=Worker, type="aws", config=WorkerConfig),
    ConfigAdmission(kind=ContainerRuntime, type="gvisor", config=FilterConfig),
]


@pytest.fixture
def environment(borrowed) -> Iterator[Environment]:
    """No cluster of other tests: it has Shoots, and policies for all of them."""
    with Environment() as started:
        yield started


@pytest.fixture
def garden(environment) -> Iterator[HttpClient]:
    """A garden whose Shoots have no schema, as raw configurations have none in Gardener."""
    client = connect(environment.kubeconfig)
    kind = Shoot.KIND
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": kind.version, "served": True, "storage": True}
    names = {"kind": kind.name, "plural": kind.plural, "singular": "shoot", "listKind": "ShootList"}
    spec = {
        "group": kind.group,
        "names": names,
        "scope": "Namespaced",
        "versions": [{**version, "schema": {"openAPIV3Schema": schema}}],
    }
    meta = {"name": f"{kind.plural}.{kind.group}"}
    client.apply(
        CRDS,
        {
            "apiVersion": CRDS.api_version,
            "kind": "CustomResourceDefinition",
            "metadata": meta,
            "spec": spec,
        },
    )
    made = objects(ADMISSIONS)
    for resource, manifest in made:
        client.apply(resource, manifest)
    for admission in ADMISSIONS:
        bad = shoot(admission, {"nonsense": 1})
        eventually(lambda bad=bad: denied(client, bad))
    yield client
    for resource, manifest in made:
        client.delete(resource, manifest["metadata"]["name"])


def shoot(admission: ConfigAdmission, config: Any, **meta: Any) -> Raw:
    """A Shoot with one configuration, in its place."""
    spec: Raw = {"provider": {"type": "aws"}}
    place = admission.place
    holder: Any = spec
    for step in place.holder.split(".")[1:]:
        name = step.removesuffix("[]")
        if name == step:
            holder = holder.setdefault(name, {})
        else:
            holder = holder.setdefault(name, [{"name": "other", "type": "other"}, {"name": "own"}])
            holder = holder[-1]
    if place.type_field:
        holder[place.type_field] = admission.type
    holder[place.field] = config
    return {
        "apiVersion": "core.gardener.cloud/v1beta1",
        "kind": "Shoot",
        "metadata": {"name": "s", "namespace": "default", "labels": admission.label, **meta},
        "spec": spec,
    }


def denied(client: HttpClient, obj: Raw, *, method: str = "POST") -> str:
    """Why the API server refuses an object in a dry run; "" if it does not."""
    path = SHOOTS if method == "POST" else f"{SHOOTS}/{obj['metadata']['name']}"
    try:
        client.send(method, path, query={"dryRun": "All"}, body=json.dumps(obj).encode())
    except (Forbidden, Invalid) as error:
        return str(error) if "denied request" in str(error) else f"another error: {error}"
    return ""


JUNK = [
    None, True, 0, -3, 6, 2.5, 10**12, "", "a", "aé", "ab\n", "éé", "toolong", "red", "10.0.0.0/8",
    "10.0.0.1/8", "::/0", "300.0.0.0/8", "10.0.0.0/08", "fe80::1%eth0/128", "::ffff:1.2.3.4/128",
    [], [None], ["a"], [1], {}, {"name": "ab"}, {"a": None}, {"name": "ab", "number": 9}, [[1]],
]  # fmt: skip


def made(schema: Raw, rng: random.Random) -> Any:
    """A value that is usually valid."""
    if "enum" in schema:
        return rng.choice(schema["enum"])
    if "example" in schema and rng.random() < 0.8:
        return schema["example"]
    kind = rng.choice(schema["anyOf"])["type"] if "anyOf" in schema else schema.get("type")
    if kind == "array":
        return [made(schema["items"], rng) for _ in range(rng.randrange(4))]
    if kind == "object":
        known = schema.get("properties")
        if known is None:
            item = schema.get("additionalProperties") or {}
            return {name: made(item, rng) for name in rng.sample("abc", rng.randrange(3))}
        needed = schema.get("required", ())
        chosen = [name for name in known if name in needed or rng.random() < 0.7]
        return {name: made(known[name], rng) for name in chosen}
    if kind == "string":
        if schema.get("format") == "cidr":
            return "10.0.0.0/16"
        return rng.choice(["ab", "abc", "ab", "abc", "ab", "https://a.b", "é"])
    return {"integer": 2, "number": 1.5, "boolean": True}.get(kind, deepcopy(rng.choice(JUNK)))


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Each container with a key, at every depth."""
    keys = (
        value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    )
    for key in list(keys):
        yield value, key
        yield from places(value[key])


def mutated(value: Any, rng: random.Random) -> Any:
    """The value with up to two mistakes."""
    for _ in range(rng.randrange(3)):
        found = list(places(value))
        if not found:
            return deepcopy(rng.choice(JUNK))
        holder, key = rng.choice(found)
        action = rng.randrange(4)
        if action == 0 and isinstance(holder, dict):
            del holder[key]
        elif action == 1 and isinstance(holder, dict):
            holder[rng.choice(["unknown", "nam", ""])] = deepcopy(rng.choice(JUNK))
        else:
            holder[key] = deepcopy(rng.choice(JUNK))
    return value


def wrong(admission: ConfigAdmission, config: Any) -> list[Any]:
    """The problems that types and `Schema` express."""
    return [] if config is None else check(admission.config, config)


def test_policies_and_python_agree_on_generated_objects(garden):
    rng = random.Random(COUNT)
    schemas = [json_schema(one.config) for one in ADMISSIONS]
    cases = []
    for number in range(COUNT):
        admission = ADMISSIONS[number % len(ADMISSIONS)]
        config = mutated(made(schemas[number % len(ADMISSIONS)], rng), rng)
        cases.append((admission, config))
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda case: denied(garden, shoot(*case)), cases))
    differ = [
        (case[1], answer, found)
        for case, answer in zip(cases, answers, strict=True)
        if bool(found := wrong(*case)) is not bool(answer)
    ]
    assert differ == []
    assert not [answer for answer in answers if "another error" in answer]
    invalid = sum(map(bool, answers))
    assert COUNT * 0.1 < invalid < COUNT * 0.9


@attrs.frozen(kw_only=True)
class Part:
    name: Annotated[str, Schema(pattern="[a-zé]{2,4}")]
    number: Annotated[int, Schema(minimum=-2, maximum=5)] = 1
    ratio: Annotated[float | None, Schema(maximum=3)] = None
    deep: list[list[int]] = attrs.field(factory=list)


@attrs.frozen(kw_only=True)
class ThingSpec(KeepsUnknownFields):
    """The constructs of a spec, like those of a configuration."""

    text: Annotated[str, Schema(min_length=1, max_length=3)] = "a"
    color: Color = Color.RED
    mode: Literal["fast", "slow"] = "fast"
    flag: bool = False
    either: int | str = 1
    labels: Annotated[dict[str, str], Schema(max_length=2)] = attrs.field(factory=dict)
    by_name: dict[str, Part] = attrs.field(factory=dict)
    inner: Part | None = None
    many: Annotated[list[Part], Schema(max_length=3)] = attrs.field(factory=list)


@attrs.define(kw_only=True)
class Thing(Object):
    """An own kind."""

    KIND = own_kind("Thing", "admission.example.org")

    spec: ThingSpec = attrs.field(factory=ThingSpec)


def test_crds_and_python_agree_on_generated_objects(garden):
    """Of fields that are known and not null: the API server removes the others."""
    garden.apply(CRDS, crd(Thing))
    path = "/apis/admission.example.org/v1alpha1/namespaces/default/things"
    head = {"apiVersion": "admission.example.org/v1alpha1", "kind": "Thing"}

    def refused(spec: Any) -> str:
        body = json.dumps({**head, "metadata": {"name": "t"}, "spec": spec}).encode()
        try:
            garden.send("POST", path, query={"dryRun": "All"}, body=body)
        except Invalid as error:
            return str(error)
        return ""

    eventually(lambda: not refused({}))
    rng, schema = random.Random(COUNT), json_schema(ThingSpec)
    cases = [mutated(made(schema, rng), rng) for _ in range(COUNT)]
    known = [case for case in cases if not removed(case, schema)]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(refused, known))
    judged = zip(known, answers, strict=True)
    differ = [
        (spec, answer, found)
        for spec, answer in judged
        if bool(found := check(ThingSpec, spec)) is not bool(answer)
    ]
    assert differ == []
    assert len(known) * 0.1 < sum(map(bool, answers)) < len(known) * 0.9


def removed(value: Any, schema: Raw) -> bool:
    """Whether the value has a null or an unknown field somewhere."""
    if value is None:
        return True
    if isinstance(value, list):
        return any(removed(one, schema.get("items", {})) for one in value)
    if isinstance(value, dict):
        fields = schema.get("properties")
        if fields is not None and not value.keys() <= fields.keys():
            return True
        more = schema.get("additionalProperties") or {}
        return any(removed(one, (fields or {}).get(name, more)) for name, one in value.items())
    return False


def test_a_message_names_the_field_and_the_expectation(garden):
    config = {"labels": {"a": "b"}, "inner": {"name": "TOO LONG"}, "many": [{"name": "ab"}]}
    answer = denied(garden, shoot(ADMISSIONS[0], config))
    field = "spec.extensions[].providerConfig.inner.name"
    assert f"{field}: expected string (pattern [a-zé]{{2,4}})" in answer


def stored(garden: HttpClient, config: Any, **meta: Any) -> Raw:
    obj = shoot(ADMISSIONS[0], config, **meta)
    return json.loads(garden.send("POST", SHOOTS, body=json.dumps(obj).encode()))


def test_an_immutable_field_can_be_set_once(garden):
    old = stored(garden, {"inner": {"name": "ab"}}, name="once")
    admission = ADMISSIONS[0]
    for config, is_allowed in (
        ({"region": "eu", "inner": {"name": "ab"}}, True),
        ({"inner": {"name": "cd"}}, False),
        ({}, True),
    ):
        new = {**old, "spec": shoot(admission, config)["spec"]}
        answer = denied(garden, new, method="PUT")
        assert bool(answer) is not is_allowed
        assert bool(list(admission.problems(new["spec"], old["spec"]))) is not is_allowed
    assert "inner.name: field is immutable" in denied(
        garden, {**old, "spec": shoot(admission, {"inner": {"name": "cd"}})["spec"]}, method="PUT"
    )
    garden.send("DELETE", f"{SHOOTS}/once")


def test_what_is_invalid_already_can_be_changed_elsewhere_and_deleted(garden):
    """As after a policy becomes stricter: a label, then the deletion with its finalizer."""
    name = ADMISSIONS[0].policy()[1]["metadata"]["name"]
    bindings = objects(ADMISSIONS[:1])[1]
    garden.delete(bindings[0], name)

    def create() -> Raw | None:
        try:
            return stored(garden, {"text": 7}, name="old", finalizers=["example.org/held"])
        except ApiError:
            return None

    old = eventually(create)
    garden.apply(*bindings)
    eventually(lambda: denied(garden, shoot(ADMISSIONS[0], {"text": 7})))
    labelled = {**old, "metadata": {**old["metadata"], "annotations": {"a": "b"}}}
    assert not denied(garden, labelled, method="PUT")
    worse = {**old, "spec": shoot(ADMISSIONS[0], {"text": 8})["spec"]}
    assert denied(garden, worse, method="PUT")
    garden.send("DELETE", f"{SHOOTS}/old")
    patch = json.dumps({"metadata": {"finalizers": None}, "spec": worse["spec"]}).encode()
    garden.send("PATCH", f"{SHOOTS}/old", body=patch, content_type="application/merge-patch+json")
    with pytest.raises(ApiError):
        garden.send("GET", f"{SHOOTS}/old")


def test_a_long_list_stays_in_the_budget(garden):
    config = {
        "apiVersion": "networkfilter.extensions.gardener.cloud/v1alpha1",
        "blocked": [f"10.{i // 256}.{i % 256}.0/24" for i in range(2000)],
    }
    assert denied(garden, shoot(ADMISSIONS[2], config)) == ""


def test_a_kind_that_shoots_do_not_configure_is_refused():
    from actuator.v1alpha1 import Bastion

    with pytest.raises(ValueError, match="a Shoot has no configuration of this kind"):
        ConfigAdmission(kind=Bastion, type="x", config=FilterConfig)


def test_only_problems_of_python_need_a_webhook():
    names = [[hook.name for hook in one.webhooks()] for one in ADMISSIONS[:3]]
    assert names == [
        ["default-extension-everything"],
        ["default-extension-certificate-service", "validate-extension-certificate-service"],
        ["default-network-filter"],
    ]


def test_python_finds_problems_in_every_place():
    for admission in ADMISSIONS:
        found = list(admission.problems(shoot(admission, {"nonsense": 1})["spec"], {}))
        assert isinstance(found[0], FieldProblem)
        assert found[0].field.startswith("spec.")
        assert list(admission.problems({}, {})) == []
