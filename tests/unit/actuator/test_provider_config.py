"""A providerConfig is read strictly, and each problem names the object and the field."""

from collections.abc import Iterable
from types import new_class
from typing import Annotated, Any, Generic, TypeVar

import attrs
import pytest

from actuator import Actuator, ConfigurationError, ErrorCode, FieldProblem, ProviderConfig
from actuator.codec import decode, encode
from actuator.interface import C, K, WrappedActuator, config_class, object_class
from actuator.meta import DefaultStatus, Raw, Schema
from actuator.provider_config import (
    ACCEPTED,
    Configurations,
    accepted_message,
    has_configuration,
    is_accepted,
    load_config,
)
from actuator.provider_status import read_status, write_status
from actuator.v1alpha1 import Extension, Worker
from generic.manager.manager import Manager
from tests.support.objects.configured import problems_of_object

VERSION = "mine.example.org/v1"
NOT_SUPPORTED = f"is not supported; set apiVersion {VERSION} and kind Config"


def even(_config: object, _field: object, value: int) -> None:
    if value % 2:
        raise ValueError(f"{value} is odd")


@attrs.frozen(kw_only=True)
class Config(ProviderConfig):
    """A configuration."""

    api_version: str = VERSION
    kind: str = "Config"
    names: list[Annotated[str, Schema(min_length=1)]] = attrs.field(factory=list)
    number: int = attrs.field(default=0, validator=even)

    def problems(self) -> Iterable[FieldProblem]:
        for index, name in enumerate(self.names):
            if name in self.names[:index]:
                yield FieldProblem(field=f"names[{index}]", detail=f"{name!r} is a duplicate")


@attrs.frozen(kw_only=True)
class Required(ProviderConfig):
    api_version: str = VERSION
    kind: str = "Required"
    zone: str


class Mine(Actuator[Extension, Config]):
    def reconcile(self, ctx, obj, cluster): ...
    def delete(self, ctx, obj, cluster): ...


def extension(config: Any) -> Extension:
    spec = {"type": "mine", "providerConfig": config}
    return decode(Extension, {"metadata": {"name": "x", "namespace": "ns"}, "spec": spec})


def worker(*configs: Any) -> Worker:
    pools = [
        {"name": f"p{index}", "providerConfig": config} for index, config in enumerate(configs)
    ]
    meta = {"name": "w", "namespace": "ns"}
    return decode(Worker, {"metadata": meta, "spec": {"type": "mine", "pools": pools}})


def test_a_configuration_is_read_and_an_absent_one_has_the_defaults():
    assert Configurations(Config, extension({"names": ["a"]})).get().names == ["a"]
    assert Configurations(Config, extension(None)).get() == Config()


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({"name": ["a"]}, "spec.providerConfig: unknown field name; did you mean names?"),
        (
            {"names": ["a", ""]},
            "spec.providerConfig.names[1]: expected a string (characters: at least 1), got ''",
        ),
        ({"names": ["a", "a"]}, "spec.providerConfig.names[1]: 'a' is a duplicate"),
        ({"number": 3}, "spec.providerConfig: 3 is odd; correct it"),
        (
            {"apiVersion": "mine.example.org/v2", "other": 1},
            f"spec.providerConfig: mine.example.org/v2 Config {NOT_SUPPORTED}",
        ),
    ],
)
def test_a_problem_stops_reconcile_with_a_configuration_problem(config, problem):
    obj = extension(config)
    with pytest.raises(ConfigurationError) as caught:
        Configurations(Config, obj).get()
    assert str(caught.value) == f"Extension ns/x: {problem}"
    assert caught.value.codes == (ErrorCode.ERR_CONFIGURATION_PROBLEM,)
    assert [str(problem) for problem in problems_of_object(Mine(), obj)] == [problem]


def test_a_required_field_of_an_absent_configuration_is_named():
    (problem,) = Configurations(Required, extension(None)).problems()
    assert str(problem) == "spec.providerConfig.zone: required field missing; set a string"


