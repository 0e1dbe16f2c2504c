"""Which machines of a pool with manual in-place updates are waited for: a table, no cluster."""

import pytest

from actuator.codec import decode
from actuator.v1alpha1 import Cluster, Worker
from generic.library.machines import Machine, MachineDeployment, MachineSet
from generic.library.worker import in_zone
from generic.library.worker.inplace import missing_in_place, note_in_place_updates
from generic.library.worker.objects import MachineObjects

NAME = "t-p-z1"
POOL = {"name": "p", "updateStrategy": "ManualInPlaceUpdate", "kubernetesVersion": "1.31.0"}
HASH = "04863233bf6b9bb0"
"""Of version 1.31.0: a figure of Gardener's tests of its generic Worker actuator."""


def machine_set(name, hash, deployment=NAME):
    template = {"spec": {"class": {"name": f"{deployment}-{hash}"}}}
    meta = {"name": name, "labels": {"name": deployment}}
    return decode(MachineSet, {"metadata": meta, "spec": {"template": template}})


def machine(owner, reason=""):
    condition = {"type": "InPlaceUpdate", "status": "True", "reason": reason}
    reference = {"apiVersion": "a", "kind": "MachineSet", "name": owner, "uid": "u"}
    return decode(
        Machine,
        {
            "metadata": {"name": "m", "ownerReferences": [reference]},
            "status": {"conditions": [condition] if reason else []},
        },
    )


def deployment(replicas, updated):
    meta = {"name": NAME, "labels": {"worker.gardener.cloud/pool": "p"}}
    status = {"replicas": replicas, "updatedReplicas": updated}
    return decode(MachineDeployment, {"metadata": meta, "status": status})


def found(machines, replicas, updated):
    sets = [
        machine_set("new", "new"),
        machine_set("old", "old"),
        machine_set("elsewhere", "old", "t-other-z1"),
    ]
    return MachineObjects([deployment(replicas, updated)], sets, machines, [])


def worker(status=None):
    meta = {"name": "w", "namespace": "t"}
    given = {"metadata": meta, "spec": {"pools": [POOL]}, "status": status or {}}
    return decode(Worker, given)


CLUSTER = decode(Cluster, {"spec": {"shoot": {"status": {"technicalID": "t"}}}})
CANDIDATE = machine("old", "CandidateForUpdate")
NEW = machine("new", "UpdateSuccessful")
WAITS = "1 selected for an in-place update: m"


@pytest.mark.parametrize(
    ("machines", "replicas", "updated", "missing"),
    [
        ([machine("old"), CANDIDATE], 2, 0, ""),
        ([NEW, CANDIDATE], 2, 1, ""),
        ([NEW, NEW], 2, 2, ""),
        ([CANDIDATE, machine("old", "SelectedForUpdate")], 2, 0, f"{WAITS} (SelectedForUpdate)"),
        ([machine("old", "UpdateFailed")], 1, 0, f"{WAITS} (UpdateFailed)"),
        ([NEW, machine("elsewhere", "SelectedForUpdate")], 1, 1, ""),
        ([NEW, NEW], 2, 1, "machine-controller-manager to count 1 updated machines"),
    ],
)
def test_selected_machines_are_waited_for_and_candidates_are_not(
    machines, replicas, updated, missing
):
    one = worker()
    group = in_zone(
        one,
        one.spec.pools[0],
        CLUSTER,
        0,
        hash="new",
        provider="test",
        provider_spec={},
        secret_data={},
    )
    objects = found(machines, replicas, updated)
    assert missing_in_place(group, objects.deployments[0], objects) == missing


@pytest.mark.parametrize(
    ("updated", "before", "after"),
    [
        (2, {}, {"p": HASH}),
        (2, {"p": "earlier", "gone": "x"}, {"p": HASH}),
        (1, {"p": "earlier"}, {"p": "earlier"}),
        (1, {}, {}),
    ],
)
def test_the_status_names_a_hash_only_after_all_machines_reached_it(updated, before, after):
    """The cases of Gardener's updateWorkerStatusInPlaceUpdateWorkerPoolHash."""
    one = worker({"inPlaceUpdates": {"workerPoolToHashMap": before}} if before else None)
    note_in_place_updates(one, CLUSTER, found([], 2, updated))
    updates = one.status.in_place_updates
    assert (updates.worker_pool_to_hash_map if updates else {}) == after
