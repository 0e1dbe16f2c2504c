"""Mistakes that authors make: each is found by mypy, or by `manager.add` in one sentence."""

# The classes of authors are mistakes, also for mypy.
# mypy: disable-error-code="arg-type, assignment, call-overload, dict-item, index, misc"
# mypy: disable-error-code="name-defined, override, valid-type"

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import attrs
import pytest
from mypy import api

from actuator import Actuator, Context, Resource
from actuator.checking import check
from actuator.interface import (
    CONFIG_MAPS,
    C,
    Permission,
    ProviderConfig,
    SeedObjects,
    WrappedActuator,
)
from actuator.meta import Kind, Object, Schema, own_kind
from actuator.v1alpha1 import Infrastructure
from extensions.aws.config import InfrastructureConfig
from extensions.certificate.config import CertificateConfig
from extensions.externaldatabase.kind import ExternalDatabase
from generic import owns
from generic.library import ExternalResourceActuator
from generic.library.worker import GenericWorker
from generic.manager.configmistakes import mistakes
from generic.manager.manager import Manager
from tests.support.suite.isolation import isolated

ROOT = Path(__file__).parents[3]


class Network(Actuator[Infrastructure, C]):
    """An actuator with helpers of its own, whose names are not mistakes."""

    deleted = restored = None
    finalizer_of_vpc = "x"

    def reconcile(self, ctx, obj, cluster): ...
    def delete(self, ctx, obj, cluster): ...
    def delete_vpc(self): ...
    def reconcile_all(self): ...
    def pre_delete(self): ...
    def permission(self): ...
    def exists(self): ...
    def _external_resource(self): ...


class Misspelt(Network):
    def extrnal_resources(self, obj): ...


class Camel(Network):
    def forceDelete(self, ctx, obj, cluster): ...  # noqa: N802 - the mistake


class Singular(Network):
    permission = ()


class Mixin:
    def still_exist(self, resource): ...


class Mixed(Mixin, Network):
    pass


class Async(Network):
    async def reconcile(self, ctx, obj, cluster): ...


class Generating(Network):
    async def external_resources(self, obj):
        yield


class AsyncHook(ExternalResourceActuator[Infrastructure]):
    def reconcile(self, ctx, obj, cluster): ...
    async def delete_resource(self, ctx, obj, resource): ...


class YieldingHook(GenericWorker):
    def machine_deployments(self, ctx, worker, cluster):
        yield

    def post_delete(self, ctx, worker, cluster):
        yield


class WithoutDelete(Actuator[Infrastructure]):
    def reconcile(self, ctx, obj, cluster): ...


class Vague(Actuator):
    def reconcile(self, ctx, obj, cluster): ...
    def delete(self, ctx, obj, cluster): ...


class Unconfigured(Actuator[ExternalDatabase, CertificateConfig]):
    def reconcile(self, ctx, obj, cluster): ...
    def delete(self, ctx, obj, cluster): ...


class PlainConfig(Network[dict]):
    pass


class TextConfig(Network["Config"]):
    pass


class OtherContext(Network[CertificateConfig]):
    def delete(self, ctx: Context[InfrastructureConfig], obj, cluster): ...


class ContextOnly(Network):
    def restore(self, ctx: Context[CertificateConfig], obj, cluster): ...


class NearMiss(Actuator[Infrastructure]):
    def reconcile(self, ctx, obj, cluster): ...
    def delte(self, ctx, obj, cluster): ...


class TooFew(Network):
    def delete(self, ctx, obj): ...


class Contradicting(Network):
    leaves_nothing = True

    def external_resources(self, obj):
        return ()


class TooMany(Network):
    def force_delete(self, ctx, obj, cluster, more): ...


class AsText(Network):
    permissions = ("get configmaps",)


class OneText(Network):
    permissions = "get configmaps"


@attrs.frozen(kw_only=True)
class Config(ProviderConfig):
    api_version: str = "mine.example.org/v1"
    kind: str = "MyConfig"


