"""A providerConfig is read strictly, and each problem names the object and the field."""

from collections.abc import Iterable
from typing import Annotated, Any

import attrs
import pytest

from actuator import Actuator, Cluster, ConfigurationError, ErrorCode, FieldProblem, ProviderConfig
from actuator.codec import decode, encode
from actuator.meta import DefaultStatus, Schema
from actuator.provider_config import (
    ACCEPTED,
    accepted_message,
    config_problems,
    is_accepted,
    problems_of,
    read_config,
    refuse_config,
)
from actuator.provider_status import read_status, write_status
from actuator.v1alpha1 import Extension, Worker
from generic.manager.manager import Manager

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


class Mine(Actuator[Extension]):
    provider_config = Config

    def reconcile(self, ctx, obj, cluster): ...
    def delete(self, ctx, obj, cluster): ...


def extension(config: Any) -> Extension:
    spec = {"type": "mine", "providerConfig": config}
    return decode(Extension, {"metadata": {"name": "x", "namespace": "ns"}, "spec": spec})


def worker(*configs: Any) -> Worker:
    pools = [{"name": f"p{index}", "providerConfig": one} for index, one in enumerate(configs)]
    meta = {"name": "w", "namespace": "ns"}
    return decode(Worker, {"metadata": meta, "spec": {"type": "mine", "pools": pools}})


def test_a_configuration_is_read_and_an_absent_one_has_the_defaults():
    assert read_config(Config, extension({"names": ["a"]})).names == ["a"]
    assert read_config(Config, extension(None)) == Config()


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
        read_config(Config, obj)
    assert str(caught.value) == f"Extension ns/x: {problem}"
    assert caught.value.codes == (ErrorCode.ERR_CONFIGURATION_PROBLEM,)
    assert [str(one) for one in Mine().validate(None, obj, Cluster())] == [problem]


def test_a_required_field_of_an_absent_configuration_is_named():
    (problem,) = config_problems(Required, extension(None))
    assert str(problem) == "spec.providerConfig.zone: required field missing; set a string"


def test_the_pools_of_a_worker_have_the_configurations():
    obj = worker({"names": ["a"]}, None, {"nmaes": []})
    assert read_config(Config, obj).names == ["a"]
    assert read_config(Config, obj, pool=1) == Config()
    problem = "spec.pools[2].providerConfig: unknown field nmaes; did you mean names?"
    assert [str(one) for one in config_problems(Config, obj)] == [problem]
    with pytest.raises(ConfigurationError, match=r"^Worker ns/w: spec\.pools\[2\]\.providerConfig"):
        read_config(Config, obj, pool=2)


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
    assert [*Mine().validate(None, obj, Cluster())] == [*config_problems(Config, obj)]
    assert bool([*config_problems(Config, obj)]) == judged
    obj.spec.provider_config["name"] = []  # cannot be decoded
    assert [*config_problems(Config, obj)]
    with pytest.raises(ConfigurationError, match="unknown field name"):
        read_config(Config, obj)


@pytest.mark.parametrize("status", [None, [], {"conditions": 3}, {"conditions": [3, {"type": []}]}])
def test_a_status_of_any_shape_accepts_nothing(status):
    assert not is_accepted(3, status)


def test_problems_of_the_class_are_few():
    assert len(problems_of(Config, {"names": ["a"] * 1000}, "spec")) == 20


def test_a_kind_without_configuration_refuses_one():
    (problem,) = refuse_config(extension({}).spec)
    assert str(problem) == "spec.providerConfig: there is nothing to configure; remove it"
    assert not list(refuse_config(extension(None).spec))


@attrs.frozen(kw_only=True)
class Unsupported(ProviderConfig):
    api_version: str = VERSION
    kind: str = "Unsupported"
    zones: tuple[str, ...] = ()


def test_a_configuration_class_without_schema_is_refused_when_it_is_added():
    actuator = Mine()
    actuator.provider_config = Unsupported
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


def test_a_status_without_api_version_and_kind_is_refused():
    with pytest.raises(TypeError, match="Nameless: define an attrs class"):
        write_status(DefaultStatus(), Nameless())


def test_a_status_keeps_what_a_later_version_recorded():
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


def test_what_a_later_version_recorded_stays_also_in_parts():
    stored = {"apiVersion": "example.org/v1", "kind": "Record", "part": {"size": 2, "later": 3}}
    status = DefaultStatus(provider_status={**stored, "later": 4})
    write_status(status, Record(part=Part(size=5)))
    assert status.provider_status == {**stored, "part": {"size": 5, "later": 3}, "later": 4}
    assert status.state == status.provider_status


def test_a_record_that_is_no_attrs_class_is_refused_each_time():
    record = {"apiVersion": "example.org/v1", "kind": "Record"}
    with pytest.raises(TypeError, match="dict: define an attrs class"):
        write_status(DefaultStatus(provider_status=record), record)
