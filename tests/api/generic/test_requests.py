"""Requests that meet a failed operation: run at the API server as in the model of requests."""

import json
import threading
from contextlib import contextmanager, suppress
from itertools import pairwise

import pytest

from actuator import ActuatorError, RequeueAfter
from actuator.errors import ApiError
from actuator.interface import Resource
from actuator.meta import Object
from actuator.v1alpha1 import BackupBucket, BackupEntry, Bastion, Infrastructure
from generic.kube.client import path_of
from tests.support.cluster.harness import OPERATION, PATIENCE, Script, eventually
from tests.support.drills.request_model import FINAL, World, admits, shown
from tests.support.objects.builders import cluster
from tests.support.objects.contract import manifest, secret

SECRETS = Resource("v1", "secrets")
OPERATIONS = ("reconcile", "restore", "migrate")
KINDS: list[type[Object]] = [Infrastructure, BackupEntry, BackupBucket, Bastion]
WATCHED = [cls for cls in KINDS if cls.KIND.outcomes_are_watched]


class Moody:
    """Fails on request, and then is not called again before a request."""

    def __init__(self, cls):
        self.fails = False
        does = dict.fromkeys(OPERATIONS, self._do)
        self.script = Script(cls, **does)

    def _do(self, ctx, obj, cluster):
        if self.fails:
            raise RequeueAfter(3600, cause=ActuatorError("no"))


@contextmanager
def watching(seed):
    """The states of the object as a watch delivers them, from its creation on."""
    states = []
    begun = threading.Event()

    def follow():
        query = {"watch": "true", "fieldSelector": f"metadata.name={seed.name}"}
        path = path_of(seed.resource, seed.where)
        with suppress(ApiError), seed.client.stream(path, query, read_timeout=PATIENCE) as lines:
            begun.set()
            for line in lines:
                event = json.loads(line)
                if "end" in (event["object"]["metadata"].get("labels") or {}):
                    return
                states.append(event["object"])

    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    assert begun.wait(PATIENCE)
    yield states
    seed.patch({"metadata": {"labels": {"end": "yes"}}})
    thread.join(PATIENCE)


def create(seed, **annotations):
    made = manifest(type_of(seed), seed.namespace, seed.name, annotations=annotations)
    if "secretRef" in made["spec"]:
        seed.client.create(SECRETS, secret(seed.namespace))
    seed.create(made)


def type_of(seed):
    return next(cls for cls in KINDS if cls.KIND is seed.kind)


def different(states):
    """The states, without repetitions of one in a row."""
    return [state for i, state in enumerate(states) if i == 0 or state != states[i - 1]]


def shown_of(states):
    return different([shown(state) for state in states])


def is_quiet(seed):
    return OPERATION not in seed.get()["metadata"]["annotations"] and (
        seed.last_operation()[1] == "Succeeded"
    )


@pytest.mark.parametrize("cls", KINDS, ids=lambda cls: cls.KIND.name)
@pytest.mark.parametrize("second", OPERATIONS)
@pytest.mark.parametrize("first", OPERATIONS)
def test_a_request_after_a_failed_one_runs_as_in_the_model(seed, start, cls, first, second):
    """The states of the object, and their order, are those of the model, whose laws are tested."""
    moody = Moody(cls)
    seed = seed.of(cls, "infra" if cls.KIND.namespaced else f"{seed.namespace}--uid")
    start(moody.script)._running.wiring.timers.stop()  # no call is so slow that it is published
    model = World(cls.KIND)
    with watching(seed) as states:
        create(seed)
        model.attempt("success")
        eventually(seed.is_ready)
        moody.fails = True
        seed.ask(first)
        model.ask(first, timestamped=True)
        model.attempt("error")
        eventually(lambda: seed.last_operation()[1] == "Error")
        moody.fails = False
        seed.ask(second)
        model.ask(second, timestamped=True)
        model.settle()
        eventually(lambda: states and shown(states[-1]) == model.states[-1])
        eventually(lambda: shown_of(states) == different(model.states))
    assert model.lost_request() == ""
    if cls in WATCHED:
        seen = [new for old, new in pairwise(states) if admits(old, new)]
        outcomes = {item[:2] for item in shown_of(states) if item[1] in FINAL}
        assert {shown(item)[:2] for item in seen} == outcomes


def test_a_reconcile_requested_after_a_failed_restore_is_run(seed, start):
    moody = Moody(Infrastructure)
    start(moody.script)
    create(seed)
    eventually(seed.is_ready)
    moody.fails = True
    seed.ask("restore")
    eventually(lambda: seed.last_operation() == ("Restore", "Error"))
    moody.fails = False
    seed.ask("reconcile")
    eventually(lambda: is_quiet(seed))
    eventually(lambda: moody.script.operations()[-2:] == ["restore", "reconcile"])


@pytest.mark.parametrize("cls", WATCHED, ids=lambda cls: cls.KIND.name)
def test_a_second_request_costs_one_request_more_where_gardenlet_watches(seed, start, cls):
    seed = seed.of(cls, "infra" if cls.KIND.namespaced else f"{seed.namespace}--uid")
    start(Script(cls))._running.wiring.timers.stop()
    with watching(seed) as states:
        create(seed)
        eventually(seed.is_ready)
        seed.ask("reconcile")
        eventually(lambda: seed.is_ready() and seed.last_operation()[0] == "Reconcile")
        wanted = [
            ("", "", ""),
            ("Create", "Succeeded", ""),
            ("Create", "Succeeded", "reconcile"),
            ("Reconcile", "Processing", "reconcile"),
            ("Reconcile", "Processing", ""),
            ("Reconcile", "Succeeded", ""),
        ]
        eventually(lambda: shown_of(states) == wanted)


def test_an_error_before_the_call_is_seen_where_gardenlet_watches(seed, start):
    """A Bastion whose Cluster is missing fails before the actuator is called."""
    seed = seed.of(Bastion, "infra")
    start(Script(Bastion))
    create(seed)
    eventually(seed.is_ready)
    seed.delete_cluster()
    with watching(seed) as states:
        seed.ask("reconcile")
        eventually(lambda: seed.last_operation() == ("Reconcile", "Error"))
        eventually(lambda: any(shown(state)[1] == "Error" for state in states))
    seen = [new for old, new in pairwise(states) if admits(old, new)]
    assert [shown(item)[1] for item in seen][:1] == ["Error"]
    seed.create(cluster(seed.namespace))
    eventually(seed.is_ready)
