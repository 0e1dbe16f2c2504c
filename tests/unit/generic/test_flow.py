"""A flow creates and deletes a graph of resources once, wherever the process is killed."""

from __future__ import annotations

import threading
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actuator import ActuatorError, ConfigurationError, RequeueAfter
from actuator.codec import decode, encode
from actuator.errors import DecodeError, ErrorCode
from actuator.v1alpha1 import Infrastructure, Worker
from generic.library.flow import ExternalType, Flow, Task, _is_replaced
from generic.library.flowstate import FlowState, ResourceRecord, obsolete
from generic.library.inorder import run_in_order
from tests.support.objects.flow_cloud import TYPES, Config, FlowCloud, Thing, Wanted, infrastructure
from tests.support.objects.stand_ins import UNUSED

GRAPH = {
    "vpc": Wanted(),
    "subnet": Wanted(("vpc",)),
    "group": Wanted(("vpc",)),
    "host": Wanted(("subnet", "group"), type="host"),
}


def change(**changes: Any) -> Config:
    """Return GRAPH with other fields of some tasks; None removes a task."""
    changed = {
        name: attrs.evolve(GRAPH[name], **(fields or {})) for name, fields in changes.items()
    }
    gone = [name for name, fields in changes.items() if fields is None]
    every = {**GRAPH, **changed}
    return {name: wanted for name, wanted in every.items() if name not in gone}


def test_resources_are_created_in_order_and_deleted_in_reverse():
    cloud = FlowCloud()
    assert cloud.run(dict(reversed(GRAPH.items())))
    created = [line.removeprefix("create ") for line in cloud.log]
    assert (created[0], created[-1]) == ("vpc", "host")
    assert cloud.run({}, delete=True)
    deleted = [line.removeprefix("delete ") for line in cloud.log[len(created) :]]
    assert (deleted[0], deleted[-1]) == ("host", "vpc")
    assert cloud.state is None


def test_resources_of_two_types_may_have_one_id():
    """Some providers use names as ids."""
    log = []
    types = [
        ExternalType(
            name=type,
            find=lambda _name, _ids: ["nodes"],
            delete=partial(lambda deleted, _id, _ids: log.append(deleted), type),
        )
        for type in TYPES
    ]
    first = ResourceRecord(name="role", type=TYPES[0], id="nodes")
    second = ResourceRecord(name="profile", type=TYPES[1], id="nodes", needs=["role"])
    ctx: Any = SimpleNamespace(save=lambda _obj: None)
    Flow(types).delete(ctx, infrastructure(None), FlowState(resources=[first, second]))
    assert log == [TYPES[1], TYPES[0]]


def test_a_second_run_requests_nothing():
    cloud = FlowCloud()
    cloud.run(GRAPH)
    before = list(cloud.log)
    cloud.run(GRAPH)
    assert cloud.log == before


def test_a_resource_deleted_externally_is_created_again():
    cloud = FlowCloud()
    cloud.run(GRAPH)
    old = cloud.saved.ids["host"]
    del cloud.things[old]
    cloud.run(GRAPH)
    assert cloud.saved.ids["host"] != old
    assert cloud.names == sorted(GRAPH)


def test_a_resource_that_only_its_tags_identify_is_not_created_again():
    cloud = FlowCloud()
    cloud.run(GRAPH)
    ids = cloud.saved.ids
    cloud.state = None
    cloud.run(GRAPH)
    assert cloud.saved.ids == ids


def test_two_resources_of_one_task_are_an_error_for_creation_and_both_are_deleted():
    cloud = FlowCloud()
    cloud.run({"vpc": Wanted()})
    cloud.things["id-b"] = Thing("vpc", "link", 1, {})
    with pytest.raises(ActuatorError, match="more than one link: id-1, id-b") as error:
        cloud.run(GRAPH)
    assert error.value.codes == (ErrorCode.ERR_INFRA_DEPENDENCIES,)
    cloud.run(GRAPH, delete=True)
    assert cloud.things == {}


