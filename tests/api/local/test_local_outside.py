"""The outside of the local sample: a folder that behaves as a cloud does."""

from __future__ import annotations

import errno
import os
from concurrent.futures import ThreadPoolExecutor

import attrs
import pytest

from extensions.local.outside import POLICY, Outside, OutsideError, OutsideResource

OWNER = {"shoot": "shoot--a--b", "object": "Network/net"}
THING = OutsideResource(type="Local::Share", id="share", tags=OWNER, properties={"capacity": "1Gi"})


@pytest.fixture
def outside(tmp_path) -> Outside:
    directory = tmp_path / "outside"
    directory.mkdir()
    return Outside(directory)


def names(outside) -> list[str]:
    return sorted(path.name for path in outside.directory.iterdir())


def codes(request) -> list[str]:
    with pytest.raises(OutsideError) as caught:
        request()
    assert str(caught.value).startswith("The outside refused to ")
    return [str(code) for code in caught.value.codes]


def test_a_thing_is_found_again_by_any_of_its_tags(outside):
    outside.ensure(THING)
    assert outside.find(OWNER) == outside.find({"shoot": "shoot--a--b"}) == [THING]
    assert outside.find({"shoot": "shoot--a--c"}) == []


def test_an_existing_resource_is_updated(outside):
    outside.ensure(THING)
    larger = attrs.evolve(THING, properties={"capacity": "2Gi"})
    outside.ensure(larger)
    outside.ensure(larger)
    assert outside.find({}) == [larger]


def test_many_at_once_make_one_thing_and_leave_nothing_half_made(outside):
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: outside.ensure(THING), range(40)))
    assert names(outside) == ["share.thing"]


def test_a_resource_of_another_owner_is_neither_adopted_nor_deleted(outside):
    theirs = attrs.evolve(THING, tags={"shoot": "shoot--c--d"})
    outside.ensure(theirs)
    assert codes(lambda: outside.ensure(THING)) == ["ERR_CONFIGURATION_PROBLEM"]
    outside.delete(THING.id, OWNER)
    assert outside.find({}) == [theirs]


def test_deleting_twice_is_success(outside):
    outside.ensure(THING)
    outside.delete(THING.id, OWNER)
    outside.delete(THING.id, OWNER)
    assert outside.find({}) == []


def test_a_missing_folder_is_an_error_and_not_an_empty_one(outside):
    outside.ensure(THING)
    outside.directory.rename(outside.directory.with_name("away"))
    for request in (
        lambda: outside.ensure(THING),
        lambda: outside.delete(THING.id, OWNER),
        lambda: outside.find(OWNER),
    ):
        assert codes(request) == ["ERR_INFRA_DEPENDENCIES"]


def test_a_file_in_its_place_is_no_folder(tmp_path):
    tmp_path.joinpath("outside").touch()
    assert codes(lambda: Outside(tmp_path / "outside").find({})) == ["ERR_INFRA_DEPENDENCIES"]


def test_its_policy_refuses_denied_operations(outside):
    outside.ensure(THING)
    outside.directory.joinpath(POLICY).write_text('{"deny": ["delete"]}')
    assert outside.find(OWNER) == [THING]
    assert codes(lambda: outside.delete(THING.id, OWNER)) == ["ERR_INFRA_UNAUTHORIZED"]


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (errno.EACCES, "ERR_INFRA_UNAUTHORIZED"),
        (errno.EDQUOT, "ERR_INFRA_QUOTA_EXCEEDED"),
        (errno.ENOSPC, "ERR_INFRA_RESOURCES_DEPLETED"),
        (errno.EIO, "ERR_RETRYABLE_INFRA_DEPENDENCIES"),
    ],
)
def test_a_refusal_of_the_system_has_a_code_and_names_no_path(outside, monkeypatch, number, code):
    def refuse(*_args, **_kwargs):
        raise OSError(number, os.strerror(number), str(outside.directory))

    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(OutsideError) as caught:
        outside.ensure(THING)
    assert [str(code) for code in caught.value.codes] == [code]
    assert str(outside.directory) not in str(caught.value)
    assert names(outside) == []


@pytest.mark.parametrize("content", ["", "{", '{"type": 1}'])
def test_a_damaged_file_is_an_error_and_not_absence(outside, content):
    outside.directory.joinpath("share.thing").write_text(content)
    assert codes(lambda: outside.delete("share", OWNER)) == ["ERR_INFRA_DEPENDENCIES"]


@pytest.mark.parametrize(
    "id",
    ["../x", "../../tmp/x", "a/b", "/etc/x", "a\0b", ".", "..", ".x", "", "a\nb", "a" * 250, "Ä"],
)
def test_an_id_that_is_no_plain_file_name_reads_writes_and_deletes_nothing(outside, id):
    victim = outside.directory.parent / "x.thing"
    victim.write_text("{}")
    before = sorted(outside.directory.parent.rglob("*"))
    for request in (
        lambda: outside.ensure(attrs.evolve(THING, id=id)),
        lambda: outside.delete(id, OWNER),
    ):
        assert codes(request) == ["ERR_CONFIGURATION_PROBLEM"]
    assert sorted(outside.directory.parent.rglob("*")) == before
    assert victim.read_text() == "{}"


def test_a_symbolic_link_in_the_folder_is_not_followed(outside):
    victim = outside.directory.parent / "victim"
    victim.write_text('{"type": "Local::Share", "id": "share", "tags": {}}')
    (outside.directory / "share.thing").symlink_to(victim)
    assert codes(lambda: outside.delete("share", {})) == ["ERR_CONFIGURATION_PROBLEM"]
    assert codes(lambda: outside.ensure(THING)) == ["ERR_CONFIGURATION_PROBLEM"]
    assert "share" in victim.read_text()
