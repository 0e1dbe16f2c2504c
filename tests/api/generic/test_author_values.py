"""Any wrong value that an actuator returns, raises or writes is an error on that object."""

from __future__ import annotations

import asyncio
import secrets
import threading
from datetime import UTC, datetime
from itertools import repeat
from typing import Any, ClassVar

import attrs
import pytest

from actuator import ActuatorError, ErrorCode, ExternalResource, RequeueAfter, Result
from actuator.errors import CallAbandoned, DeadlineExceeded, Invalid, LeaseLost
from actuator.meta import GROUP, DefaultSpec, DefaultStatus, Kind, Object
from actuator.v1alpha1 import DNSRecord, Infrastructure
from generic.kube.clock import SystemClock
from generic.kube.errorinfo import MAX_TEXT
from generic.kube.patches import add, remove
from generic.manager.manager import Manager
from generic.manager.options import Options
from generic.manager.orphans.ledger import read_orphans
from generic.manager.orphans.verification import verify
from generic.reconciler.orphans import ORPHANS, OrphanedFrom, OrphanReason, OrphanState
from generic.reconciler.orphans.record import record
from generic.testing.seed import CRDS, install_crds
from generic.tools.explain import explain
from tests.support.cluster.harness import FINALIZER, Script, Seed, eventually
from tests.support.objects import builders

PROBLEM = [ErrorCode.ERR_CONFIGURATION_PROBLEM]
BUDGET = 3.0


class Author(Script):
    """Returns the given values, as a careless actuator does."""

    def delete(self, ctx, obj, cluster):
        return self._run("delete", ctx, obj, cluster)

    def force_delete(self, ctx, obj, cluster):
        return self._run("force_delete", ctx, obj, cluster)

    def migrate(self, ctx, obj, cluster):
        return self._run("migrate", ctx, obj, cluster)

    def external_resources(self, obj):
        return self.on.get("external_resources", lambda _obj: ())(obj)


def author(of=Infrastructure, **returns: Any) -> Author:
    """`returns` are values, or functions without arguments that make or raise them."""
    script = Author(of)
    for operation, value in returns.items():
        make = value if callable(value) else lambda value=value: value
        script.on[operation] = lambda *_, make=make: make()
    return script


def raises(error: Any) -> Any:
    def act() -> None:
        raise error() if isinstance(error, type) else error

    return act


async def promise() -> None:
    await asyncio.sleep(0)


def generator() -> Any:
    yield 1


def orphans(seed: Seed) -> list[Any]:
    found = seed.client.list(ORPHANS)
    return [obj["spec"] for obj in found if obj["spec"].get("shoot") == seed.namespace]


def blocked_message(seed: Seed) -> str:
    conditions = seed.status()["conditions"]
    return next(
        condition["message"] for condition in conditions if condition["type"] == "DeletionBlocked"
    )


def guarded(seed: Seed, *, force: bool = False) -> None:
    """An object that has our finalizer and is being deleted."""
    seed.create(builders.infrastructure(seed.namespace, seed.namespace, finalizers=[FINALIZER]))
    if force:
        seed.update_cluster(builders.cluster(seed.namespace, force="true"))
    seed.delete()


RESULTS = {
    "Result": lambda: Result(requeue_after=30),
    "RequeueAfter": lambda: RequeueAfter(30),
    "False": lambda: False,
    "zero": lambda: 0,
    "exception": lambda: ValueError("later"),
    "coroutine": promise,
    "generator": generator,
}


@pytest.mark.parametrize("make", RESULTS.values(), ids=RESULTS)
def test_finalizer_is_kept_when_delete_returns_something(seed, start, make):
    start(author(delete=make))
    guarded(seed)
    error = eventually(lambda: seed.status()["lastError"])
    assert "Author.delete returned" in error["description"]
    assert "it must return None" in error["description"]
    assert error["codes"] == PROBLEM
    assert FINALIZER in seed.get()["metadata"]["finalizers"]


def test_finalizer_is_kept_when_migrate_returns_something(seed, start):
    start(author(migrate=Result()))
    seed.create(builders.infrastructure(seed.namespace, seed.namespace))
    eventually(seed.is_ready)
    seed.ask("migrate")
    error = eventually(lambda: seed.status()["lastError"])
    assert "Author.migrate returned Result" in error["description"]
    assert FINALIZER in seed.get()["metadata"]["finalizers"]