CHANGES = {
    "a task that disappeared": (
        change(host=None, group=None),
        ["delete host", "delete group"],
    ),
    "a task in the middle that disappeared": (
        {**change(group=None), "host": attrs.evolve(GRAPH["host"], needs=("subnet",))},
        ["delete group"],
    ),
    "an optional task that is no longer wanted": (change(group={"when": False}), ["delete group"]),
    "a replacement": (
        change(subnet={"version": 2}),
        ["delete host", "delete subnet", "create subnet", "create host"],
    ),
    "a replacement of the last one": (change(host={"version": 2}), ["delete host", "create host"]),
    "another type": (change(host={"type": "link"}), ["delete host", "create host"]),
    "an existing resource in place of the own one": (
        change(subnet={"existing": "theirs"}),
        ["delete host", "delete subnet", "create host"],
    ),
}


@pytest.mark.parametrize(("config", "requests"), CHANGES.values(), ids=CHANGES)
def test_a_changed_configuration_leads_to_exactly_the_wanted_resources(config, requests):
    cloud = FlowCloud()
    cloud.run(GRAPH)
    cloud.log.clear()
    cloud.run(config)
    assert cloud.log == requests
    assert cloud.names == sorted(name for name, wanted in config.items() if wanted.owned)
    cloud.run(GRAPH)
    assert cloud.names == sorted(GRAPH), "and back"


def test_a_wanted_task_stops_using_a_resource_before_that_is_deleted():
    """Otherwise the deletion could not succeed, or the user of it had to be deleted."""
    cloud = FlowCloud()
    cloud.run(GRAPH)
    host = cloud.saved.ids["host"]
    cloud.run(change(group={"when": False}))
    assert cloud.saved.ids["host"] == host
    assert cloud.things[host].uses == {"subnet": cloud.saved.ids["subnet"]}


def test_a_failed_update_keeps_the_record_of_a_resource_in_use():
    cloud = FlowCloud()
    cloud.run(GRAPH)
    host = cloud.saved.ids["host"]
    without_group = change(group=None, host={"needs": ("subnet",)})
    for point in range(1, 7):
        cloud.run(without_group, kill_at=point, fails=True)
    assert cloud.run(without_group)
    assert (cloud.names, cloud.saved.ids["host"]) == (["host", "subnet", "vpc"], host)


def test_a_resource_is_recorded_as_needed_before_another_one_uses_it():
    cloud = FlowCloud()
    cloud.run({"subnet": Wanted(), "host": Wanted()})
    for point in range(1, 8):
        cloud.run({"subnet": Wanted(), "host": Wanted(("subnet",))}, kill_at=point)
        needs = {record.name: record.needs for record in cloud.saved.resources}
        uses = cloud.things[cloud.saved.ids["host"]].uses
        assert not uses or needs["host"] == ["subnet"]
    cloud.run({}, delete=True)
    assert cloud.things == {}


def test_an_existing_resource_is_used_and_neither_reported_nor_deleted():
    cloud = FlowCloud()
    cloud.run(change(vpc={"existing": "theirs"}))
    assert cloud.saved.ids["vpc"] == "theirs"
    assert cloud.things[cloud.saved.ids["subnet"]].uses == {"vpc": "theirs"}
    reported = cloud.saved.external_resources(lambda name: {"Name": name})
    assert {item.tags["Name"] for item in reported} == {"subnet", "group", "host"}
    cloud.run({}, delete=True)
    assert cloud.things == {}


def test_an_existing_resource_that_is_not_there_is_a_configuration_problem():
    task = Task(name="vpc", type="link", existing=lambda _ids: "")
    with pytest.raises(ConfigurationError, match="vpc: the existing link is not there"):
        Flow([FlowCloud().type("link")], [task]).create(UNUSED, infrastructure(None), FlowState())


