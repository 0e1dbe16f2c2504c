"""Pools without a cluster: their hashes, which have to be Gardener's own, and shares of zones."""

import hashlib
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubernetes.utils.quantity import parse_quantity

from actuator.codec import decode
from actuator.errors import ConfigurationError
from actuator.v1alpha1 import Cluster, WorkerPool
from generic.worker import hash_of, pool_hash, share_of_zone
from generic.worker.poolhash import in_place_hash
from generic.worker.quantities import total

ROTATION = {
    "certificateAuthorities": {"lastInitiationTime": "2026-01-01T00:00:00Z"},
    "serviceAccountKey": {
        "lastInitiationTime": "2026-02-01T00:00:00Z",
        "pendingWorkersRollouts": [{"name": "p", "lastInitiationTime": "2025-01-01T00:00:00Z"}],
    },
}
MOMENTS = ["2026-01-01 00:00:00 +0000 UTC", "2025-01-01 00:00:00 +0000 UTC"]


def sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()


def pool(**more):
    given = {"name": "p", "machineType": "small", "machineImage": {"name": "os", "version": "1"}}
    return decode(WorkerPool, given | more)


def test_the_pool_hash_is_that_of_gardeners_library():
    assert hash_of(["a", "b"]) == sha256(sha256("a") + sha256("b"))[:5]
    assert pool_hash(pool(nodeAgentSecretName="agent"), Cluster()) == hash_of(["agent"])
    named = pool_hash(
        pool(nodeAgentSecretName="agent"),
        Cluster(),
        additional=["ignored"],
        additional_with_node_agent=["x"],
    )
    assert named == hash_of(["agent", "x"])


def test_without_a_node_agent_the_pool_hash_is_of_all_that_makes_a_machine():
    spec = {
        "kubernetes": {"version": "1.31.2"},
        "provider": {"workers": [{"name": "p", "cri": {"name": "containerd"}}]},
        "systemComponents": {"nodeLocalDNS": {"enabled": True}},
    }
    status = {"credentials": {"rotation": ROTATION}}
    cluster = decode(Cluster, {"spec": {"shoot": {"spec": spec, "status": status}}})
    volume = {"type": "fast", "size": "50Gi"}
    found = pool_hash(
        pool(volume=volume, providerConfig={"b": "<", "a": 1}), cluster, additional=["more"]
    )
    config = '{"a":1,"b":"\\u003c"}'
    machine = ["1.31", "small", "os1", "50Gi", "fast", config, "more"]
    assert found == hash_of([*machine, "containerd", *MOMENTS, "node-local-dns"])


def test_a_pool_without_a_kubernetes_version_is_named():
    with pytest.raises(ConfigurationError, match="pool p: '' is no Kubernetes version"):
        pool_hash(pool(), Cluster())


def test_zones_share_a_number_and_the_first_get_what_is_left():
    assert [share_of_zone(5, index, 3, 5) for index in range(3)] == [2, 2, 1]
    assert [share_of_zone("10%", index, 2, 4) for index in range(2)] == ["10%", "10%"]
    assert [share_of_zone("25%", index, 2, 3) for index in range(2)] == ["34%", "17%"]


@pytest.mark.parametrize(
    ("version", "found"),
    [
        ("1.31.0", "04863233bf6b9bb0"),
        ("1.32.0", "89e7871a154fd3d0"),
        ("1.33.0", "e1d8805194ff0b5e"),
    ],
)
def test_the_hash_of_an_update_in_place_is_gardeners(version, found):
    """The figures are those of Gardener's own tests of its generic Worker actuator."""
    assert in_place_hash(decode(WorkerPool, {"kubernetesVersion": version}), Cluster()) == found


def test_the_hash_of_an_update_in_place_is_of_what_such_an_update_changes():
    status = {"credentials": {"rotation": ROTATION}}
    cluster = decode(Cluster, {"spec": {"shoot": {"status": status}}})
    kubelet = {
        "kubeReserved": {"cpu": "80m", "memory": "1Gi", "pid": "15k"},
        "systemReserved": {"cpu": "20m", "memory": "512Mi"},
        "evictionHard": {"memoryAvailable": "100Mi", "nodeFSAvailable": "5%"},
        "cpuManagerPolicy": "static",
        "maxPods": 110,
    }
    given = pool(kubernetesVersion="1.31.2", kubeletConfig=kubelet, machineType="other")
    kubelet_items = ["100m-1536Mi-15k-<nil>", "--100Mi-5%-", "static"]
    expected = hash_of(["1.31", "1", *MOMENTS, *kubelet_items], 16)
    assert in_place_hash(given, cluster) == expected


@pytest.mark.parametrize(
    ("kubelet", "words"),
    [
        ({"kubeReserved": {"cpu": "much"}}, "kubeletConfig: 'much' is no quantity"),
        ({"kubeReserved": {"cpu": "Infinity"}}, "'Infinity' is no quantity"),
        ({"kubeReserved": {"cpu": "1e999999999"}}, "is no quantity"),
        ({"kubeReserved": {"cpu": ["1"]}}, "is no quantity"),
        ({"kubeReserved": "1"}, "kubeletConfig.kubeReserved is no object"),
        ({"systemReserved": ["1"]}, "kubeletConfig.systemReserved is no object"),
        ({"evictionHard": 5}, "kubeletConfig.evictionHard is no object"),
    ],
)
def test_a_kubelet_configuration_that_is_none_is_named(kubelet, words):
    given = pool(kubernetesVersion="1.31.2", kubeletConfig=kubelet)
    with pytest.raises(ConfigurationError, match=rf"pool p: .*{words}"):
        in_place_hash(given, Cluster())


@pytest.mark.parametrize("version", ["1", "1.", "1.x.3", "abc.def", "1.31x"])
def test_a_version_that_is_none_is_named(version):
    with pytest.raises(ConfigurationError, match="is no Kubernetes version"):
        in_place_hash(pool(kubernetesVersion=version), Cluster())


@pytest.mark.parametrize(
    ("quantities", "written"),
    [
        ([None, None], "<nil>"),
        (["1024Mi", None], "1Gi"),
        ([2000, None], "2k"),
        (["0Gi"], "0"),
        (["0Gi", "100.25m"], "100250u"),
        (["10Gi", "1000.25Ki"], "10738442496"),
        (["250Gi", "1024m"], "268435456001024m"),
        (["15.5m", "20.5Ki"], "20992015500u"),
        (["1Mi", "0.5u"], "1048576000000500n"),
        (["1500.5Ti", "12345Gi"], "1548857Gi"),
    ],
)
def test_quantities_are_added_and_written_as_go_does(quantities, written):
    """Each as Go's `resource.Quantity` has written it."""
    assert total(quantities) == written


NUMBERS = st.integers(0, 10**6).map(str) | st.decimals(0, 5000, places=2).map(str)
QUANTITIES = st.builds(str.__add__, NUMBERS, st.sampled_from(["", "m", "k", "M", "Ki", "Mi", "Gi"]))


@given(QUANTITIES, QUANTITIES)
def test_a_sum_of_quantities_is_neither_more_nor_less(one, other):
    there = total([one, other])
    assert parse_quantity(there) == parse_quantity(one) + parse_quantity(other)
    assert total([there]) == there or there.isdecimal(), "a format is lost where no unit shows it"
    assert parse_quantity(total([other, one])) == Decimal(parse_quantity(there))
