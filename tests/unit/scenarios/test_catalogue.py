"""docs/scenarios.md lists every fault by its number, docs/backups.md each rule, with tests."""

import re
from pathlib import Path

import pytest

from tests.rules.causes import single

TESTS = Path(__file__).parents[2]
PAGE = (TESTS.parent / "docs" / "scenarios.md").read_text()
BACKUPS = (TESTS.parent / "docs" / "backups.md").read_text()
ROWS = dict(re.findall(r"^\| (\d+) \|[^|]*\|(.*)\|$", PAGE, re.MULTILINE))
NAMED = re.compile(r"`(?:(?P<file>(?:[a-z0-9]+/)+test_\w+\.py))?(?:::(?P<test>test_\w+))?`")
HERE = "".join(file.read_text() for file in TESTS.rglob("scenarios/test_*.py"))


def named():
    """Each file and test that the pages name; a test without a file is in the file before it."""
    last = ""
    for match in NAMED.finditer(PAGE + BACKUPS):
        last = match["file"] or last
        if match["file"] or match["test"]:
            yield last, match["test"] or ""


def test_all_57_are_listed_in_order():
    assert list(map(int, ROWS)) == list(range(1, 58))


@pytest.mark.parametrize(("file", "test"), sorted(set(named())))
def test_each_named_test_exists(file, test):
    text = (TESTS / file).read_text()
    assert not test or f"def {test}(" in text


def test_each_scenario_test_is_named_in_the_row_of_its_number():
    names = re.findall(r"def test_(scenarios?_\d\d(?:_and_\d\d)?)", HERE)
    assert len(names) > 10
    for name in names:
        for number in re.findall(r"\d\d", name):
            assert f"`{name}`" in ROWS[str(int(number))], name


def test_each_row_names_a_test_or_a_reason():
    for number, text in ROWS.items():
        reason = "Does not exist" in text or "Not built" in text or "make bench" in text
        later = re.search(r"As \d+|/test_drill", text)
        assert "test_" in text or "`scenario" in text or reason or later, number


def test_each_rule_about_backups_names_a_test():
    rows = [row for row in BACKUPS.splitlines() if row.startswith("| ") and "| Source |" not in row]
    assert len(rows) > 20
    assert [row for row in rows if not NAMED.search(row.split("|")[4])] == []


def test_each_situation_of_alerts_is_listed_with_its_pages():
    expected = [
        (situation.text, sorted({name for pages in situation.pages.values() for name in pages}))
        for situation in single()
    ]
    section = PAGE.partition("## Alerts and recorded numbers")[2]
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", section, re.MULTILINE)[1:]
    assert [(text, re.findall(r"\[(\w+)\]", alerts)) for text, alerts in rows] == expected