@pytest.mark.parametrize("delete", [False, True])
def test_a_recorded_resource_of_an_unknown_type_is_an_error_with_a_code(delete):
    cloud = FlowCloud()
    cloud.run(GRAPH)
    record = {"name": "gateway", "type": "gateway", "id": "id-9"}
    assert cloud.state is not None
    cloud.state["resources"].append(record)
    before = dict(cloud.things)
    with pytest.raises(ActuatorError, match=r"'gateway'.* use the version that created") as error:
        cloud.run(GRAPH, delete=delete)
    assert error.value.codes == (ErrorCode.ERR_INFRA_DEPENDENCIES,)
    assert cloud.things == before


TYPE = ExternalType(name="link", find=lambda _name, _ids: [], delete=lambda _id, _ids: None)


def make(*needs: str, name: str = "a", **fields: Any) -> Task:
    given: dict[str, Any] = {"type": "link", "create": lambda _ids: "id"} | fields
    return Task(name=name, needs=needs, **given)


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        ([make(), make()], "two tasks have the name 'a'"),
        ([make("b")], "task 'a' needs 'b', which is no task"),
        ([make("b"), make("a", name="b")], "tasks need each other: "),
        ([make(type="host")], "task 'a' has the type 'host', which is not given"),
        ([make(create=None)], "task 'a' needs either `create` or `existing`"),
        ([make(existing=lambda _ids: "id")], "task 'a' needs either `create` or `existing`"),
    ],
)
def test_a_wrong_graph_is_refused(tasks, message):
    with pytest.raises(ValueError, match=message):
        Flow([TYPE], tasks)


@pytest.mark.parametrize(
    ("record", "task", "found", "replaced"),
    [
        ({"id": "a"}, {}, "a", False),
        ({"id": "a"}, {"replace": lambda _id, _ids: True}, "a", True),
        ({"id": "a"}, {"replace": lambda _id, _ids: True}, "", False),
        ({"id": "a"}, {"type": "host"}, "", True),
        ({"id": "a"}, {"existing": True}, "b", True),
        ({"id": ""}, {"existing": True}, "b", True),
        ({"id": "a"}, {"existing": True}, "a", False),  # handed over to another owner
        ({"id": "a", "existing": True}, {"existing": True}, "a", False),
        ({"id": "a", "existing": True}, {"existing": True}, "b", True),
        ({"id": "a", "existing": True}, {}, "", True),
    ],
)
def test_a_resource_is_replaced_that_cannot_stay(record, task, found, replaced):
    given: dict[str, Any] = {}
    if task.pop("existing", 0):
        given = {"create": None, "existing": lambda _ids: found}
    recorded = ResourceRecord(name="a", type="link", **record)
    assert _is_replaced(recorded, make(**task, **given), found, {}) is replaced


def test_obsolete_resources_that_wanted_ones_used_are_deleted_last():
    needs = {"a": [], "b": ["a"], "c": ["b"], "d": [], "e": ["d"]}
    records = [ResourceRecord(name=name, type="link", needs=them) for name, them in needs.items()]
    assert obsolete(records, ["c"]) == (["d", "e"], ["a", "b"])
    assert obsolete(records, []) == ([*needs], [])
    assert obsolete(records, needs) == ([], [])


@st.composite
def configs(draw: st.DrawFn) -> Config:
    names = draw(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=5, unique=True))
    tasks = {
        name: Wanted(
            needs=tuple(draw(st.lists(st.sampled_from(names[:at]), unique=True))) if at else (),
            version=draw(st.sampled_from([1, 1, 1, 2])),
            when=draw(st.sampled_from([True, True, True, False])),
            existing=draw(st.sampled_from(["", "", "", "", "theirs-1", "theirs-2"])),
            type=draw(st.sampled_from([TYPES[0], *TYPES])),
        )
        for at, name in enumerate(names)
    }
    return {name: tasks[name] for name in draw(st.permutations(names))}


KILLS = st.lists(st.tuples(st.integers(1, 25), st.booleans()), max_size=3)


