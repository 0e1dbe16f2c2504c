"""A flow creates and deletes a graph of resources once, wherever the process is killed."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actuator import ActuatorError
from actuator.codec import decode, encode
from actuator.errors import ErrorCode
from actuator.meta import Raw
from actuator.provider_status import read_status
from actuator.v1alpha1 import Infrastructure
from generic.library.flow import Flow, FlowStatus, Ids, ResourceRecord, Task


class Killed(BaseException):
    pass


def infrastructure(state: Raw | None) -> Infrastructure:
    spec = {"type": "flow", "region": "here", "secretRef": {"name": "account"}}
    meta = {"name": "infra", "namespace": "shoot--flow"}
    return decode(Infrastructure, {"metadata": meta, "spec": spec, "status": {"state": state}})


class Cloud:
    """Resources by id; each request may be the last one, before or after it takes effect."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.log: list[str] = []
        self.state: Raw | None = None
        self.points = 0
        self.kill_at = -1

    def point(self) -> None:
        self.points += 1
        if self.points == self.kill_at:
            raise Killed

    def task(self, name: str, needs: tuple[str, ...] = ()) -> Task:
        def create(ids: Ids) -> str:
            missing = [need for need in needs if self.names.get(ids.get(need, "")) != need]
            assert not missing, f"{name} is created before {missing}"
            self.point()
            id = f"id-{len(self.log)}"
            self.names[id] = name
            self.log.append(f"create {name}")
            self.point()
            return id

        def delete(id: str) -> None:
            self.point()
            self.names.pop(id, None)
            self.log.append(f"delete {name}")
            self.point()

        return Task(
            name=name,
            type=f"type of {name}",
            find=lambda: [id for id, there in self.names.items() if there == name],
            create=create,
            delete=delete,
            needs=needs,
        )

    def save(self, obj: Infrastructure) -> None:
        """Write the status, as Context.save does."""
        self.point()
        self.state = obj.status.state
        self.point()

    @property
    def saved(self) -> FlowStatus:
        obj = infrastructure(self.state)
        return read_status(FlowStatus, obj.status) or FlowStatus()

    def run(self, graph: dict[str, tuple[str, ...]], *, delete: bool = False) -> bool:
        """Run the flow from the saved status; return False if the process was killed."""
        obj, status = infrastructure(self.state), self.saved
        flow = Flow(self.task(name, needs) for name, needs in graph.items())
        try:
            (flow.delete if delete else flow.create)(self, obj, status)
            self.save(obj)  # the framework writes the status at the end of the call
        except Killed:
            return False
        return True

    def differences(self) -> list[str]:
        """Compare what the status records with what exists, as an Orphan would."""
        recorded = list(self.saved.external_resources(lambda name: {"Name": name}))
        by_id = {one.id for one in recorded if one.id}
        by_tag = {one.tags["Name"] for one in recorded if not one.id}
        unrecorded = [
            f"not recorded: {name}"
            for id, name in self.names.items()
            if id not in by_id and name not in by_tag
        ]
        gone = [one for one in recorded if one.id and one.id not in self.names]
        return unrecorded + [f"recorded, but gone: {one}" for one in gone[1:]]


GRAPH = {"vpc": (), "subnet": ("vpc",), "group": ("vpc",), "host": ("subnet", "group")}


def test_resources_are_created_in_order_and_deleted_in_reverse():
    cloud = Cloud()
    assert cloud.run(dict(reversed(GRAPH.items())))
    created = [line.removeprefix("create ") for line in cloud.log]
    assert created[0] == "vpc"
    assert created[-1] == "host"
    assert cloud.run(GRAPH, delete=True)
    deleted = [line.removeprefix("delete ") for line in cloud.log[len(created) :]]
    assert (deleted[0], deleted[-1]) == ("host", "vpc")
    assert cloud.state is None


def test_a_second_run_requests_nothing():
    cloud = Cloud()
    cloud.run(GRAPH)
    before = list(cloud.log)
    cloud.run(GRAPH)
    assert cloud.log == before


def test_a_resource_that_somebody_deleted_is_created_again():
    cloud = Cloud()
    cloud.run(GRAPH)
    old = next(id for id, name in cloud.names.items() if name == "subnet")
    del cloud.names[old]
    cloud.run(GRAPH)
    new = next(id for id, name in cloud.names.items() if name == "subnet")
    assert cloud.saved.ids["subnet"] == new
    assert new != old


def test_a_resource_that_only_its_tags_identify_is_deleted():
    cloud = Cloud()
    cloud.run(GRAPH)
    cloud.state = encode(FlowStatus())
    cloud.run(GRAPH, delete=True)
    assert cloud.names == {}


