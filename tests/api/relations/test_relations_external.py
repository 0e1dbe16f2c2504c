"""External: an Entry's entry in the register, which nothing in the cluster knows."""

from __future__ import annotations

import pytest
from harness import eventually

from actuator import ActuatorError, ErrorCode, ExternalResource
from extensions.relations import Entries
from extensions.relations.kinds import Entry
from extensions.relations.register import Register
from generic.reconciler.orphans import ORPHANS, SHOOT_LABEL


@pytest.fixture
def entry(serve, make):
    """An Entry that is ready."""
    serve(Entry)
    made = make(Entry, text="a")
    made.is_ready()
    return made


def orphans(admin, namespace):
    found = admin.list(ORPHANS, label_selector=f"{SHOOT_LABEL}={namespace}")
    return [(one["spec"]["resourceType"], one["spec"].get("id", "")) for one in found]


def test_it_is_entered_once_and_the_status_has_its_id(entry, register):
    [entered] = register.entries()
    assert entry.get()["status"]["id"] == entered.id
    assert entered.tags["uid"] == entry.get()["metadata"]["uid"]
    generation = entry.get()["metadata"]["generation"]
    entry.change(text="b")
    eventually(lambda: entry.get()["status"]["observedGeneration"] > generation)
    assert [one.id for one in register.entries()] == [entered.id]


def test_deleted_it_is_struck_out(entry, register, admin, namespace):
    entry.delete()
    entry.is_gone()
    assert (register.entries(), orphans(admin, namespace)) == ([], [])


def test_a_denied_deletion_says_why_and_goes_on_when_it_is_allowed(entry, register):
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


def test_what_never_asked_the_register_needs_none_to_go(serve, make, register, admin, namespace):
    register.path.unlink()
    serve(Entry)
    refused = make(Entry, text="a", providerConfig={"any": "thing"})
    refused.says("spec.providerConfig: there is nothing to configure; remove it")
    refused.delete()
    refused.is_gone()
    assert orphans(admin, namespace) == []


def test_an_answer_that_was_lost_is_on_record_by_its_owner(serve, make, register, admin, namespace):
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


def test_what_was_left_is_looked_for_by_its_id_or_its_owner(register):
    actuator, owner = Entries(register), {"namespace": "a", "name": "x", "uid": "1"}
    id = register.put(owner, "a")
    known = [ExternalResource(type="t", id=id), ExternalResource(type="t", tags=owner)]
    other = ExternalResource(type="t", id="other", tags=owner)
    assert [actuator.still_exists(one) for one in (*known, other)] == [True, True, False]
    register.remove(owner)
    assert [actuator.still_exists(one) for one in known] == [False, False]


def test_a_register_that_is_away_is_an_error_not_an_empty_one(tmp_path):
    away = Register(tmp_path / "away.sqlite")
    for ask in (away.entries, lambda: away.put({}, "a"), lambda: away.remove({})):
        with pytest.raises(ActuatorError) as refused:
            ask()
        assert refused.value.codes == (ErrorCode.ERR_INFRA_DEPENDENCIES,)
    assert not away.path.exists()