@dataclass
class DataclassConfig(ProviderConfig):
    api_version: str = "mine.example.org/v1"


class UndecoratedConfig(Config):
    size: int = 1


class Zone:
    name: str = "a"


@attrs.frozen(kw_only=True)
class NestedConfig(Config):
    zones: list[Zone] = attrs.field(factory=list)


@attrs.frozen(kw_only=True)
class SharedConfig(Config):
    zones: list[str] = []  # noqa: RUF008 - the mistake


@attrs.frozen(kw_only=True)
class UnfitConfig(Config):
    size: Annotated[int, Schema(max_length=3)] = 1


@attrs.frozen(kw_only=True)
class UnfitEntries(Config):
    zones: list[Annotated[str, Schema(maximum=3)]] = attrs.field(factory=list)


@attrs.frozen(kw_only=True)
class SmallDefault(Config):
    size: Annotated[int, Schema(minimum=10)] = 3


@attrs.frozen(kw_only=True)
class WrongFactory(Config):
    zones: Annotated[list[str], Schema(max_length=1)] = attrs.field(factory=lambda: ["a", "b"])


@attrs.define
class Pool:
    name: str = ""


@attrs.frozen(kw_only=True)
class SharedObject(Config):
    pool: Pool = Pool()  # noqa: RUF009 - the mistake


@attrs.frozen(kw_only=True)
class ListPattern(Config):
    zones: Annotated[list[str], Schema(pattern="[a-z]+")] = attrs.field(factory=list)


@attrs.frozen(kw_only=True)
class NoneDefault(Config):
    size: int = None


@attrs.frozen(kw_only=True)
class RaisingFactory(Config):
    zones: list[str] = attrs.field(factory=lambda: {}["zones"])


@attrs.frozen(kw_only=True)
class WrongExample(Config):
    size: Annotated[int, Schema(maximum=3, example=4)] = 1


@attrs.frozen(kw_only=True)
class WrongFormat(Config):
    nodes: Annotated[str, Schema(format="cdir")] = "10.0.0.0/16"


@attrs.frozen(kw_only=True)
class BareSchema(Config):
    size: Annotated[int, Schema] = 1


@attrs.frozen(kw_only=True)
class Untyped(Config):
    size = 1


@attrs.frozen(kw_only=True)
class Absent(Config):
    zone: "Nowhere | None" = None  # noqa: F821 - the mistake


@attrs.frozen(kw_only=True)
class Unnamed(ProviderConfig):
    size: int = 1


def with_config(config):
    class Configured(Network[config]):
        pass

    return Configured


@attrs.define(kw_only=True)
class Team(Object):
    KIND: ClassVar[Kind] = own_kind("Team", "example.org")
    spec: SharedObject = attrs.field(factory=SharedObject)


@attrs.define(kw_only=True)
class Unkind(Object):
    KIND: Kind = own_kind("Unkind", "example.org")  # noqa: RUF009 - the mistake


class Teams(Actuator[Team]):
    def reconcile(self, ctx, obj, cluster): ...
    def delete(self, ctx, obj, cluster): ...


@attrs.frozen(kw_only=True)
class NoConverter(Config):
    kind: str = "Newer"
    versions = {Config: None}


@attrs.frozen(kw_only=True)
class Looping(Config):
    kind: str = "Looping"


Looping.versions = {Looping: Looping}


@attrs.frozen(kw_only=True)
class NoVersion(Config):
    kind: str = "Newer"
    versions = {dict: dict}


@attrs.frozen(kw_only=True)
class VersionList(Config):
    kind: str = "Newer"
    versions = [Config]


@attrs.frozen(kw_only=True)
class WrongOlder(Config):
    kind: str = "Newer"
    versions = {SmallDefault: str}


@attrs.frozen(kw_only=True)
class WrongKey(Config):
    pools: Annotated[list[Pool], Schema(key="name", max_length=3)] = attrs.field(factory=list)


class Unkinds(Actuator[Unkind]):
    def reconcile(self, ctx, obj, cluster): ...
    def delete(self, ctx, obj, cluster): ...


