"""Extension types of combined rehearsals: each object has one actuator, whatever is combined."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actuator import Actuator
from actuator.errors import ConfigurationError
from actuator.interface import WrappedActuator, innermost, kind_of
from actuator.v1alpha1 import ContainerRuntime, Extension, Worker
from extensions.relations.kinds import Team
from generic.testing.drill.inventory import check_types
from generic.testing.drill.world import kinds_of
from generic.testing.rehearsal import CombinedRehearsal, Rehearsal, RehearsedShoot, types_of

KINDS = (Extension, ContainerRuntime, Worker)
SHOOT = RehearsedShoot(technical_id="shoot--a--b", type="drill-1", labels={})


def actuator(cls):
    """A new class of an actuator for a kind."""

    class One(Actuator[cls]):
        finalizer = f"extensions.gardener.cloud/{cls.__name__.lower()}"

        def reconcile(self, ctx, obj, cluster): ...
        def delete(self, ctx, obj, cluster): ...

    return One


def rehearsal(number, kinds, suffixes=True, name=""):
    """A rehearsal with an actuator for each of the kinds, which may repeat."""
    classes = [actuator(cls) for cls in kinds]
    own = {cls: f"-{index}" for index, cls in enumerate(classes)} if suffixes else {}

    class Part(Rehearsal):
        title, region, scenarios = f"part {number}", "r", {"rain": "It rains."}
        type_suffixes = own

        def start(self, directory): ...
        def break_outside(self, scenario): ...
        def left_outside(self):
            return ()

        def actuators(self):
            return [cls() for cls in classes]

        def manifests(self, shoot):
            return [
                {
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
    found = [WrappedActuator(one) for one in combined.actuators()]
    manifests = combined.manifests(SHOOT)
    check_types(manifests, found, SHOOT.type)
    served = [
        (kind_of(one).name, type) for one in found for type in types_of(one, [SHOOT.type, "x"])
    ]
    assert len(set(served)) == len(served) == 2 * len(found)
    wanted = [(one["kind"], one["spec"]["type"]) for one in manifests]
    assert sorted(wanted) == sorted(one for one in served if one[1].startswith(SHOOT.type))
    assert len({kind.name for kind in kinds_of(found)}) == len(kinds_of(found))


def test_types_stay_as_they_were_where_each_kind_has_one_actuator():
    combined = CombinedRehearsal([rehearsal(1, [Extension], False), rehearsal(2, [Worker], False)])
    for one in combined.actuators():
        assert one is innermost(one)
        assert types_of(one, ["t"]) == ["t"]
    assert {one["spec"]["type"] for one in combined.manifests(SHOOT)} == {SHOOT.type}


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
    combined.actuators()
    with pytest.raises(ConfigurationError, match="part 0 and part 1 both create Worker same"):
        combined.manifests(SHOOT)


def test_an_object_of_a_type_that_only_another_kind_has_is_refused():
    combined = CombinedRehearsal([rehearsal(1, [Extension, Worker], False)])
    found, (one, other) = combined.actuators(), combined.manifests(SHOOT)
    other["spec"]["type"] = "another"
    with pytest.raises(ConfigurationError, match=r"Worker 1-1: spec.type is 'another'"):
        check_types([one, other], found, SHOOT.type)