def test_the_pools_of_a_worker_have_the_configurations():
    obj = worker({"names": ["a"]}, None, {"nmaes": []})
    configurations = Configurations(Config, obj)
    assert configurations.get(0).names == ["a"]
    assert configurations.get(1) == Config()
    problem = "spec.pools[2].providerConfig: unknown field nmaes; did you mean names?"
    assert [str(problem) for problem in configurations.problems()] == [problem]
    with pytest.raises(ConfigurationError, match=r"^Worker ns/w: spec\.pools\[2\]\.providerConfig"):
        configurations.get(2)
    with pytest.raises(TypeError, match=r"each pool has .*; use ctx.pool_config\(index\)"):
        configurations.get()


DUPLICATE = {"names": ["a", "a"]}
"""Against the rule of the class."""
DONE = {"lastOperation": {"type": "Reconcile", "state": "Succeeded"}, "observedGeneration": 3}
BUSY = {"lastOperation": {"type": "Reconcile", "state": "Processing"}, "observedGeneration": 3}
FAILED = {"lastError": {"description": "no"}, "observedGeneration": 3}
RESTORING = {"lastOperation": {"type": "Restore", "state": "Error"}, "lastError": {}}


def conditions(type_: str, status: str, message: str = "") -> dict[str, Any]:
    return {"conditions": [{"type": type_, "status": status, "message": message}]}


@pytest.mark.parametrize(
    ("status", "metadata", "judged"),
    [
        ({}, {}, True),
        (DONE, {}, False),
        (BUSY, {}, False),
        (BUSY | {"observedGeneration": 2}, {}, True),
        (DONE | {"observedGeneration": 2}, {}, True),
        (FAILED, {}, True),
        (FAILED | conditions(ACCEPTED, "True", accepted_message(3)), {}, False),
        (FAILED | conditions(ACCEPTED, "True", accepted_message(2)), {}, True),
        (DONE | conditions("Ready", "False"), {}, True),
        (DONE | conditions("Ready", "True"), {}, False),
        (FAILED, {"deletionTimestamp": "2026-01-01T00:00:00Z"}, False),
        ({}, {"annotations": {"gardener.cloud/operation": "restore"}}, False),
        ({}, {"annotations": {"gardener.cloud/operation": "reconcile"}}, True),
        (RESTORING, {}, False),
    ],
)
def test_rules_are_for_generations_that_were_never_accepted(status, metadata, judged):
    given = {"name": "x", "namespace": "ns", "generation": 3, **metadata}
    spec = {"type": "mine", "providerConfig": dict(DUPLICATE)}
    obj = decode(Extension, {"metadata": given, "spec": spec, "status": status})
    assert bool(Configurations(Config, obj).problems()) == judged
    assert bool(Configurations(None, obj).problems()) == judged
    assert obj.spec.provider_config is not None
    obj.spec.provider_config["name"] = []  # cannot be decoded
    assert Configurations(Config, obj).problems()
    with pytest.raises(ConfigurationError, match="unknown field name"):
        Configurations(Config, obj).get()


class Unread(list[Any]):
    """Fails when its entries are read."""

    def __iter__(self):
        raise AssertionError("the machines of a Worker were read")


def test_only_the_outcome_of_a_status_is_read_for_a_configuration():
    """A Worker reads a configuration for each pool, and its status lists all machine groups."""
    obj = worker(None)
    obj.status.machine_deployments = Unread([None])
    assert Configurations(Config, obj).get(0) == Config()


@pytest.mark.parametrize("status", [None, [], {"conditions": 3}, {"conditions": [3, {"type": []}]}])
def test_a_status_of_any_shape_accepts_nothing(status):
    assert not is_accepted(3, status)


def test_problems_of_the_class_are_few():
    assert len(load_config(Config, {"names": ["a"] * 1000}, "spec")[1]) == 20