class Yields(Network):
    def reconcile(self, ctx, obj, cluster):
        yield 1


class NoSelf(Network):
    def delete(ctx, obj, cluster): ...  # noqa: N805 - the mistake


class OnePermission(Network):
    permissions = Resource("v1", "configmaps").permission("get")


class MisspeltVerb(Network):
    permissions = (Resource("v1", "configmaps").permission("list", "gte"),)


class OwnVerbs(Network):
    permissions = (Resource("a.org/v1", "signers").permission("sign", "approve", "bind", "*"),)


class Exhausted(Network):
    permissions = iter(())


class FinalizerList(Network):
    finalizer = ["a.org/b"]


class Unqualified(Network):
    finalizer = "cleanup"


class SeedText(Network):
    seed_objects = ("machines",)


class WatchText(Network):
    watches = ["configmaps"]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (NearMiss, "NearMiss has no method delete; rename delte to delete"),
        (TooFew, r"TooFew.delete cannot be called with \(ctx, obj, cluster\): too many positional"),
        (TooMany, "TooMany.force_delete.* missing a required argument: 'more'; correct its"),
        (Contradicting, "Contradicting.external_resources contradicts leaves_nothing; remove one"),
        (AsText, "AsText.permissions has 'get configmaps'; expected a list of Perm"),
        (OneText, "OneText.permissions has 'get configmaps'; expected a list of Perm"),
        (
            OnePermission,
            "OnePermission.permissions has Permission.*; expected a list of Permission",
        ),
        (MisspeltVerb, "permissions has the verb 'gte' for configmaps; did you mean 'get'"),
        (Exhausted, "Exhausted.permissions has .*; expected a list of Permission, such as "),
        (FinalizerList, r"FinalizerList.finalizer is \['a.org/b'\]; set a text, such as"),
        (Unqualified, "finalizer 'cleanup' is not qualified; use \"DOMAIN/NAME\""),
        (SeedText, "SeedText.seed_objects has 'machines'; expected a list of SeedObjects, such"),
        (WatchText, "WatchText.watches has 'configmaps'; expected a list of Watch, such as"),
        (Yields, "Yields.reconcile yields, so that a call runs none of its code; return instead"),
        (NoSelf, r"NoSelf.delete cannot be called with \(ctx, obj, cluster\): too many positional"),
        (WithoutDelete, "WithoutDelete has no method delete; define delete"),
        (Vague, "Vague does not declare its kind; derive it from Actuator"),
        (Misspelt, "Misspelt.extrnal_resources overrides nothing; did you mean 'external_resou"),
        (Async, "Async.reconcile is async, but actuators run in worker threads; remove async"),
        (AsyncHook, "AsyncHook.delete_resource is async, but actuators run in worker threads"),
        (YieldingHook, "YieldingHook.post_delete yields, so that a call runs none of its code"),
        (PlainConfig, r"Actuator\[Infrastructure, dict\]: expected a subclass of ProviderConfig"),
        (TextConfig, r"expected a subclass of ProviderConfig, got ForwardRef\('Config'\)"),
        (
            OtherContext,
            r"OtherContext.delete has a Context\[InfrastructureConfig\], but .* derived f",
        ),
        (
            ContextOnly,
            r"ContextOnly.restore has .*, but .* Actuator\[Infrastructure, None\]",
        ),
        (lambda: Network, "expected an Actuator, got <class .*; add an instance of it"),
        (Unkinds, "Unkind has no KIND; declare KIND: ClassVar"),
        (Teams, "SharedObject: pool: all objects share the default"),
        (with_config(SharedObject), r"pool: all objects share .*factory=lambda: Pool\(name=''\)\)"),
        (with_config(ListPattern), r"zones: Schema\(pattern=…\) has no meaning for a list"),
        (with_config(NoneDefault), "size: the default None violates its own type .* got null"),
        (with_config(RaisingFactory), "zones: its default cannot be created: KeyError: 'zones'"),
        (with_config(WrongExample), "size: the example 4 violates its own type or Schema"),
        (with_config(WrongFormat), "format='cdir'.* is unknown; did you mean 'cidr'?"),
        (with_config(BareSchema), "size: Schema has no effect without parentheses"),
        (with_config(Untyped), "size: it has no type, so that it is no field; annotate it"),
        (with_config(Absent), "Absent: name 'Nowhere' is not defined; import it at run time"),
        (with_config(Unnamed), "Unnamed: api_version has no value; declare its only valid one"),
        (with_config(DataclassConfig), "DataclassConfig: it is a dataclass; declare it with"),
        (with_config(UndecoratedConfig), "UndecoratedConfig: it is no attrs class, so that its"),
        (with_config(NoConverter), "NoConverter: versions has no converter for .*; set a function"),
        (with_config(Looping), "Looping: versions leads from .* Looping back to itself; remove it"),
        (with_config(NoVersion), "versions has <class 'dict'>; expected a subclass of Provider"),
        (with_config(VersionList), "versions is .*; set {OlderConfig: converter}"),
        (with_config(WrongOlder), "SmallDefault: size: the default 3 violates its own type or"),
        (with_config(WrongKey), r"pools: Schema\(key='name'\): no required text or integer"),
        (with_config(NestedConfig), "Zone: it is no attrs class, so that its fields are unknown"),
        (
            with_config(SharedConfig),
            r"SharedConfig: zones: all objects share the default \[\]; use",
        ),
        (with_config(UnfitConfig), r"UnfitConfig: size: Schema\(max_length=…\) has no meaning for"),
        (with_config(UnfitEntries), r"UnfitEntries: zones: Schema\(maximum=…\) has no meaning for"),
        (with_config(SmallDefault), "SmallDefault: size: the default 3 violates its own type or"),
        (with_config(WrongFactory), r"WrongFactory: zones: the default \['a', 'b'\] violates"),
    ],
)
def test_a_mistake_names_the_class_and_its_place(make, words):
    with pytest.raises((TypeError, ValueError), match=words) as caught:
        Manager().add(make(), type="aws")
    assert re.search(r"\(/.*test_mistakes.py:\d+\)$", str(caught.value))


