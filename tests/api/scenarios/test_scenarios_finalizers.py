"""Other writers of the same list of finalizers: at once, by hand, or waiting for us."""

import threading

from actuator import ActuatorError, ExternalResource
from actuator.errors import NotFound
from generic.reconciler.orphans import ORPHANS, SHOOT_LABEL
from hack.faults import Effect, Fault
from tests.support.cluster.harness import FINALIZER, INFRASTRUCTURES, Script, eventually
from tests.support.objects.builders import cluster, infrastructure

OTHER = "example.org/other"
GOES = "example.org/goes"
OBJECTS = [f"infra-{number}" for number in range(10)]


def stuck(ctx, obj, cluster):
    raise ActuatorError("the cloud says no")


class OneVpc(Script):
    """Has one thing outside."""

    def external_resources(self, obj):
        yield ExternalResource(type="VPC", id=f"vpc-{obj.metadata.name}")


def ready(seed, *names):
    for name in names or ("infra",):
        seed.create(infrastructure(seed.namespace, seed.namespace, name))
    for name in names or ("infra",):
        eventually(lambda name=name: seed.is_ready(name))


def finalizers(seed):
    try:
        return seed.get()["metadata"].get("finalizers") or []
    except NotFound:
        return []


def test_scenario_06_two_controllers_that_remove_finalizers_at_once_lose_none(seed, start):
    ours = Script()
    theirs = Script()
    theirs.finalizer = OTHER
    for script in (ours, theirs):  # nobody waits to be asked: the other may have answered by then
        start(script, ignore_operation_annotation=True)
    ready(seed, *OBJECTS)
    for name in OBJECTS:
        eventually(lambda name=name: len(seed.get(name)["metadata"]["finalizers"]) == 2)
    for name in OBJECTS:
        seed.delete(name)
    for name in OBJECTS:
        eventually(lambda name=name: seed.is_gone(name))
    for script in (ours, theirs):
        for name in OBJECTS:
            assert script.operations(name).count("delete") == 1


class Overtaken:
    """A client whose release of a finalizer always comes right after that of another controller."""

    def __init__(self, client, overtake):
        self._client = client
        self._overtake = overtake

    def __getattr__(self, name):
        return getattr(self._client, name)

    def patch(self, resource, name, namespace, patch, *, subresource=""):
        if resource == INFRASTRUCTURES and not subresource:
            self._overtake()
        return self._client.patch(resource, name, namespace, patch, subresource=subresource)


def test_scenario_06_a_finalizer_removed_externally_meanwhile_is_not_restored(seed, start, script):
    def overtake():
        if GOES in finalizers(seed):
            seed.patch({"metadata": {"finalizers": [FINALIZER, OTHER]}})

    start(script, intercept=lambda client: Overtaken(client, overtake))
    ready(seed)
    seed.patch({"metadata": {"finalizers": [FINALIZER, GOES, OTHER]}})
    seed.delete()
    eventually(lambda: FINALIZER not in finalizers(seed))
    assert finalizers(seed) == [OTHER]
    seed.patch({"metadata": {"finalizers": None}})
    eventually(seed.is_gone)
    assert script.operations() == ["reconcile", "delete"]


def test_scenario_35_a_forced_object_stripped_by_hand_stays_recorded(seed, start, recorded):
    """The other ways to strip a finalizer by hand are in test_external_removal.py."""
    script = OneVpc(delete=stuck, force_delete=stuck)
    manager = start(script)
    ready(seed)
    seed.update_cluster(cluster(seed.namespace, force="true"))
    seed.delete()
    eventually(lambda: "force_delete" in script.operations())
    seed.patch({"metadata": {"finalizers": None}})
    tried = len(script.operations())
    eventually(lambda: len(script.operations()) > tried + 1)  # the second knows of the removal
    script.on.clear()  # not before: a try in between would end well, and let go in time
    eventually(lambda: seed.events("CleanedUpLate"))
    assert script.operations()[-1] == "force_delete"
    assert recorded(seed) == {("VPC", "vpc-infra", "FinalizerRemovedExternally")}
    found = seed.client.list(ORPHANS, label_selector=f"{SHOOT_LABEL}={seed.namespace}")
    assert all("state" not in (obj.get("status") or {}) for obj in found), "the VPC may be there"
    counted = manager.metrics.total("actuator_deletions_total", "outcome")
    assert counted["orphaned"] == counted["force_deleted"] == counted["deleted"] == 0


def test_scenario_35_an_object_stripped_by_hand_is_recorded_after_any_number_of_attempts(
    seed, behind, recorded, monkeypatch
):
    monkeypatch.setattr("generic.reconciler.deletion.late_cleanup._MAX_ATTEMPTS", 3)
    script = OneVpc(delete=stuck)
    stage = behind(script)
    ready(seed)
    seed.delete()
    eventually(lambda: seed.last_operation() == ("Delete", "Error"))
    refused = stage.proxy.inject(
        Fault(effect=Effect.ANSWER, verbs=["create"], resource="orphans.*", status=503)
    )
    seed.patch({"metadata": {"finalizers": None}})
    eventually(lambda: refused.hits > 6)
    assert recorded(seed) == set()
    refused.remove()
    eventually(lambda: recorded(seed) == {("VPC", "vpc-infra", "FinalizerRemovedExternally")})


def test_scenario_56_beside_a_controller_that_waits_to_be_last_we_finish_first_and_name_it(
    seed, start, script
):
    """We wait for no other finalizer, so that two controllers never wait for each other."""
    waits = threading.Event()

    def last():
        while not waits.wait(0.05):
            if finalizers(seed) == [OTHER]:
                named.append(seed.events("WaitsForOthers"))
                seed.patch({"metadata": {"finalizers": None}})
                return

    named = []
    start(script)
    ready(seed)
    seed.patch({"metadata": {"finalizers": [FINALIZER, OTHER]}})
    thread = threading.Thread(target=last, daemon=True)
    thread.start()
    seed.delete()
    eventually(seed.is_gone)
    waits.set()
    thread.join()
    (event,) = eventually(lambda: seed.events("WaitsForOthers"))
    assert OTHER in event["message"]
    assert script.operations() == ["reconcile", "delete"]