def test_a_force_deletion_whose_result_is_wrong_ends_recorded(seed, start):
    start(author(force_delete=promise), force_delete_budget=BUDGET)
    guarded(seed, force=True)
    eventually(seed.is_gone, BUDGET + 5)
    (orphan,) = orphans(seed)
    assert orphan["reason"] == "BudgetExceeded"
    assert "Author.force_delete returned coroutine" in orphan["message"]


def test_reconcile_returns_none_or_a_result(seed, start):
    start(author(reconcile=30))
    seed.create(builders.infrastructure(seed.namespace, seed.namespace))
    error = eventually(lambda: seed.status()["lastError"])
    assert "Author.reconcile returned int; it must return None or a Result" in error["description"]


def test_a_wrapped_actuator_cannot_hide_its_return_value(seed, start):
    start(author(DNSRecord, delete=RequeueAfter(30)))
    record = seed.of(DNSRecord, "record")
    spec = {
        "type": seed.namespace,
        "name": "a.example.org",
        "recordType": "A",
        "values": ["10.0.0.1"],
        "secretRef": {"name": "s"},
    }
    manifest = builders.infrastructure(seed.namespace, seed.namespace, "record")
    record.create({**manifest, "kind": "DNSRecord", "spec": spec})
    eventually(record.is_ready)
    record.delete()
    error = eventually(lambda: record.status()["lastError"])
    assert "Author.delete returned RequeueAfter" in error["description"]


class Ends(BaseException):
    """An exception that ends everything that does not catch it."""


class Nasty(ActuatorError):
    """An exception of which nothing can be read."""

    codes = property(lambda self: 1 / 0)
    reason = property(lambda self: 1 / 0)

    def __init__(self) -> None:
        Exception.__init__(self, "nasty")

    def __str__(self) -> str:
        raise Ends


def cyclic() -> BaseException:
    first = ValueError("first")
    second = ActuatorError("second")
    first.__cause__ = second
    second.__cause__ = first
    return first


def own_cause() -> BaseException:
    error = RuntimeError("its own cause")
    error.__cause__ = error
    return error


ERRORS = {
    "abandoned": (lambda: CallAbandoned("not so"), "not so"),
    "lease lost": (lambda: LeaseLost("not so"), "not so"),
    "deadline": (lambda: DeadlineExceeded("not so"), "not so"),
    "own cause": (own_cause, "its own cause"),
    "cycle": (cyclic, "first"),
    "base exception": (lambda: Ends("over"), "Ends: over"),
    "exit": (lambda: SystemExit(3), "SystemExit: 3"),
    "text that raises": (Nasty, "Nasty"),
    "cause of itself": (lambda: RequeueAfter(1, cause=own_cause()), "its own cause"),
    "large": (lambda: ActuatorError("x" * 2**21), "xxx"),
    "surrogates": (lambda: ActuatorError("\ud800 and \x1b[31m"), "and"),
    "group": (lambda: ExceptionGroup("several", [ValueError("one")]), "several"),
}


@pytest.mark.parametrize(("make", "text"), ERRORS.values(), ids=ERRORS)
def test_any_error_is_visible_and_stops_no_other_object(seed, start, make, text):
    def act(_ctx: Any, obj: Any, _cluster: Any) -> None:
        if obj.metadata.name == "infra":
            raise make()

    script = Author(delete=act)
    start(script, force_delete_budget=BUDGET)
    guarded(seed)
    error = eventually(lambda: seed.status()["lastError"])
    assert text in error["description"]
    assert len(error["description"].encode()) <= MAX_TEXT
    assert len(blocked_message(seed).encode()) <= MAX_TEXT
    other = builders.infrastructure(seed.namespace, seed.namespace, "other")
    seed.create(other)
    eventually(lambda: seed.is_ready("other"))
    script.on["force_delete"] = act
    seed.update_cluster(builders.cluster(seed.namespace, force="true"))
    eventually(seed.is_gone, BUDGET + 5)


def test_an_error_whose_text_hangs_is_under_the_time_limit_of_its_call(seed, start, gate):
    class Hangs(Exception):
        def __str__(self) -> str:
            gate.wait()
            return "late"

    script = author(force_delete=raises(Hangs))
    start(script, force_delete_budget=BUDGET)
    guarded(seed, force=True)
    eventually(seed.is_gone, BUDGET + 5)


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"a": value}
    return value


def circular() -> Any:
    value: dict[str, Any] = {}
    value["self"] = value
    return value