def test_an_argument_without_an_init_is_refused():
    with pytest.raises(TypeError, match=r"Network\(\) takes no arguments; define __init__"):
        Network(5)  # type: ignore[call-arg]


def test_verbs_of_other_apis_are_accepted():
    Manager().add(OwnVerbs(), type="aws")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            Unconfigured,
            "ExternalDatabase has no spec.providerConfig; remove CertificateConfig ",
        ),
        (lambda: WrappedActuator(Misspelt()), "Misspelt.extrnal_resources overrides nothing"),
        (Camel, "Camel.forceDelete overrides nothing; did you mean 'force_delete'?"),
        (Singular, "Singular.permission overrides nothing; did you mean 'permissions'?"),
        (Mixed, "Mixed.still_exist overrides nothing; did you mean 'still_exists'?"),
        (Generating, "Generating.external_resources is async"),
        (lambda: "network", "expected an Actuator, got 'network'"),
    ],
)
def test_a_mistake_in_the_class_is_refused_when_it_is_added(make, words):
    with pytest.raises(TypeError, match=words):
        Manager().add(make(), type="aws")


CONSTRAINTS = {
    "minimum": 5,
    "maximum": 5,
    "min_length": 2,
    "max_length": 2,
    "pattern": "ab",
    "format": "cidr",
}
VALUES = {
    int: (1, 9),
    float: (1.0, 9.0),
    bool: (),  # Python compares them with numbers, the API server does not
    str: ("a", "ab", "abc"),
    Literal["a", "abc"]: ("a", "abc"),
    list[int]: ([], [1], [1, 2, 3]),
    list[str]: ([], ["ab"], ["abc", "abc", "abc"]),
    dict[str, int]: ({}, {"a": 1}, {"a": 9, "b": 9, "c": 9}),
    int | str: (1, 9, "a", "abc"),
    int | None: (1, 9),
}


