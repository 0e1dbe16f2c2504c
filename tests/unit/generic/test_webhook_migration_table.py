"""The table of Go names in `docs/webhooks.md` is complete, and its own names exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from generic import Manager, library
from generic.library import controlplane, webhooks
from generic.library.webhooks import AdmissionRequest, ControlPlaneMutator

TESTS = Path(__file__).parents[2]
TABLE = (
    (TESTS.parent / "docs" / "webhooks.md").read_text().partition("| Go | here |\n|---|---|\n")[2]
)
ROWS = [line.strip("| ").split(" | ") for line in TABLE.partition("\n\n")[0].splitlines()]
RECORDED = [
    line
    for line in (TESTS / "recorded" / "gardener-webhook-names.txt").read_text().splitlines()
    if not line.startswith("#")
]
WORDS = {"next", "shoot_origin", "--webhook-config-mode", "controlplane-", "seed-", "backup-"}
"""Texts in the second column that are no names of the framework."""


def names(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def covers(documented: str, recorded: str) -> bool:
    """Whether a name, with or without its package, is the recorded one."""
    return documented in (recorded, recorded.partition(".")[2])


DOCUMENTED = [name for row in ROWS for name in names(row[0])]


def test_each_name_of_gardener_is_in_the_table_once():
    found = {name: sum(covers(own, name) for own in DOCUMENTED) for name in RECORDED}
    assert {name: count for name, count in found.items() if count != 1} == {}
    assert len(RECORDED) > 100


def test_each_name_in_the_table_is_one_of_gardener():
    unknown = [own for own in DOCUMENTED if not any(covers(own, name) for name in RECORDED)]
    assert unknown == []


def exists(name: str) -> bool:
    """Whether a name of the second column is public: of the webhooks, or a method."""
    first, _, rest = name.removesuffix("()").partition(".")
    roots = {"request": AdmissionRequest, "Manager": Manager, "generic": library}
    if first in roots:
        rest = rest.removeprefix("library.controlplane.")
        return hasattr(roots[first], rest) or hasattr(controlplane, rest)
    found = getattr(ControlPlaneMutator, first, None) or getattr(webhooks, first, None)
    return found is not None and (not rest or hasattr(found, rest))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: names(row[0])[0])
def test_each_own_name_exists(row):
    own = [name for name in names(row[1]) if name not in WORDS]
    assert own or row[1].startswith(("nothing: ", "the flag ")), "a row names something"
    assert [name for name in own if exists(name)] == own


def test_each_method_of_a_mutator_is_in_the_table():
    """Authors who migrate have to find a method that is added."""
    own = {name for name in vars(ControlPlaneMutator) if name[0] != "_"}
    shown = {name for row in ROWS for name in names(row[1])}
    settings = {"failure_policy", "timeout_seconds"}
    assert own - shown - settings == {"namespace_label", "webhooks"}
