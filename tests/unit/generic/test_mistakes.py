"""Mistakes that authors make: each is found by mypy, or by `manager.add` in one sentence."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import attrs
import pytest
from isolation import isolated
from mypy import api

from actuator import Actuator
from actuator.interface import ProviderConfig, WrappedActuator
from actuator.meta import Schema
from actuator.v1alpha1 import Infrastructure
from extensions.certificate.config import CertificateConfig
from extensions.externaldatabase.kind import ExternalDatabase
from generic.manager.manager import Manager

ROOT = Path(__file__).parents[3]


class Network(Actuator[Infrastructure]):
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


class Forgetful(Actuator[Infrastructure]):
    def reconcile(self, ctx, obj, cluster): ...


class Vague(Actuator):
    def reconcile(self, ctx, obj, cluster): ...
    def delete(self, ctx, obj, cluster): ...


class Unconfigured(Actuator[ExternalDatabase]):
    provider_config = CertificateConfig

    def reconcile(self, ctx, obj, cluster): ...
    def delete(self, ctx, obj, cluster): ...


class PlainConfig(Network):
    provider_config = dict


class NearMiss(Actuator[Infrastructure]):
    def reconcile(self, ctx, obj, cluster): ...
    def delte(self, ctx, obj, cluster): ...


class TooFew(Network):
    def delete(self, ctx, obj): ...


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


def with_config(config):
    return type("Configured", (Network,), {"provider_config": config})


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (NearMiss, "NearMiss has no delete; NearMiss.delte overrides nothing: rename it to delete"),
        (TooFew, r"TooFew.delete\(self, ctx, obj, cluster\) cannot be called: too many positional"),
        (TooMany, "TooMany.force_delete.* missing a required argument: 'more'; correct its"),
        (AsText, "AsText.permissions has 'get configmaps'; expected Permission"),
        (OneText, "OneText.permissions has 'get configmaps'; expected Permission"),
        (with_config(DataclassConfig), "DataclassConfig: it is a dataclass; declare it with"),
        (with_config(UndecoratedConfig), "UndecoratedConfig: it is no attrs class, so that its"),
        (with_config(NestedConfig), "Zone: it is no attrs class, so that its fields are unknown"),
        (
            with_config(SharedConfig),
            r"SharedConfig: zones: all objects share the default \[\]; use",
        ),
        (with_config(UnfitConfig), r"UnfitConfig: size: Schema\(max_length=…\) has no meaning for"),
        (with_config(UnfitEntries), r"UnfitEntries: zones: Schema\(maximum=…\) has no meaning for"),
        (with_config(SmallDefault), "SmallDefault: size: the default 3 is invalid by its own Sch"),
        (with_config(WrongFactory), r"WrongFactory: zones: the default \['a', 'b'\] is invalid by"),
    ],
)
def test_a_mistake_names_the_class_and_its_place(make, words):
    with pytest.raises(TypeError, match=words) as caught:
        Manager().add(make(), type="aws")
    if make is not NearMiss:  # raised where the actuator is created
        assert re.search(r"\(/.*test_mistakes.py:\d+\)$", str(caught.value))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (Unconfigured, "ExternalDatabase has no spec.providerConfig; remove provider_config, or"),
        (PlainConfig, "provider_config: expected a subclass of ProviderConfig"),
        (Misspelt, "Misspelt.extrnal_resources overrides nothing; did you mean 'external_resourc"),
        (lambda: WrappedActuator(Misspelt()), "Misspelt.extrnal_resources overrides nothing"),
        (Camel, "Camel.forceDelete overrides nothing; did you mean 'force_delete'?"),
        (Singular, "Singular.permission overrides nothing; did you mean 'permissions'?"),
        (Mixed, "Mixed.still_exist overrides nothing; did you mean 'still_exists'?"),
        (Async, "Async.reconcile is async, but actuators run in worker threads; remove async"),
        (Generating, "Generating.external_resources is async"),
        (Forgetful, "Forgetful .*abstract method '?delete'?"),
        (Vague, "Vague does not declare its kind"),
        (lambda: Network, "expected an Actuator, got <class .*; add an instance of it"),
        (lambda: "network", "expected an Actuator, got 'network'"),
    ],
)
def test_a_mistake_in_the_class_is_refused_when_it_is_added(make, words):
    with pytest.raises(TypeError, match=words):
        Manager().add(make(), type="aws")


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
from actuator.v1alpha1 import Infrastructure
from generic import Manager


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