def check(cloud: FlowCloud, config: Config) -> None:
    """Exactly the wanted resources exist, and use those that they need."""
    wanted = {name: wanted for name, wanted in config.items() if wanted.owned}
    assert cloud.names == sorted(wanted)
    assert set(cloud.saved.ids) == {name for name, wanted in config.items() if wanted.when}
    ids = cloud.saved.ids
    for name, task in wanted.items():
        thing = cloud.things[ids[name]]
        uses = {need: ids[need] for need in task.needs if config[need].when}
        assert (thing.uses, thing.version, thing.type) == (uses, task.version, task.type)
    reported = [item.id for item in cloud.saved.external_resources(lambda _name: {})]
    assert sorted(reported) == sorted(cloud.things)


@given(
    steps=st.lists(st.tuples(configs(), KILLS, st.booleans()), min_size=1, max_size=3),
    kills=KILLS,
    parallel=st.sampled_from([1, 1, 3]),
)
def test_any_change_with_kills_at_any_point_leads_to_the_wanted_resources(steps, kills, parallel):
    """And none is created twice, unreported, or deleted before another one that uses it."""
    cloud = FlowCloud(parallel=parallel)
    interrupted = 0
    for config, deaths, ends in steps:
        for point, fails in deaths:
            interrupted += 1
            cloud.run(config, kill_at=point, fails=fails)
            assert cloud.differences(interrupted) == []
        if ends:  # else the configuration changes before a run succeeds
            assert cloud.run(config)
            check(cloud, config)
            interrupted = 0
    for point, fails in kills:
        cloud.run({}, delete=True, kill_at=point, fails=fails)
        interrupted += 1
        assert cloud.differences(interrupted) == []
    assert cloud.run({}, delete=True)
    assert (cloud.things, cloud.state) == ({}, None)


def test_the_comparison_finds_unrecorded_and_deleted_resources():
    cloud = FlowCloud()
    cloud.things["id-a"] = Thing("vpc", "link", 1, {})
    assert cloud.differences() == ["not recorded: id-a"]
    recorded = [ResourceRecord(name=name, type="link", id=name) for name in ("vpc", "subnet")]
    cloud.things = {}
    cloud.state = encode(FlowState(resources=recorded))
    assert len(cloud.differences()) == 1


def test_independent_work_runs_at_once_and_no_more_than_allowed():
    together = threading.Barrier(3, timeout=10)
    most: list[int] = []
    running: set[str] = set()
    lock = threading.Lock()

    def work(name: str) -> None:
        with lock:
            running.add(name)
            most.append(len(running))
        together.wait()
        with lock:
            running.discard(name)
        together.wait()

    run_in_order({name: [] for name in "abcdef"}, work, 3)
    assert max(most) == 3


@pytest.mark.parametrize("parallel", [1, 4])
def test_nothing_begins_after_an_error_and_the_error_is_raised(parallel):
    done: list[str] = []

    def work(name: str) -> None:
        done.append(name)
        if name == "b":
            raise ActuatorError("b failed")

    with pytest.raises(ActuatorError, match="b failed"):
        run_in_order({"a": [], "b": ["a"], "c": ["b"]}, work, parallel)
    assert done == ["a", "b"]


@pytest.mark.parametrize("parallel", [1, 3])
def test_a_request_for_another_attempt_holds_up_only_its_successors(parallel):
    done: list[str] = []

    def work(name: str) -> None:
        done.append(name)
        if name in ("slow", "slower"):
            raise RequeueAfter(5, f"{name} is being deleted")

    graph = {"slow": [], "slower": [], "after": ["slow"], "other": [], "last": ["other"]}
    with pytest.raises(RequeueAfter, match="is being deleted"):
        run_in_order(graph, work, parallel)
    assert sorted(done) == ["last", "other", "slow", "slower"]


