"""A field with a wrong type blocks an operation that uses it, and no other.

The classes here want numbers where Gardener's CRD has strings, as a class does after Gardener has
changed a type.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs
import pytest

from actuator.errors import ActuatorError, DecodeError
from actuator.interface import ExternalResource
from actuator.v1alpha1 import Infrastructure
from actuator.v1alpha1.infrastructure import InfrastructureSpec, InfrastructureStatus
from generic.reconciler.orphans import ORPHANS, OrphanReason, remaining
from tests.support.cluster.harness import FINALIZER, OPERATION, Script, eventually
from tests.support.objects import builders

PROBLEM = ["ERR_CONFIGURATION_PROBLEM"]
ERROR = "spec.region: expected an integer, got a string"


@attrs.frozen(kw_only=True)
class Spec(InfrastructureSpec):
    region: int = 0  # type: ignore[assignment]


@attrs.define(kw_only=True)
class Status(InfrastructureStatus):
    nodes_cidr: int | None = attrs.field(  # type: ignore[assignment]
        default=None, metadata={"wire": "nodesCIDR"}
    )


@attrs.define(kw_only=True)
class Changed(Infrastructure):
    spec: Spec = attrs.field(factory=Spec)
    status: Status = attrs.field(factory=Status)


@attrs.frozen(kw_only=True)
class RequiredSpec(InfrastructureSpec):
    zone: str


@attrs.define(kw_only=True)
class Required(Infrastructure):
    """Cannot be read at all, since a field is missing."""

    spec: RequiredSpec


def uses_the_region(_ctx: object, obj: Any, _cluster: object) -> None:
    raise AssertionError(f"this is no number: {obj.spec.region}")


class Outside(Script):
    def external_resources(self, obj: Any) -> Iterator[ExternalResource]:
        yield ExternalResource(type="vpc", id=obj.metadata.name)
        yield ExternalResource(type="subnet", region=str(obj.spec.region))


RECORDED_AS_UNREADABLE = [("unknown", OrphanReason.UNREADABLE), ("vpc", OrphanReason.UNREADABLE)]


def create(seed: Any, **more: Any) -> None:
    seed.create(builders.infrastructure(seed.namespace, seed.namespace, **more))


def orphans(seed: Any) -> list[tuple[str, str]]:
    found = [obj["spec"] for obj in seed.client.list(ORPHANS)]
    return sorted(
        (o["resourceType"], o["reason"]) for o in found if o.get("shoot") == seed.namespace
    )


def test_reconcile_is_refused_with_the_path_of_a_wrong_field(seed, start):
    script = Script(Changed)
    start(script)
    create(seed)
    error = eventually(lambda: seed.status()["lastError"])
    assert ERROR in error["description"]
    assert error["codes"] == PROBLEM
    assert FINALIZER not in seed.get()["metadata"].get("finalizers", [])
    assert script.operations() == []


def test_a_deletion_that_uses_no_wrong_field_proceeds(seed, start):
    seen: list[str] = []
    script = Script(Changed, delete=lambda _ctx, obj, _: seen.append(obj.spec.secret_ref.name))
    create(seed, finalizers=[FINALIZER])
    seed.delete()
    start(script)
    eventually(seed.is_gone)
    assert (script.operations(), seen) == (["delete"], ["cloudprovider"])


def test_a_deletion_that_uses_a_wrong_field_is_blocked_and_names_it(seed, start):
    script = Script(Changed, delete=uses_the_region)
    create(seed, finalizers=[FINALIZER])
    seed.delete()
    start(script)
    error = eventually(lambda: seed.status()["lastError"])
    assert f"{ERROR}; correct the field or upgrade the extension" in error["description"]
    assert error["codes"] == PROBLEM
    (blocked,) = (c for c in seed.status()["conditions"] if c["type"] == "DeletionBlocked")
    assert blocked["status"] == "True"
    assert FINALIZER in seed.get()["metadata"]["finalizers"]
    script.on.clear()  # as an extension does that was corrected
    eventually(seed.is_gone)


def test_a_force_deletion_that_uses_no_wrong_field_leaves_nothing_to_record(seed, start):
    script = Script(Changed, delete=uses_the_region)
    create(seed, finalizers=[FINALIZER])
    seed.update_cluster(builders.cluster(seed.namespace, force="true"))
    seed.delete()
    start(script, force_delete_budget=30.0)
    eventually(seed.is_gone, 15)
    assert script.operations() == ["force_delete"]
    assert orphans(seed) == []


def test_a_force_deletion_that_uses_a_wrong_field_ends_at_once_and_records_the_rest(seed, start):
    """Before, the call was repeated until the budget ended, and without a budget endlessly."""
    script = Outside(Changed, force_delete=uses_the_region)
    create(seed, finalizers=[FINALIZER])
    seed.update_cluster(builders.cluster(seed.namespace, force="true"))
    seed.delete()
    start(script, force_delete_budget=None)
    eventually(seed.is_gone, 20)
    assert script.operations() == ["force_delete"]
    assert orphans(seed) == RECORDED_AS_UNREADABLE


def test_a_force_deletion_that_fails_to_read_another_object_is_repeated(seed, start):
    def first_fails(*_: object) -> None:
        if len(script.operations()) == 1:
            raise DecodeError("a Secret")

    script = Script(Changed, force_delete=first_fails)
    create(seed, finalizers=[FINALIZER])
    seed.update_cluster(builders.cluster(seed.namespace, force="true"))
    seed.delete()
    start(script)
    eventually(seed.is_gone, 20)
    assert script.operations() == ["force_delete"] * 2
    assert orphans(seed) == []


def test_commands_name_the_remaining_resources_up_to_the_use_of_a_wrong_field():
    found, problem = remaining(Outside(Changed), Changed, builders.infrastructure("a", "b"))
    assert [item.type for item in found] == ["vpc", "unknown"]
    assert problem.startswith("the object cannot be read: spec.region: expected an integer")


@pytest.mark.parametrize("cls", [Changed, Required])
def test_after_a_removal_by_others_cleanup_needs_only_the_fields_that_it_uses(
    seed, start, caplog, cls
):
    failing = [True]

    def delete(*_: object) -> None:
        if failing:
            raise ActuatorError("the cloud refuses")

    script = Outside(cls, delete=delete)
    create(seed, finalizers=[FINALIZER])
    manager = start(script)
    seed.delete()
    eventually(lambda: seed.last_operation() == ("Delete", "Error"))
    seed.patch({"metadata": {"finalizers": None}})
    removed = "actuator_finalizers_removed_externally_total"
    eventually(lambda: manager.metrics.total(removed, "kind")["Infrastructure"] == 1)
    kinds = ["unknown"] if cls is Required else ["unknown", "vpc"]
    assert orphans(seed) == [(kind, OrphanReason.FINALIZER_REMOVED_EXTERNALLY) for kind in kinds]
    failing.clear()  # not before: a deletion that succeeds meanwhile needs no late cleanup
    if cls is Required:
        unread = "late cleanup skipped: cannot read the object"
        eventually(lambda: unread in [record.message for record in caplog.records])
    else:
        eventually(lambda: seed.events("CleanedUpLate"))


def test_a_migration_keeps_a_wrong_field_of_the_status_as_it_is(seed, start):
    create(seed, finalizers=[FINALIZER])
    patch = [{"op": "add", "path": "/status", "value": {"nodesCIDR": "10.0.0.0/8"}}]
    seed.patch(patch, subresource="status")
    seed.annotate(**{OPERATION: "migrate"})
    script = Script(Changed)
    start(script)
    eventually(lambda: seed.last_operation() == ("Migrate", "Succeeded"))
    eventually(lambda: FINALIZER not in seed.get()["metadata"].get("finalizers", []))
    assert seed.status()["nodesCIDR"] == "10.0.0.0/8"
    assert script.operations() == ["migrate"]
