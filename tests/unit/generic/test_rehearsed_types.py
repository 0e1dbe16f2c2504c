"""Extension types of combined rehearsals: each object has one actuator, whatever is combined."""

from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actuator import Actuator, Cluster
from actuator.codec import decode
from actuator.errors import ConfigurationError
from actuator.interface import WrappedActuator, innermost, kind_of
from actuator.v1alpha1 import ContainerRuntime, Extension, Worker
from extensions.relations.kinds import Team
from generic.library.manifests import manifest_of
from generic.reconciler.operation import Operation
from generic.testing.drill.breaks import BREAKS
from generic.testing.drill.inventory import check_types
from generic.testing.drill.world import kinds_of
from generic.testing.explorer.run import Wanted
from generic.testing.recording import RecordingContext
from generic.testing.rehearsal import (
    CombinedRehearsal,
    Rehearsal,
    RehearsedShoot,
    name_of,
    types_of,
)

KINDS = (Extension, ContainerRuntime, Worker)
SHOOT = RehearsedShoot(technical_id="shoot--a--b", type="drill-1", labels={})


def actuator(cls: Any):
    """A new class of an actuator for a kind."""

    class One(Actuator[cls]):
        finalizer = f"example.org/{cls.__name__.lower()}"

        def reconcile(self, ctx, obj, cluster): ...
        def delete(self, ctx, obj, cluster): ...

    return One


def rehearsal(number, kinds, suffixes=True, name=""):
    """A rehearsal with an actuator for each of the kinds, which may repeat."""
    classes = [actuator(cls) for cls in kinds]
    own = {cls: f"-{index}" for index, cls in enumerate(classes)} if suffixes else {}

    class Part(Rehearsal):
        title = f"part {number}"
        region = "r"
        scenarios = {"rain": "It rains."}
        type_suffixes = own

        def start(self, directory): ...
        def inject_failure(self, scenario): ...
        def remaining_resources(self):
            return ()

        def actuators(self):
            return [cls() for cls in classes]

        def manifests(self, shoot):
            return [
                {
                    "apiVersion": "v1",
                    "kind": kind_of(cls()).name,
                    "metadata": {"name": name or f"{number}-{index}"},
                    "spec": {"type": shoot.type + own.get(cls, "")},
                }
                for index, cls in enumerate(classes)
            ]

    return Part()


PARTS = st.lists(st.lists(st.sampled_from(KINDS), min_size=1, max_size=3), min_size=1, max_size=3)


@given(PARTS)
def test_each_object_is_served_by_exactly_one_actuator(parts):
    combined = CombinedRehearsal([rehearsal(number, kinds) for number, kinds in enumerate(parts)])
    found = [WrappedActuator(item) for item in combined.actuators()]
    manifests = combined.manifests(SHOOT)
    check_types(manifests, found, SHOOT.type)
    served = [
        (kind_of(item).name, type) for item in found for type in types_of(item, [SHOOT.type, "x"])
    ]
    assert len(set(served)) == len(served) == 2 * len(found)
    wanted = [(manifest["kind"], manifest["spec"]["type"]) for manifest in manifests]
    assert sorted(wanted) == sorted(item for item in served if item[1].startswith(SHOOT.type))
    assert len({kind.name for kind in kinds_of(found)}) == len(kinds_of(found))


CALLS = {
    "manifests": lambda combined: [
        manifest["spec"]["type"] for manifest in combined.manifests(SHOOT)
    ],
    "actuators": lambda combined: list(map(name_of, combined.actuators())),
    "part_of": lambda combined: combined.part_of("Extension-2").title,
}
OVERLAPPING = [[Extension, Worker], [Extension, Team], [ContainerRuntime]]


@pytest.mark.parametrize("order", list(permutations(CALLS)), ids="-".join)
def test_no_method_has_to_be_called_before_another(order):
    combined = CombinedRehearsal(
        [rehearsal(number, kinds, False) for number, kinds in enumerate(OVERLAPPING)]
    )
    assert {name: CALLS[name](combined) for name in order} == {
        "manifests": ["drill-1", "drill-1", "drill-1-2", "drill-1-2", "drill-1"],
        "actuators": ["Extension", "Worker", "Extension-2", "Team", "ContainerRuntime"],
        "part_of": "part 1",
    }


def test_two_types_of_a_kind_are_explored_by_kind_or_by_name():
    found = CombinedRehearsal([rehearsal(0, [Extension]), rehearsal(1, [Extension])]).actuators()

    def selected(*kinds):
        wanted = Wanted(kinds=frozenset(kinds), operations=frozenset([Operation.DELETE]))
        return [name for name, _ in wanted.of(found)]

    assert selected() == selected("Extension") == ["Extension-0", "Extension-2-0"]
    assert selected("Extension-2-0") == ["Extension-2-0"]
    with pytest.raises(ConfigurationError, match="this rehearsal has Extension-0, Extension-2-0"):
        selected("Worker")


def test_a_bug_of_a_drill_takes_the_finalizer_of_the_actuator():
    """Each type of a kind may have its own (`--break I3`)."""
    [inner] = rehearsal(1, [Extension], False).actuators()
    head = manifest_of(Extension, "x", "ns")
    head["metadata"]["finalizers"] = [inner.finalizer, "example.org/other"]
    ctx = RecordingContext(head)
    with pytest.raises(RuntimeError):
        BREAKS["I3"].actuator(inner).force_delete(ctx, decode(Extension, head), Cluster())
    [patch] = ctx.bodies.values()
    assert patch == {"metadata": {"finalizers": ["example.org/other"]}}


def test_types_stay_as_they_were_where_each_kind_has_one_actuator():
    combined = CombinedRehearsal([rehearsal(1, [Extension], False), rehearsal(2, [Worker], False)])
    for item in combined.actuators():
        assert item is innermost(item)
        assert types_of(item, ["t"]) == ["t"]
    assert {manifest["spec"]["type"] for manifest in combined.manifests(SHOOT)} == {SHOOT.type}


def test_two_actuators_of_one_type_are_refused_with_the_remedy():
    combined = CombinedRehearsal([rehearsal(1, [Extension, Extension], suffixes=False)])
    with pytest.raises(ConfigurationError, match=r"two actuators for Extension .* type_suffixes"):
        combined.actuators()
    untyped = CombinedRehearsal([rehearsal(number, [Team], False) for number in range(2)])
    with pytest.raises(ConfigurationError, match="rehearse one after the other"):
        untyped.actuators()


def test_two_objects_of_one_kind_and_name_are_refused():
    parts = [rehearsal(number, [Worker], False, "same") for number in range(2)]
    combined = CombinedRehearsal(parts)
    with pytest.raises(ConfigurationError, match="part 0 and part 1 both create Worker same"):
        combined.manifests(SHOOT)


def test_an_object_of_a_type_that_only_another_kind_has_is_refused():
    combined = CombinedRehearsal([rehearsal(1, [Extension, Worker], False)])
    found = combined.actuators()
    one, other = combined.manifests(SHOOT)
    other["spec"]["type"] = "another"
    with pytest.raises(ConfigurationError, match=r"Worker 1-1: spec.type is 'another'"):
        check_types([one, other], found, SHOOT.type)