def test_an_error_counts_more_than_a_request_for_another_attempt():
    together = threading.Barrier(2, timeout=10)

    def work(name: str) -> None:
        together.wait()
        raise RequeueAfter(5) if name == "a" else ActuatorError("b failed")

    with pytest.raises(ActuatorError, match="b failed"):
        run_in_order({"a": [], "b": []}, work, 2)


def test_the_state_of_a_worker_belongs_to_gardenlet():
    with pytest.raises(TypeError, match="Worker has no state of its own"):
        FlowState.read(Worker())


@attrs.define(kw_only=True)
class FormerState(FlowState):
    """The state of a former extension: ids by name."""

    @classmethod
    def from_stored(cls, stored):
        if "data" not in stored:
            raise DecodeError("data: missing")
        ids = stored["data"].items()
        return cls(resources=[ResourceRecord(name=name, type="link", id=id) for name, id in ids])

    def to_stored(self, before):
        return {**before, "data": {record.name: record.id for record in self.resources}}


def test_a_former_state_is_read_and_written_in_its_own_form():
    cloud = FlowCloud()
    obj = infrastructure({"version": "1.0", "data": {"vpc": "id-0"}})
    cloud.things["id-0"] = Thing("vpc", "link", 1, {})
    state = FormerState.read(obj)
    assert state is not None
    types = [cloud.type(name) for name in TYPES]
    tasks = [cloud.task(name, GRAPH[name]) for name in ("vpc", "subnet")]
    Flow(types, tasks).create(cloud, obj, state)
    assert obj.status.state == {"version": "1.0", "data": {"vpc": "id-0", "subnet": "id-1"}}


def test_a_state_that_cannot_be_read_is_an_error():
    with pytest.raises(ActuatorError, match=r"status\.state is no FlowState"):
        FlowState.read(infrastructure({"resources": 1}))
    with pytest.raises(ActuatorError, match=r"status\.state is no FormerState: data: missing"):
        FormerState.read(infrastructure({}))


def test_a_state_that_is_lost_is_an_error_with_a_code():
    obj = infrastructure(None)
    obj.status.provider_status = {"kind": "Network"}
    with pytest.raises(ActuatorError, match=r"status\.state is missing; restore") as error:
        FlowState.read(obj)
    assert error.value.codes == (ErrorCode.ERR_CONFIGURATION_PROBLEM,)


class MyCloud:
    """The cloud in the example of the documentation."""

    def __init__(self) -> None:
        self.there: dict[str, tuple[str, str]] = {}

    def find(self, owner: str, name: str) -> list[str]:
        return [id for id, found in self.there.items() if found == (owner, name)]

    def create_network(self, owner: str, name: str) -> str:
        id = f"{name}-{len(self.there)}"
        self.there[id] = (owner, name)
        return id

    def create_router(self, owner: str, name: str, network: str) -> str:
        assert network in self.there
        return self.create_network(owner, name)

    def delete(self, id: str) -> None:
        self.there.pop(id, None)


def test_the_example_in_the_documentation_runs():
    text = (Path(__file__).parents[3] / "docs/extensions.md").read_text()
    code = text.partition("## External resources as a flow")[2].split("```")[1]
    names: dict[str, Any] = {"MyCloud": MyCloud}
    exec(code.removeprefix("python"), names)
    cloud = MyCloud()
    obj = infrastructure(None)
    actuator = names["MyInfrastructure"](cloud)
    ctx = SimpleNamespace(save=lambda obj: None)
    actuator.reconcile(ctx, obj, None)
    reported = [external_resource.id for external_resource in actuator.external_resources(obj)]
    assert reported == list(cloud.there)
    assert (obj.status.provider_status or {})["networkID"] in cloud.there
    moved = decode(Infrastructure, {**encode(obj), "status": {"state": obj.status.state}})
    actuator.reconcile(ctx, moved, None)
    assert moved.status.provider_status == obj.status.provider_status
    actuator.delete(ctx, obj, None)
    assert cloud.there == {}
    assert (obj.status.provider_status, obj.status.state) == (None, None)
