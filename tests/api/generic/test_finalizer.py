"""`finalizers.finalizer`: the four states, for anyone who writes a controller by hand."""

import pytest

from generic import finalizer
from generic.kube.finalizers import Stale
from tests.support.cluster.harness import INFRASTRUCTURES, eventually
from tests.support.objects.builders import infrastructure

OURS = "example.org/ours"
FOREIGN = "example.org/foreign"


@pytest.fixture
def run(admin, seed):
    """Runs the protocol for the object as it is now; returns the calls with their arguments."""
    calls: list[tuple[str, list[str] | None]] = []

    def step(obj=None, apply=None, cleanup=None):
        calls.clear()
        finalizer(
            admin,
            INFRASTRUCTURES,
            obj or seed.get(),
            OURS,
            apply=apply or (lambda o: calls.append(("apply", o["metadata"].get("finalizers")))),
            cleanup=cleanup or (lambda o: calls.append(("cleanup", o["metadata"]["finalizers"]))),
        )
        return list(calls)

    return step


def test_a_life_in_four_states(seed, run):
    seed.create(infrastructure(seed.namespace, "by-hand", finalizers=[FOREIGN]))
    assert run() == [("apply", [FOREIGN, OURS])], "the finalizer is on before the first apply"
    assert run() == [("apply", [FOREIGN, OURS])]
    seed.delete()
    assert run() == [("cleanup", [FOREIGN, OURS])]
    after = seed.get()["metadata"]
    assert after["finalizers"] == [FOREIGN]
    assert after["managedFields"], "the object is not deleted yet, and others may read them"
    assert run() == [], "deleting, and no longer ours"
    seed.patch([{"op": "remove", "path": "/metadata/finalizers"}])
    eventually(seed.is_gone)


def test_a_cleanup_that_fails_keeps_the_finalizer(seed, run):
    seed.create(infrastructure(seed.namespace, "by-hand"))
    run()
    seed.delete()
    with pytest.raises(ZeroDivisionError):
        run(cleanup=lambda _o: 1 / 0)
    assert seed.get()["metadata"]["finalizers"] == [OURS]
    run()
    assert seed.is_gone()


def test_a_stale_object_costs_an_error_and_never_a_foreign_finalizer(seed, run):
    seed.create(infrastructure(seed.namespace, "by-hand"))
    run()
    stale = seed.get()
    seed.patch([{"op": "add", "path": "/metadata/finalizers/-", "value": FOREIGN}])
    seed.delete()
    stale["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    with pytest.raises(Stale):
        run(stale)
    assert seed.get()["metadata"]["finalizers"] == [OURS, FOREIGN]
    run()
    seed.patch([{"op": "remove", "path": "/metadata/finalizers"}])


def test_gone_meanwhile_is_success_and_another_object_of_the_name_is_left_alone(seed, run):
    seed.create(infrastructure(seed.namespace, "by-hand"))
    run()
    seed.delete()
    before = seed.get()

    def remove(_obj):
        seed.patch([{"op": "remove", "path": "/metadata/finalizers"}])
        seed.create(infrastructure(seed.namespace, "by-hand", finalizers=[OURS]))

    run(before, cleanup=remove)
    assert seed.get()["metadata"]["finalizers"] == [OURS]
    seed.patch([{"op": "remove", "path": "/metadata/finalizers"}])