def test_two_resources_of_one_task_are_an_error_for_creation_and_both_are_deleted():
    cloud = Cloud()
    cloud.names = {"id-a": "vpc", "id-b": "vpc"}
    with pytest.raises(ActuatorError, match="more than one type of vpc: id-a, id-b") as error:
        cloud.run(GRAPH)
    assert error.value.codes == (ErrorCode.ERR_INFRA_DEPENDENCIES,)
    cloud.run(GRAPH, delete=True)
    assert cloud.names == {}


def test_a_recorded_resource_without_a_task_stops_the_deletion_before_it_begins():
    cloud = Cloud()
    cloud.run({**GRAPH, "gateway": ("vpc",)})
    before = dict(cloud.names)
    with pytest.raises(ActuatorError, match="'gateway'"):
        cloud.run(GRAPH, delete=True)
    assert cloud.names == before


def test_a_resource_of_an_earlier_specification_stays_recorded():
    cloud = Cloud()
    cloud.run({**GRAPH, "old": ("vpc",)})
    cloud.run(GRAPH)
    assert "old" in cloud.saved.ids


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ([("a", ()), ("a", ())], "two tasks have the name 'a'"),
        ([("a", ("b",))], "task 'a' needs 'b', which is no task"),
        ([("a", ("b",)), ("b", ("a",))], "tasks need each other: "),
    ],
)
def test_a_wrong_graph_is_refused(names, message):
    cloud = Cloud()
    with pytest.raises(ValueError, match=message):
        Flow(cloud.task(name, needs) for name, needs in names)


@st.composite
def graphs(draw: st.DrawFn) -> dict[str, tuple[str, ...]]:
    names = [f"r{number}" for number in range(draw(st.integers(1, 6)))]
    graph = {
        name: tuple(draw(st.lists(st.sampled_from(names[:at]), unique=True))) if at else ()
        for at, name in enumerate(names)
    }
    return {name: graph[name] for name in draw(st.permutations(names))}


@given(graph=graphs(), delete=st.booleans(), kills=st.lists(st.integers(1, 12), max_size=4))
def test_kills_at_any_point_leak_nothing_and_create_nothing_twice(graph, delete, kills):
    cloud = Cloud()
    if delete:
        assert cloud.run(graph)
    for kill in kills:
        cloud.points, cloud.kill_at = 0, kill
        cloud.run(graph, delete=delete)
        assert cloud.differences() == []
    cloud.kill_at = -1
    assert cloud.run(graph, delete=delete)
    assert cloud.differences() == []
    assert sorted(cloud.names.values()) == ([] if delete else sorted(graph))
    assert set(cloud.saved.ids.values()) == set(cloud.names)


def test_the_comparison_finds_what_no_status_records_and_what_is_gone():
    cloud = Cloud()
    cloud.names = {"id-a": "vpc"}
    assert cloud.differences() == ["not recorded: vpc"]
    recorded = [ResourceRecord(name=name, type=name, id=name) for name in ("vpc", "subnet")]
    cloud.names, cloud.state = {}, encode(FlowStatus(resources=recorded))
    assert len(cloud.differences()) == 1


class MyCloud:
    """What the example in the documentation uses."""

    def __init__(self) -> None:
        self.there: dict[str, tuple[str, str]] = {}

    def find(self, type: str, owner: str) -> list[str]:
        return [id for id, found in self.there.items() if found == (type, owner)]

    def create(self, type: str, owner: str, network: str = "") -> str:
        assert type == "network" or network in self.there
        id = f"{type}-{len(self.there)}"
        self.there[id] = (type, owner)
        return id

    def delete(self, id: str) -> None:
        self.there.pop(id, None)


def test_the_example_in_the_documentation_runs():
    text = (Path(__file__).parents[3] / "docs/extensions.md").read_text()
    code = text.partition("## External resources as a flow")[2].split("```")[1]
    names: dict[str, Any] = {"MyCloud": MyCloud}
    exec(code.removeprefix("python"), names)
    cloud, obj = MyCloud(), infrastructure(None)
    actuator = names["MyInfrastructure"](cloud)
    ctx = SimpleNamespace(save=lambda obj: None)
    actuator.reconcile(ctx, obj, None)
    assert [one.id for one in actuator.external_resources(obj)] == list(cloud.there)
    actuator.delete(ctx, obj, None)
    assert cloud.there == {}


def test_a_status_that_cannot_be_read_is_an_error_or_what_the_caller_gives():
    status = infrastructure({"resources": 1}).status
    with pytest.raises(ActuatorError, match="is no FlowStatus"):
        read_status(FlowStatus, status)
    empty = FlowStatus()
    assert read_status(FlowStatus, status, unreadable=empty) is empty
