"""Machine state in status.state of a Worker: it is read, or refused by its size."""

import base64
import gzip
import json
import tracemalloc

import pytest

from actuator.codec import decode
from actuator.errors import ConfigurationError
from actuator.v1alpha1 import Cluster, Worker
from generic.library.worker.state import machine_state

AWAKE = Cluster()


def worker(content):
    packed = base64.b64encode(gzip.compress(content)).decode()
    meta = {"name": "worker", "namespace": "ns"}
    return decode(Worker, {"metadata": meta, "status": {"state": {"state": packed}}})


def test_compressed_state_of_many_mebibytes_is_read():
    machines = [{"metadata": {"name": "m" * 1_000}} for _ in range(8_000)]
    state = {"machineDeployments": {"pool": {"replicas": 2, "machines": machines}}}
    read = machine_state(worker(json.dumps(state).encode()), AWAKE)
    assert read["pool"].machines == machines


def test_state_that_is_too_large_decompressed_is_refused_and_never_in_memory():
    bomb = worker(b" " * (256 << 20))
    tracemalloc.start()
    try:
        with pytest.raises(ConfigurationError) as caught:
            machine_state(bomb, AWAKE)
        _kept, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 64 << 20
    text = str(caught.value)
    assert "Worker ns/worker: status.state" in text
    assert "larger than 16 MiB decompressed; set it to {} to replace all machines" in text


@pytest.mark.parametrize("content", [b"[]", b"{", b""])
def test_state_that_is_no_object_is_an_error(content):
    with pytest.raises(ConfigurationError, match=r"Worker ns/worker: status\.state"):
        machine_state(worker(content), AWAKE)


def without_state(pools, status):
    meta = {"name": "worker", "namespace": "ns"}
    return decode(Worker, {"metadata": meta, "spec": {"pools": pools}, "status": status})


def test_a_restoration_without_state_is_an_error_that_says_what_to_do():
    with pytest.raises(ConfigurationError) as caught:
        machine_state(without_state([{"name": "pool"}], {}), AWAKE)
    assert caught.value.message == (
        "Worker ns/worker: status.state: expected the state of the machines to restore, got none; "
        "gardenlet copies it from the ShootState, so check the ShootState; if the shoot had no "
        "machines before the migration, or to replace all of them, set status.state to {}"
    )


@pytest.mark.parametrize(
    ("pools", "status", "hibernation"),
    [
        pytest.param([], {}, False, id="no pools"),
        pytest.param([{"name": "pool"}], {"state": {}}, False, id="an empty state"),
        pytest.param([{"name": "pool"}], {}, True, id="a hibernated shoot"),
    ],
)
def test_there_may_be_nothing_to_restore(pools, status, hibernation):
    """gardenlet writes no state if the shoot was created hibernated."""
    shoot = {"spec": {"hibernation": {"enabled": hibernation}}}
    cluster = decode(Cluster, {"spec": {"shoot": shoot}})
    assert machine_state(without_state(pools, status), cluster) == {}
