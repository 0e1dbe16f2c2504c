"""check_deleted: the message is bounded, and becomes an error after the patience."""

from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from actuator.errors import ActuatorError, ErrorCode, RequeueAfter
from actuator.interface import Resource, SeedObjects
from generic.library import seedobjects

MACHINES = SeedObjects(Resource("machine.sapcloud.io/v1alpha1", "machines"))
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def context(count: int, since: str = "2026-01-01T00:00:00Z"):
    metas = [{"name": f"m-{n}", "deletionTimestamp": since} for n in range(count)]
    client = SimpleNamespace(list=lambda *_args, **_more: [{"metadata": meta} for meta in metas])
    return SimpleNamespace(client=client, clock=SimpleNamespace(now=lambda: NOW))


def test_three_objects_of_a_group_are_named_and_the_others_counted():
    with pytest.raises(RequeueAfter, match=r"m-2 \(being deleted\); 4 more machines$") as caught:
        seedobjects.check_deleted(context(7), [MACHINES], "ns", patience=300.0)
    assert "m-3" not in str(caught.value)


def test_a_deletion_that_takes_longer_than_the_patience_is_an_error_that_backs_off():
    late = context(1, "2025-12-31T23:54:00Z")
    with pytest.raises(ActuatorError) as caught:
        seedobjects.check_deleted(late, [MACHINES], "ns", patience=300.0)
    assert caught.value.codes == (ErrorCode.ERR_CLEANUP_CLUSTER_RESOURCES,)


def test_without_patience_a_wait_is_reported_as_an_error():
    with pytest.raises(RequeueAfter) as caught:
        seedobjects.check_deleted(context(1), [MACHINES], "ns")
    assert isinstance(caught.value.cause, ActuatorError)
    seedobjects.check_deleted(context(0), [MACHINES], "ns")