@pytest.mark.parametrize("argument", CONSTRAINTS)
@pytest.mark.parametrize("type_", VALUES, ids=str)
def test_a_schema_is_accepted_exactly_where_it_can_refuse_a_value(type_, argument):
    """A constraint that no value can violate has no effect."""
    annotation = Annotated[type_, Schema(**{argument: CONSTRAINTS[argument]})]
    field = attrs.field(type=annotation)  # without a default, which could violate it
    cls = attrs.make_class("Made", {"value": field}, bases=(Config,), kw_only=True, frozen=True)
    refused = [text for _, text in mistakes(cls)]
    effective = any(check(cls, {"value": value}) for value in VALUES[type_])
    assert effective is not bool(refused)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda: Permission(CONFIG_MAPS, "get"),
            r"expected a list, got the text 'get'; write \['get'\]",
        ),
        (lambda: Resource("apps", "deployments"), "api_version='apps' has no version; write it"),
        (lambda: Resource("v1", "ConfigMap"), "'ConfigMap' is no plural in lower case"),
        (lambda: Permission("configmaps", ["get"]), r"a Resource, got 'configmaps'; write Res"),
        (lambda: SeedObjects("v1", "pods"), r"a Resource, got 'v1'; write Resource\("),
        (
            lambda: SeedObjects(CONFIG_MAPS, "x", label_selector="a=b"),
            "expected a list, got",
        ),
    ],
)
def test_a_permission_that_grants_something_else_is_refused(make, words):
    with pytest.raises((TypeError, ValueError), match=words):
        make()


ARGUMENTS = [
    ({"watches": ["x"]}, "watches=… has 'x'; expected a list of Watch, such as"),
    (
        {"watches": owns(Resource("v1", "secrets"))},
        "watches=… has Watch.*; expected a list of Watch",
    ),
    ({"predicates": ["x"]}, "predicates=… has 'x'; expected a list of Callable, such as"),
    ({"predicates": lambda event: True}, "predicates=… has <function.*; expected a list of Cal"),
    ({"workers": 0}, "workers=0: set a number of at least 1"),
    ({"workers": "3"}, "workers='3': set a number of at least 1"),
    ({"type": 5}, "type=… has 5; expected a list of str, such as"),
    ({"type": ["aws", None]}, "type=… has None; expected a list of str, such as"),
]


@pytest.mark.parametrize(("given", "words"), ARGUMENTS)
def test_an_argument_of_another_type_is_refused(given, words):
    with pytest.raises((TypeError, ValueError), match=rf"add\(Network\(\)\): {words}"):
        Manager().add(Network(), **{"type": "aws"} | given)


def test_the_example_of_a_permission_is_code_to_paste():
    with pytest.raises(TypeError) as caught:
        Manager().add(AsText(), type="aws")
    example = re.search(r"such as \[(.*)\] \(", str(caught.value))
    assert example
    assert eval(example[1], {"Resource": Resource}) == CONFIG_MAPS.permission("get")


def test_names_of_helpers_are_not_taken_for_mistakes():
    manager = Manager()
    manager.add(Network(), type="aws")
    assert len(manager.registrations) == 1


def test_a_type_that_is_not_given_is_refused_with_both_remedies():
    with pytest.raises(
        ValueError, match="Infrastructure objects have a type; set type=…, or --typ"
    ):
        Manager().add(Network())