NOTHING = "there is nothing to configure; remove it"


def test_a_kind_without_configuration_refuses_one():
    (problem,) = Configurations(None, extension({})).problems()
    assert str(problem) == f"spec.providerConfig: {NOTHING}"
    assert Configurations(None, extension(None)).problems() == []
    assert Configurations(None, extension(None)).get() is None
    (problem,) = Configurations(None, worker(None, {})).problems()
    assert str(problem) == f"spec.pools[1].providerConfig: {NOTHING}"


def test_a_raw_configuration_is_read_as_it_is():
    assert Configurations(Raw, extension({"a": 1})).get() == {"a": 1}
    assert Configurations(Raw, extension(None)).get() == {}
    assert Configurations(Raw, extension({"a": 1})).problems() == []


def test_a_configuration_is_decoded_once():
    configurations = Configurations(Config, extension({"names": ["a"]}))
    assert configurations.problems() == []
    assert configurations.get() is configurations.get()


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ({}, False),
        ({"spec": None}, False),
        ({"spec": {"providerConfig": None}}, False),
        ({"spec": {"providerConfig": {}}}, True),
        ({"spec": {"pools": {}}}, False),
        ({"spec": {"pools": [3, {}]}}, False),
        ({"spec": {"pools": [{}, {"providerConfig": {}}]}}, True),
    ],
)
def test_an_object_of_any_shape_tells_whether_it_has_a_configuration(raw, expected):
    assert has_configuration(raw) is expected


class Base(Actuator[Extension, C]):
    def reconcile(self, ctx, obj, cluster): ...
    def delete(self, ctx, obj, cluster): ...


T = TypeVar("T", bound=ProviderConfig)


class Renamed(Base[T], Generic[T]): ...


class Mixin(Actuator[K]):
    def reconcile(self, ctx, obj, cluster): ...
    def delete(self, ctx, obj, cluster): ...


class Swapped(Actuator[K, T], Generic[T, K]):
    reconcile = delete = Mixin.reconcile


@pytest.mark.parametrize(
    ("bases", "expected"),
    [
        ((Base[Config],), Config),
        ((Renamed[Config],), Config),
        ((Swapped[Config, Extension],), Config),
        ((Mixin, Base[Config]), Config),
        ((Mixin[Extension], Actuator[Extension, Config]), Config),
        ((Base[Raw],), Raw),
        ((Base[None],), None),
        ((Base,), None),
        ((Renamed,), None),
        ((Mixin[Extension],), None),
    ],
)
def test_the_configuration_is_the_parameter_of_the_class(bases, expected):
    """Also of a class without parameters that is derived from it, and inside a wrapper."""
    cls = new_class("Derived", (new_class("Made", bases),))
    for actuator in (cls(), WrappedActuator(cls())):
        assert config_class(actuator) == expected
        assert object_class(actuator) is Extension


@attrs.frozen(kw_only=True)
class Unsupported(ProviderConfig):
    api_version: str = VERSION
    kind: str = "Unsupported"
    zones: tuple[str, ...] = ()


def test_a_configuration_class_without_schema_is_refused_when_it_is_added():
    actuator = new_class("Refused", (Base[Unsupported],))()
    with pytest.raises(TypeError, match=r"Unsupported: zones: .* has no schema; use"):
        Manager().add(actuator, type="mine")


def test_api_version_and_kind_of_a_configuration_are_always_written():
    assert encode(Config()) == {"apiVersion": VERSION, "kind": "Config"}


@attrs.define(kw_only=True)
class Nameless:
    id: str = "1"


def test_the_state_of_a_worker_belongs_to_gardenlet():
    worker = Worker()
    worker.status.state = {"machineDeployments": {}}
    assert read_status(Config, worker.status) is None
    write_status(worker.status, Config(number=2))
    assert worker.status.state == {"machineDeployments": {}}
    assert read_status(Config, worker.status) == Config(number=2)


