"""Machine state in status.state of a Worker: it is read, or refused by its size."""

import base64
import gzip
import json
import tracemalloc

import pytest

from actuator.codec import decode
from actuator.errors import ConfigurationError
from actuator.v1alpha1 import Worker
from generic.library.worker.state import machine_state


def worker(content):
    packed = base64.b64encode(gzip.compress(content)).decode()
    meta = {"name": "worker", "namespace": "ns"}
    return decode(Worker, {"metadata": meta, "status": {"state": {"state": packed}}})


def test_compressed_state_of_many_mebibytes_is_read():
    machines = [{"metadata": {"name": "m" * 1_000}} for _ in range(8_000)]
    state = {"machineDeployments": {"pool": {"replicas": 2, "machines": machines}}}
    read = machine_state(worker(json.dumps(state).encode()))
    assert read["pool"].machines == machines


def test_state_that_is_too_large_decompressed_is_refused_and_never_in_memory():
    bomb = worker(b" " * (256 << 20))
    tracemalloc.start()
    try:
        with pytest.raises(ConfigurationError) as caught:
            machine_state(bomb)
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
        machine_state(worker(content))


def without_state(pools, status):
    meta = {"name": "worker", "namespace": "ns"}
    return decode(Worker, {"metadata": meta, "spec": {"pools": pools}, "status": status})


def test_a_restoration_without_state_is_an_error_that_says_what_to_do():
    with pytest.raises(ConfigurationError) as caught:
        machine_state(without_state([{"name": "pool"}], {}))
    assert caught.value.message == (
        "Worker ns/worker: status.state: expected the state of the machines to restore, got none; "
        "gardenlet copies it from the ShootState, so check that one, or set it to {} to replace "
        "all machines"
    )


@pytest.mark.parametrize(("pools", "status"), [([], {}), ([{"name": "pool"}], {"state": {}})])
def test_without_pools_or_with_an_empty_state_there_is_nothing_to_restore(pools, status):
    assert machine_state(without_state(pools, status)) == {}
