"""Bounded force deletion: whatever hangs or fails, the object is released and recorded."""

import threading

import pytest

from actuator import ActuatorError, ExternalResource, Resource, SeedObjects
from actuator.codec import decode
from actuator.errors import Forbidden, Unavailable
from generic.kube.clock import SystemClock
from generic.library.machines import MACHINE_KINDS, MACHINES
from generic.reconciler.orphans import ORPHANS, SHOOT_LABEL, Orphan
from generic.testing.seed import install_crds
from tests.support.cluster.harness import FINALIZER, Script, eventually
from tests.support.objects.builders import cluster, infrastructure

CONFIGMAPS = Resource("v1", "configmaps")


def specs(seed):
    """The recorded orphans of the namespace."""
    found = seed.client.list(ORPHANS, label_selector=f"{SHOOT_LABEL}={seed.namespace}")
    return [decode(Orphan, orphan).spec for orphan in found]


def force(seed, name="infra"):
    seed.update_cluster(cluster(seed.namespace, force="true"))
    seed.delete(name)


def never(gate):
    def hang(*_args):
        gate.wait(200)

    return hang


def fails(*_args):
    raise ActuatorError("the cloud says no")


class Later(SystemClock):
    """The monotonic clock, moved forward by a test; the time of day goes on as it does."""

    ahead = 0.0

    def monotonic(self):
        return super().monotonic() + self.ahead


class OneVpc(Script):
    """Leaves one thing outside."""

    def external_resources(self, obj):
        yield ExternalResource(type="VPC", id="vpc-1")


def ready(seed, start, actuator, names=("infra",), **options):
    manager = start(actuator, force_delete_budget=options.pop("budget", 1.0), **options)
    for name in names:
        seed.create(infrastructure(seed.namespace, seed.namespace, name=name))
    eventually(lambda: all(seed.is_ready(name) for name in names))
    return manager


def test_a_force_deletion_that_never_returns_ends_with_its_budget_and_is_recorded(
    seed, start, gate
):
    ready(seed, start, OneVpc(force_delete=never(gate)))
    force(seed)
    eventually(seed.is_gone)
    (spec,) = specs(seed)
    assert (spec.resource_type, spec.id, spec.reason) == ("VPC", "vpc-1", "BudgetExceeded")


def test_errors_are_retried_inside_the_budget_and_the_last_one_is_recorded(seed, start, gate):
    """However long three tries take, the budget ends during the fourth."""

    def fails_then_hangs(*_args):
        if actuator.operations().count("force_delete") <= 3:
            fails()
        gate.wait(200)

    clock = Later()
    actuator = OneVpc(force_delete=fails_then_hangs)
    ready(seed, start, actuator, budget=100.0, clock=clock)
    force(seed)
    eventually(lambda: actuator.operations().count("force_delete") == 4)
    assert specs(seed) == []
    clock.ahead = 100.0
    eventually(seed.is_gone)
    (spec,) = specs(seed)
    assert spec.reason == "BudgetExceeded"
    assert "the cloud says no" in spec.message


def test_once_the_budget_is_over_the_actuator_is_not_called_any_more(seed, start):
    """Also where the next attempt comes before the check of the budgets."""
    clock = Later()

    def fails_as_the_budget_ends(*_args):
        clock.ahead = 100.0
        fails()

    actuator = OneVpc(force_delete=fails_as_the_budget_ends)
    ready(seed, start, actuator, budget=100.0, clock=clock)
    force(seed)
    eventually(seed.is_gone)
    assert actuator.operations().count("force_delete") == 1
    (spec,) = specs(seed)
    assert "the cloud says no" in spec.message


def test_without_a_budget_it_is_tried_for_as_long_as_it_takes(seed, start):
    actuator = OneVpc(force_delete=fails)
    ready(seed, start, actuator, budget=None)
    force(seed)
    with pytest.raises(AssertionError):
        eventually(seed.is_gone, seconds=3)
    actuator.on.clear()
    eventually(seed.is_gone)


def test_a_failed_force_deletion_is_recorded_as_unknown(seed, start):
    ready(seed, start, Script(force_delete=fails))
    force(seed)
    eventually(seed.is_gone)
    assert [spec.resource_type for spec in specs(seed)] == ["unknown"]


def test_an_actuator_whose_external_resources_never_returns_blocks_no_deletion(seed, start, gate):
    class Unresponsive(Script):
        def external_resources(self, obj):
            gate.wait(200)

    ready(seed, start, Unresponsive(), budget=5.0)
    force(seed)
    eventually(seed.is_gone)
    assert [spec.resource_type for spec in specs(seed)] == ["unknown"]


