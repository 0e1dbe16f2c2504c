"""The table of take-over in `docs/take-over.md` has exactly the states that tests know."""

from __future__ import annotations

from pathlib import Path

from tests.support.cluster import takeover_forms as forms

PAGE = Path(__file__).parents[3] / "docs" / "take-over.md"
HEAD = "| state | take-over | way back | one-way, and why |"


def rows():
    """The cells of each row."""
    lines = PAGE.read_text().partition(HEAD)[2].partition("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_each_state_has_a_row_and_each_row_a_state():
    assert [row[0] for row in rows()] == list(forms.STATES)


def test_only_states_that_go_replaces_or_refuses_are_called_one_way():
    assert {row[0] for row in rows() if row[3]} == forms.ONE_WAY


def test_only_states_that_both_sides_make_anew_are_called_replaced():
    anew = ("replaced", "issued anew", "another one")
    assert {row[0] for row in rows() if row[2].startswith(anew)} == forms.REPLACED