def test_a_state_of_its_own_is_neither_written_nor_mixed_into_the_provider_status():
    same = {"apiVersion": VERSION, "kind": "Config"}
    status = DefaultStatus(state={**same, "later": 1})
    write_status(status, Config(number=2), state=False)
    assert status.provider_status == {**same, "number": 2}
    assert status.state == {**same, "later": 1}


def test_a_status_without_api_version_and_kind_is_refused():
    with pytest.raises(TypeError, match="Nameless: define an attrs class"):
        write_status(DefaultStatus(), Nameless())


def test_a_status_keeps_fields_recorded_by_a_later_version():
    """Of the same record: of known fields the written value counts, also if that is the default."""
    same = {"apiVersion": VERSION, "kind": "Config"}
    stored = {**same, "names": ["a"], "number": 4, "later": {"id": 1}}
    for before in (
        DefaultStatus(provider_status=stored, state=stored),
        DefaultStatus(state=stored),
    ):
        write_status(before, Config(names=["b"]))
        assert before.provider_status == {**same, "names": ["b"], "later": {"id": 1}}
        assert before.state == before.provider_status
        assert before.state["later"] is not before.provider_status["later"]


def test_a_status_keeps_nothing_of_another_record():
    stored = {"apiVersion": VERSION, "kind": "Other", "later": 1}
    status = DefaultStatus(provider_status=stored)
    write_status(status, Config())
    assert status.provider_status == {"apiVersion": VERSION, "kind": "Config"}


@attrs.define
class Part:
    size: int = 1


@attrs.define
class Record:
    api_version: str = "example.org/v1"
    kind: str = "Record"
    part: Part = attrs.field(factory=Part)


def test_fields_recorded_by_a_later_version_stay_also_in_parts():
    stored = {"apiVersion": "example.org/v1", "kind": "Record", "part": {"size": 2, "later": 3}}
    status = DefaultStatus(provider_status={**stored, "later": 4})
    write_status(status, Record(part=Part(size=5)))
    assert status.provider_status == {**stored, "part": {"size": 5, "later": 3}, "later": 4}
    assert status.state == status.provider_status


def test_a_record_that_is_no_attrs_class_is_refused_each_time():
    record = {"apiVersion": "example.org/v1", "kind": "Record"}
    with pytest.raises(TypeError, match="dict: define an attrs class"):
        write_status(DefaultStatus(provider_status=record), record)


@attrs.frozen(kw_only=True)
class Oldest(ProviderConfig):
    api_version: str = "mine.example.org/v0"
    kind: str = "Config"
    name: str = ""


@attrs.frozen(kw_only=True)
class Older(ProviderConfig):
    api_version: str = "mine.example.org/v0.5"
    kind: str = "Config"
    names: list[str] = attrs.field(factory=list)
    versions = {Oldest: lambda old: Older(names=[old.name, old.name])}


@attrs.frozen(kw_only=True)
class Newest(Config):
    api_version: Annotated[str, Schema(required=True)] = VERSION
    versions = {Older: lambda old: Newest(names=old.names)}


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"apiVersion": VERSION, "names": ["a"]}, ["a"]),
        ({"apiVersion": "mine.example.org/v0.5", "names": ["a"]}, ["a"]),
        ({"names": ["a"]}, ["a"]),  # the newest requires apiVersion
        ({"apiVersion": "mine.example.org/v0", "names": []}, "unknown field names; did you mean"),
        ({"apiVersion": "mine.example.org/v0", "name": "a"}, "names[1]: 'a' is a duplicate, in"),
        ({"apiVersion": "mine.example.org/v3"}, "or mine.example.org/v0 Config"),
    ],
)
def test_an_older_version_is_decoded_strictly_and_converted(given, found):
    configurations = Configurations(Newest, extension(given))
    if isinstance(found, list):
        assert configurations.get() == Newest(names=found)
    else:
        (problem,) = configurations.problems()
        assert found in problem.detail
