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


@pytest.mark.parametrize("content", [b"[]", b"{", b'"null"'])
def test_state_that_is_no_object_is_an_error(content):
    with pytest.raises(ConfigurationError, match=r"Worker ns/worker: status\.state"):
        machine_state(worker(content), AWAKE)


def without_state(pools, status):
    meta = {"name": "worker", "namespace": "ns"}
    return decode(Worker, {"metadata": meta, "spec": {"pools": pools}, "status": status})


def test_a_restoration_without_state_is_an_error_with_its_remedies():
    with pytest.raises(ConfigurationError) as caught:
        machine_state(without_state([{"name": "pool"}], {}), AWAKE)
    assert caught.value.message == (
        "Worker ns/worker: status.state: expected the state of the machines to restore, got none; "
        "gardenlet copies it from the ShootState, so check the ShootState; if the shoot had no "
        "machines before the migration, or to replace all of them, set status.state to {}"
    )


def packed(text):
    return {"state": base64.b64encode(gzip.compress(text.encode())).decode()}


POOL = {"name": "pool"}
NO_MACHINES = {
    "null": None,
    "null inside": {"state": None},
    "an empty text": {"state": ""},
    "a compressed null, of a seed without machine kinds": packed("null"),
    "a compressed empty object": packed("{}"),
    "nothing, compressed": packed(""),
    "no deployments": {"machineDeployments": {}},
    "null deployments": {"machineDeployments": None},
    "compressed null deployments": packed('{"machineDeployments": null}'),
    "a null deployment": {"machineDeployments": {"pool": None}},
    "null sets": {"machineDeployments": {"pool": {"machineSets": None, "machines": None}}},
    "a deployment without sets": {"machineDeployments": {"pool": {"replicas": 2}}},
}


def hibernated(enabled=True):
    return decode(Cluster, {"spec": {"shoot": {"spec": {"hibernation": {"enabled": enabled}}}}})


@pytest.mark.parametrize("form", NO_MACHINES)
def test_a_state_without_machines_is_read_and_never_replaces_those_of_a_running_shoot(form):
    """Differs from Gardener's library, which continues and creates new machines.

    Its documentation ("Control Plane Migration", "Worker State") promises machines: "On
    restoration, Gardener copies the machine state back to the Worker.status.state field for the
    extension to pick it up and restore the relevant machine.sapcloud.io/v1alpha1 resources."
    """
    status = {"state": NO_MACHINES[form]}
    with pytest.raises(ConfigurationError, match=r"got none; .*; if .*, set status.state to {}$"):
        machine_state(without_state([POOL], status), AWAKE)
    for pools, cluster in (([POOL], hibernated()), ([], AWAKE)):
        found = machine_state(without_state(pools, status), cluster)
        assert all(not item.machine_sets for item in found.values())


def test_null_fields_of_a_state_with_machines_are_absent_as_in_go():
    one = {"replicas": None, "machineSets": [{"metadata": {"name": "s"}}], "machines": None}
    for state in (
        {"machineDeployments": {"pool": one, "other": None}},
        packed(json.dumps({"machineDeployments": {"pool": one, "other": None}})),
    ):
        [(name, read)] = machine_state(without_state([POOL], {"state": state}), AWAKE).items()
        assert (name, read.replicas, read.machines) == ("pool", 0, [])
        assert read.machine_sets == one["machineSets"]


def test_a_pool_that_was_scaled_to_zero_is_restored():
    state = {"machineDeployments": {"pool": {"machineSets": [{"metadata": {"name": "s"}}]}}}
    assert machine_state(without_state([POOL], {"state": state}), AWAKE)["pool"].replicas == 0


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
    assert machine_state(without_state(pools, status), hibernated(hibernation)) == {}
