"""External: an Entry's entry in the register, which nothing in the cluster knows."""

from __future__ import annotations

import pytest

from actuator import ActuatorError, ErrorCode, ExternalResource
from extensions.relations.external import Entries
from extensions.relations.kinds import Entry
from extensions.relations.register import Register
from generic.reconciler.orphans import ORPHANS, SHOOT_LABEL
from tests.support.cluster.harness import eventually


@pytest.fixture
def entry(serve, make):
    """An Entry that is ready."""
    serve(Entry)
    made = make(Entry, text="a")
    made.is_ready()
    return made


def orphans(admin, namespace):
    found = admin.list(ORPHANS, label_selector=f"{SHOOT_LABEL}={namespace}")
    return [(obj["spec"]["resourceType"], obj["spec"].get("id", "")) for obj in found]


def test_it_is_entered_once_and_the_status_has_its_id(entry, register):
    [entered] = register.entries()
    assert entry.get()["status"]["id"] == entered.id
    assert entered.tags["uid"] == entry.get()["metadata"]["uid"]
    generation = entry.get()["metadata"]["generation"]
    entry.change(text="b")
    eventually(lambda: entry.get()["status"]["observedGeneration"] > generation)
    assert [item.id for item in register.entries()] == [entered.id]


def test_deleted_it_is_struck_out(entry, register, admin, namespace):
    entry.delete()
    entry.is_gone()
    assert (register.entries(), orphans(admin, namespace)) == ([], [])


def test_a_denied_deletion_reports_the_reason_and_continues_when_allowed(entry, register):
    register.deny_deletions()
    entry.delete()
    said = entry.says("The register refused to remove an entry: denied")
    assert said["codes"] == ["ERR_INFRA_UNAUTHORIZED"]
    register.allow_deletions()
    entry.is_gone()
    assert register.entries() == []


def test_forced_it_leaves_the_entry_and_a_record(entry, register, admin, namespace):
    [left] = register.entries()
    register.deny_deletions()
    entry.force()
    entry.is_gone()
    assert register.entries() == [left]
    assert orphans(admin, namespace) == [("Relations::Entry", left.id)]


def test_an_entry_never_registered_is_deleted_without_the_register(
    serve, make, register, admin, namespace
):
    register.path.unlink()
    serve(Entry)
    refused = make(Entry, text="a", providerConfig={"any": "thing"})
    refused.says("spec.providerConfig: there is nothing to configure; remove it")
    refused.delete()
    refused.is_gone()
    assert orphans(admin, namespace) == []


def test_an_entry_whose_answer_was_lost_is_recorded_by_its_owner(
    serve, make, register, admin, namespace
):
    register.path.unlink()
    serve(Entry)
    asked = make(Entry, text="a")
    asked.says("The register refused to put an entry")
    assert asked.get()["status"]["id"] == ""
    asked.force()
    asked.is_gone()
    assert orphans(admin, namespace) == [("Relations::Entry", "")]


def test_the_register_has_one_entry_for_an_owner_and_removes_no_others(register):
    one = {"namespace": "a", "name": "x", "uid": "1"}
    other = {**one, "uid": "2"}
    first = register.put(one, "a")
    assert register.put(one, "b") == first
    second = register.put(other, "a")
    assert [entry.id for entry in register.entries()] == [first, second]
    register.remove(one)
    register.remove(one)
    assert [entry.id for entry in register.entries()] == [second]


def test_a_remaining_entry_is_found_by_its_id_or_its_owner(register):
    actuator = Entries(register)
    owner = {"namespace": "a", "name": "x", "uid": "1"}
    id = register.put(owner, "a")
    known = [ExternalResource(type="t", id=id), ExternalResource(type="t", tags=owner)]
    other = ExternalResource(type="t", id="other", tags=owner)
    assert [actuator.still_exists(item) for item in (*known, other)] == [True, True, False]
    register.remove(owner)
    assert [actuator.still_exists(item) for item in known] == [False, False]


def test_a_missing_register_is_an_error_not_an_empty_one(tmp_path):
    away = Register(tmp_path / "away.sqlite")
    for ask in (away.entries, lambda: away.put({}, "a"), lambda: away.remove({})):
        with pytest.raises(ActuatorError) as refused:
            ask()
        assert refused.value.codes == (ErrorCode.ERR_INFRA_DEPENDENCIES,)
    assert not away.path.exists()