PLANTED = """
from collections.abc import Iterable

from actuator import Actuator, ActuatorError, Cluster, Context, ErrorCode, ExternalResource
from actuator.meta import own_kind
from actuator.interface import CONFIG_MAPS
from actuator.v1alpha1 import Infrastructure
from generic import Manager
from generic.library.webhooks import AdmissionRequest, mutates, validates
from kubernetes.client import V1Secret
from generic.library.webhooks.objects import Deployment


own_kind("Peering", "example.org", namespaced=False, timeout=60)
own_kind("Peering", "example.org", namespacd=False)  # [call-arg]
own_kind("Peering", "example.org", timeout="1h")  # [arg-type]


@mutates(Deployment, failure_policy="Fail", nmes=["a"])  # [call-arg]
def first(request: AdmissionRequest[Deployment]) -> None: ...


@validates(Deployment, failure_policy="Fail", timeout_seconds="5")  # [arg-type]
def second(request: AdmissionRequest[Deployment]) -> None: ...


class Correct(Actuator[Infrastructure]):
    def reconcile(self, ctx: Context, obj: Infrastructure, cluster: Cluster) -> None:
        obj.status.nodes_cidr = "10.0.0.0/16"

    def delete(self, ctx: Context, obj: Infrastructure, cluster: Cluster) -> None: ...


class WrongParameter(Correct):
    def delete(self, ctx: Context, obj: str, cluster: Cluster) -> None: ...  # [override]


class WrongReturn(Correct):
    def external_resources(self, obj: Infrastructure) -> ExternalResource: ...  # [override]


class ReturnsValue(Correct):
    def migrate(self, ctx: Context, obj: Infrastructure, cluster: Cluster) -> int:  # [override]
        return 1


class Async(Correct):
    async def delete(  # [override]
        self, ctx: Context, obj: Infrastructure, cluster: Cluster
    ) -> None: ...


class WrongField(Correct):
    def reconcile(self, ctx: Context, obj: Infrastructure, cluster: Cluster) -> None:
        obj.status.node_cidr = "10.0.0.0/16"  # [attr-defined]


class WritesSpec(Correct):
    def reconcile(self, ctx: Context, obj: Infrastructure, cluster: Cluster) -> None:
        obj.spec.region = "eu-1"  # [misc]


class WrongModel(Correct):
    def reconcile(self, ctx: Context, obj: Infrastructure, cluster: Cluster) -> None:
        secret: V1Secret = ctx.client.get(V1Secret, "x", "y")
        secrets: list[V1Secret] = ctx.client.list(V1Secret, "y", label_selector="a=b")
        own: Infrastructure = ctx.client.get(Infrastructure, secrets[0].type or "", "y")
        text: str = ctx.client.get(V1Secret, "x", "y")  # [assignment]
        ctx.client.list(V1Secret, metadata_only=True)  # [call-overload]
        raw: dict[str, str] = ctx.client.list(CONFIG_MAPS)  # [assignment]
        secret.dta  # [attr-defined]


class WrongCode(Correct):
    def delete(self, ctx: Context, obj: Infrastructure, cluster: Cluster) -> None:
        raise ActuatorError("no", codes=[ErrorCode.ERR_QUOTA])  # [attr-defined]


class WrongText(Correct):
    def delete(self, ctx: Context, obj: Infrastructure, cluster: Cluster) -> None:
        raise ActuatorError("no", codes=["ERR_QUOTA"])  # [list-item]


class WithoutDelete(Actuator[Infrastructure]):
    def reconcile(self, ctx: Context, obj: Infrastructure, cluster: Cluster) -> None: ...


Manager().add(WithoutDelete(), type="aws")  # [abstract]
Manager().add(Correct(), typ="aws")  # [call-arg]
"""


def test_mypy_finds_each_planted_mistake_and_nothing_else(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)  # for the configuration, and a warm cache
    path = tmp_path / "planted.py"
    path.write_text(PLANTED)
    with isolated():  # from mypy, which raises the recursion limit
        out, err, _ = api.run(["--no-error-summary", "--hide-error-context", str(path)])
    assert err == ""
    lines = [line for line in out.splitlines() if " error: " in line]
    found = {int(line.split(":")[1]): re.findall(r"\[[a-z-]+\]$", line)[0] for line in lines}
    planted = {
        number: mark[0]
        for number, line in enumerate(PLANTED.splitlines(), 1)
        if (mark := re.findall(r"# (\[[a-z-]+\])$", line))
    }
    assert found == planted