STATES = {
    "NaN": (lambda: float("nan"), "cannot write status.state"),
    "Infinity": (lambda: float("inf"), "cannot write status.state"),
    "large integer": (lambda: 10**30, "integer exceeds 64 bits"),
    "huge integer": (lambda: 10**400, "integer exceeds 64 bits"),
    "2 MiB": (lambda: "x" * 2**21, "exceed the limit of 1048576"),
    "deep": (lambda: nested(500), "nested too deeply"),
    "very deep": (lambda: nested(5000), "nested too deeply"),
    "circular": (circular, "Circular reference"),
    "a set": (set, "set is not JSON serializable"),
    "bytes": (lambda: b"x", "bytes is not JSON serializable"),
    "a lock": (threading.Lock, "lock is not JSON serializable"),
}


@pytest.mark.parametrize(("make", "text"), STATES.values(), ids=STATES)
def test_a_status_that_cannot_be_written_is_an_error_with_a_code(seed, start, make, text):
    def act(_ctx: Any, obj: Any, _cluster: Any) -> None:
        obj.status.state = {"value": make()}

    start(Author(reconcile=act))
    seed.create(builders.infrastructure(seed.namespace, seed.namespace))
    error = eventually(lambda: seed.status()["lastError"])
    assert text in error["description"]
    assert error["codes"] == PROBLEM


@pytest.mark.parametrize("make", [lambda: float("nan"), lambda: "x" * 2**21, lambda: nested(5000)])
def test_an_error_is_shown_beside_a_status_that_cannot_be_written(seed, start, make):
    def act(_ctx: Any, obj: Any, _cluster: Any) -> None:
        obj.status.state = {"value": make()}
        raise ActuatorError("no access", codes=[ErrorCode.ERR_INFRA_UNAUTHORIZED])

    start(Author(delete=act))
    guarded(seed)
    error = eventually(lambda: seed.status()["lastError"])
    assert "no access" in error["description"]
    assert error["codes"] == [ErrorCode.ERR_INFRA_UNAUTHORIZED]


def test_waiting_with_a_status_that_cannot_be_written_is_an_error(seed, start):
    def act(_ctx: Any, obj: Any, _cluster: Any) -> None:
        obj.status.state = {"value": float("nan")}
        raise RequeueAfter(1, "waiting")

    start(Author(reconcile=act))
    seed.create(builders.infrastructure(seed.namespace, seed.namespace))
    assert "cannot write status.state" in eventually(
        lambda: seed.status()["lastError"]["description"]
    )


@pytest.mark.parametrize("waits", [False, True])
def test_a_status_that_is_too_large_for_etcd_as_a_whole_is_an_error_with_a_code(seed, start, waits):
    """Each field is within its own limit; the API server refuses both together."""

    def act(_ctx: Any, obj: Any, _cluster: Any) -> None:
        obj.status.state = {"value": "x" * 900_000}
        obj.status.provider_status = {"value": "y" * 900_000}
        if waits:
            raise RequeueAfter(1, "waiting")

    start(Author(reconcile=act))
    seed.create(builders.infrastructure(seed.namespace, seed.namespace))
    error = eventually(lambda: seed.status()["lastError"])
    assert "cannot write the status" in error["description"]
    assert error["codes"] == PROBLEM


RESOURCES = {
    "3 MB id": lambda _obj: [ExternalResource(type="VPC", id="x" * 3_000_000)],
    "integer tag": lambda _obj: [ExternalResource(type="VPC", tags={"a": 1})],  # type: ignore[dict-item]
    "no tags": lambda _obj: [ExternalResource(type="VPC", tags=None)],  # type: ignore[arg-type]
    "bytes": lambda _obj: [ExternalResource(type=b"VPC")],  # type: ignore[arg-type]
    "no type": lambda _obj: [ExternalResource(type="")],
    "text": lambda _obj: "VPC",
    "nothing": lambda _obj: None,
    "without end": lambda _obj: repeat(ExternalResource(type="VPC", id="same")),
    "raises": lambda _obj: 1 / 0,
}


@pytest.mark.parametrize("listed", RESOURCES.values(), ids=RESOURCES)
def test_a_force_deletion_ends_whatever_external_resources_yields(seed, start, listed):
    start(Author(external_resources=listed), force_delete_budget=20.0)
    guarded(seed, force=True)
    eventually(seed.is_gone, 25)
    assert "unknown" in {orphan["resourceType"] for orphan in orphans(seed)}


def test_usable_external_resources_are_recorded_beside_unusable_ones(seed, start):
    vpc = ExternalResource(type="VPC", id="vpc-1", tags={"shoot": "a&b"})
    start(Author(external_resources=lambda _obj: [vpc, 7]), force_delete_budget=20.0)
    guarded(seed, force=True)
    eventually(seed.is_gone)
    assert {orphan["resourceType"] for orphan in orphans(seed)} == {"VPC", "unknown"}


