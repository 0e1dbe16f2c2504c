"""The questions asked of a Cluster, and the harmless answers of one that is not there."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actuator.cluster import Cluster, ClusterState, parse_bool
from actuator.codec import decode

FORCE = "confirmation.gardener.cloud/force-deletion"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["metadata", "annotations", "status", "spec", FORCE, "lastOperation"]),
            inner,
            max_size=4,
        )
    ),
)


def cluster(shoot=None, **parts):
    meta = {"name": "shoot--p--n", "uid": "u"}
    return decode(Cluster, {"metadata": meta, "spec": {"shoot": shoot, **parts}})


def shoot(**parts):
    return cluster({"metadata": {"name": "n", "namespace": "garden-p"}, **parts})


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        *((text, True) for text in ("1", "t", "T", "TRUE", "true", "True")),
        *((text, False) for text in ("0", "f", "F", "FALSE", "false", "False")),
        *((text, None) for text in ("", "yes", "tRUE", " true", "on", "2")),
    ],
)
def test_booleans_are_those_of_go(text, answer):
    assert parse_bool(text) is answer


@given(JSON)
def test_no_property_of_a_cluster_raises_for_any_shoot(anything):
    asked = cluster(anything)
    names = [name for name, value in vars(Cluster).items() if isinstance(value, property)]
    assert len(names) > 15
    for name in names:
        getattr(asked, name)
    verdict = asked.verdict()
    assert verdict.state is not ClusterState.MISSING
    assert not (verdict.forced and verdict.bad_force_value is not None)


def test_a_missing_cluster_has_no_shoot_and_forces_nothing():
    nothing = Cluster()
    assert not nothing.exists
    assert nothing.verdict().state is ClusterState.MISSING
    assert not nothing.needs_force_deletion
    assert not nothing.is_failed
    assert nothing.shoot == nothing.seed == nothing.cloud_profile == {}


@pytest.mark.parametrize(
    ("wire", "state"),
    [
        pytest.param(None, ClusterState.WITHOUT_SHOOT, id="no shoot"),
        pytest.param("text", ClusterState.UNREADABLE, id="a shoot that is no object"),
        pytest.param([], ClusterState.UNREADABLE, id="a shoot that is a list"),
        pytest.param({}, ClusterState.OK, id="an empty shoot is a shoot"),
    ],
)
def test_each_defect_of_a_cluster_has_a_state(wire, state):
    assert cluster(wire).verdict().state is state


def test_hibernation_depends_on_spec_and_status():
    wanted, both, waking = (
        shoot(spec={"hibernation": {"enabled": enabled}}, status={"hibernated": is_so})
        for enabled, is_so in ((True, False), (True, True), (False, True))
    )
    assert (wanted.is_hibernated, both.is_hibernated, waking.is_hibernated) == (False, True, False)
    assert wanted.is_hibernating_or_waking_up
    assert waking.is_hibernating_or_waking_up
    assert not both.is_hibernating_or_waking_up
    assert (wanted.replicas(3), waking.replicas(3)) == (0, 3)
    assert both.control_plane_replicas(2, scaled_down=True) == 0
    assert both.control_plane_replicas(2, scaled_down=False) == 2


def test_networks_are_those_of_the_spec_then_others_of_the_status():
    asked = shoot(
        spec={"networking": {"pods": "10.0.0.0/16"}},
        status={"networking": {"pods": ["10.0.0.0/16", "fd00::/64"], "services": ["10.1.0.0/16"]}},
    )
    assert asked.pod_cidrs == ["10.0.0.0/16", "fd00::/64"]
    assert asked.service_cidrs == ["10.1.0.0/16"]


@pytest.mark.parametrize(
    ("dns", "unmanaged"),
    [
        (None, True),
        ({"domain": "a.example"}, False),
        ({"providers": [{"type": "unmanaged"}]}, True),
        ({"providers": [{"type": "aws"}]}, False),
    ],
)
def test_dns_is_unmanaged_where_gardener_has_nothing_to_do(dns, unmanaged):
    assert shoot(spec={"dns": dns}).has_unmanaged_dns is unmanaged


def test_a_shoot_is_being_created_until_it_was_reconciled_once():
    assert shoot().is_being_created
    assert shoot(status={"lastOperation": {"type": "Create"}}).is_being_created
    assert not shoot(status={"lastOperation": {"type": "Reconcile"}}).is_being_created