def test_the_time_in_the_queue_counts(seed, start, gate):
    """The only worker hangs with another object; a helper ends calls that are out of time."""
    script = Script(
        reconcile=lambda ctx, obj, c: gate.wait(200) if obj.metadata.name == "hangs" else None
    )
    ready(seed, start, script, max_concurrent_reconciles=1)
    seed.create(infrastructure(seed.namespace, seed.namespace, name="hangs"))
    eventually(lambda: script.operations("hangs"))
    force(seed)
    eventually(seed.is_gone)
    assert "force_delete" not in script.operations()
    assert [spec.reason for spec in specs(seed)] == ["BudgetExceeded"]


def test_objects_with_undeclared_finalizers_are_recorded_when_the_budget_ends(seed, start):
    install_crds(seed.client, MACHINE_KINDS)

    class Stripping(Script):
        seed_objects = (SeedObjects(MACHINES, finalizers=["example.org/known"]),)

        def force_delete(self, ctx, obj, cluster):
            ctx.delete_seed_objects(self.seed_objects)

    where = {"namespace": seed.namespace}
    for name, holder in (("a", "example.org/known"), ("b", "example.org/unknown")):
        meta = {"name": name, "finalizers": [holder], **where}
        manifest = {"apiVersion": MACHINES.api_version, "kind": "Machine", "spec": {}}
        seed.client.create(MACHINES, {**manifest, "metadata": meta})
    ready(seed, start, Stripping())
    force(seed)
    eventually(seed.is_gone)
    recorded = {(spec.resource_type, spec.id) for spec in specs(seed)}
    assert recorded == {("unknown", ""), ("seed/machines.machine.sapcloud.io", "b")}
    seed.client.patch(MACHINES, "b", seed.namespace, {"metadata": {"finalizers": None}})


class Refusing:
    """A client that the API server refuses one thing."""

    def __init__(self, client, refuses):
        self.client = client
        self.refuses = refuses

    def __getattr__(self, name):
        return getattr(self.client, name)

    def patch(self, resource, name, namespace, patch, *, subresource=""):
        self.refuses("patch", resource, subresource)
        return self.client.patch(resource, name, namespace, patch, subresource=subresource)

    def create(self, resource, obj):
        self.refuses("create", resource, "")
        return self.client.create(resource, obj)


def test_a_status_that_cannot_be_written_holds_nothing_up(seed, start, gate):
    on = threading.Event()

    def refuses(verb, resource, subresource):
        if on.is_set() and subresource == "status":
            raise Forbidden(403, "no status for you")

    actuator = OneVpc(force_delete=fails)
    ready(seed, start, actuator, intercept=lambda client: Refusing(client, refuses))
    on.set()
    force(seed)
    eventually(seed.is_gone)


def test_the_finalizer_stays_and_the_status_explains_it_while_no_orphan_can_be_written(seed, start):
    on = threading.Event()
    on.set()

    def refuses(verb, resource, subresource):
        if on.is_set() and resource == ORPHANS:
            raise Unavailable(0, "no answer")

    ready(seed, start, OneVpc(), intercept=lambda client: Refusing(client, refuses))
    force(seed)

    def has_reason():  # what a try says as the budget runs out is overwritten by the next
        conditions = seed.status().get("conditions") or []
        said = [c["message"] for c in conditions if c["type"] == "DeletionBlocked"]
        return any("cannot record" in message for message in said)

    eventually(has_reason)
    with pytest.raises(AssertionError):
        eventually(seed.is_gone, seconds=3)
    assert seed.get()["metadata"]["finalizers"] == [FINALIZER]
    on.clear()
    eventually(seed.is_gone, seconds=100)
    assert len(specs(seed)) == 1


def test_a_call_that_ran_out_of_time_frees_its_worker_and_is_not_repeated_beside_itself(
    seed, start, gate, monkeypatch
):
    monkeypatch.setattr("generic.reconciler.calls.ABANDONED_AFTER_SECONDS", 0.5)
    calls = []

    def hang(ctx, obj, cluster):
        if obj.metadata.name == "hangs":
            calls.append(ctx)
            ctx.limit = ctx.clock.monotonic() + 0.5  # as after the kind's three minutes
            gate.wait(200)

    script = Script(reconcile=hang)
    start(script, max_concurrent_reconciles=1)
    seed.create(infrastructure(seed.namespace, seed.namespace, name="hangs"))
    eventually(lambda: calls)
    seed.create(infrastructure(seed.namespace, seed.namespace))
    eventually(seed.is_ready)  # the worker was replaced
    eventually(lambda: "has not returned" in str(seed.status("hangs").get("lastError")))
    assert len(calls) == 1
    gate.set()
    eventually(lambda: seed.is_ready("hangs"))


def test_escaping_a_bad_external_resource_is_unknown(seed, start):
    class Careless(Script):
        def external_resources(self, obj):
            return ["vpc-1"]

    ready(seed, start, Careless())
    force(seed)
    eventually(seed.is_gone)
    assert [spec.resource_type for spec in specs(seed)] == ["unknown"]