def test_each_of_many_external_resources_is_recorded(seed, start):
    many = [ExternalResource(type="Disk", id=f"disk-{number}") for number in range(300)]
    start(Author(external_resources=lambda _obj: many), force_delete_budget=60.0)
    guarded(seed, force=True)
    eventually(seed.is_gone)
    recorded = [orphan["id"] for orphan in orphans(seed)]
    assert sorted(recorded) == sorted(item.id for item in many)
    (event,) = seed.events("OrphansRecorded")
    assert "Recorded 300 external resources" in event["message"]


def test_validate_yields_field_problems(seed, start):
    start(Author(validate=lambda *_: repeat("wrong")))
    seed.create(builders.infrastructure(seed.namespace, seed.namespace))
    error = eventually(lambda: seed.status()["lastError"]["description"])
    assert "Author.validate returned str; it must yield FieldProblems" in error


@attrs.frozen(kw_only=True)
class GateSpec(DefaultSpec):
    """A specification that a rule of the CRD may refuse later."""

    port: int = 0


@attrs.define(kw_only=True)
class Gate(Object):
    """A kind whose CRD gets a rule at its root after objects were stored."""

    KIND: ClassVar[Kind] = Kind(name="Gate", plural="gates", finalizer=f"{GROUP}/gate")

    spec: GateSpec = attrs.field(factory=GateSpec)
    status: DefaultStatus = attrs.field(factory=DefaultStatus)


@pytest.mark.parametrize("force", [None, "true"])
def test_the_rule_that_refuses_every_patch_is_named(admin, seed, start, force):
    install_crds(admin, [Gate])
    seed.update_cluster(builders.cluster(seed.namespace, force=force))
    manager = start(Author(Gate), force_delete_budget=BUDGET)
    gates = seed.of(Gate, "gate")
    manifest = builders.infrastructure(seed.namespace, seed.namespace, "gate")
    gates.create({**manifest, "kind": "Gate", "spec": {"type": seed.namespace, "port": 80}})
    eventually(gates.is_ready)
    rule = {"rule": "self.spec.port != 80", "message": "the port must not be 80"}
    path = "/spec/versions/0/schema/openAPIV3Schema/x-kubernetes-validations"
    admin.patch(CRDS, "gates.extensions.gardener.cloud", "", [add(path, [rule])])
    try:
        eventually(lambda: is_refused(gates))
        admin.delete(gates.resource, "gate", seed.namespace)
        told = eventually(lambda: gates.events("StatusNotWritten"))
        assert "the port must not be 80" in told[0]["message"]
        name = "actuator_status_writes_refused_total"
        assert sum(manager.metrics.total(name, "controller").values()) >= 1
        found = explain(admin, Gate.KIND, seed.namespace, "gate", datetime.now(UTC))
        assert any("the port must not be 80" in blocker for blocker in found.standing.blockers)
    finally:
        admin.patch(CRDS, "gates.extensions.gardener.cloud", "", [remove(path)])
    eventually(gates.is_gone)


def is_refused(seed: Seed) -> bool:
    try:
        seed.annotate(again=secrets.token_hex(4))
    except Invalid:
        return True
    return False


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (lambda: "", "returned str"),
        (lambda: 0, "returned int"),
        (raises(SystemExit(3)), "SystemExit: 3"),
        (raises(Nasty), "Nasty"),
    ],
)
def test_an_orphan_is_never_gone_by_a_wrong_answer(seed, answer, text):
    """A false value that is not False says nothing about the resource."""

    class Answers(Author):
        def still_exists(self, resource):
            return answer()

    manager = Manager(Options())
    manager.add(Answers(), type=seed.namespace)
    owner = OrphanedFrom(
        api_version=Infrastructure.KIND.api_version,
        kind="Infrastructure",
        namespace=seed.namespace,
        name="infra",
        uid=seed.namespace,
        type=seed.namespace,
    )
    now = datetime.now(UTC)
    record(seed.client, owner, ExternalResource(type="VPC"), OrphanReason.FORCED, "", now)
    mine = [orphan for orphan in read_orphans(seed.client) if orphan.spec.shoot == seed.namespace]
    (finding,) = verify(seed.client, mine, manager.registrations, SystemClock())
    assert text in finding.problem
    assert finding.orphan.state is OrphanState.UNVERIFIED
