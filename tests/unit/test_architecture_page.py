"""docs/architecture.md is one page, and each path that it and the decisions name exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "docs/architecture.md", *sorted((ROOT / "docs/decisions").glob("*.md"))]
CODE = re.compile(r"`([^`\s]+)`")
CHANGES = (
    "a kind of Gardener",
    "a metric",
    "a scenario of drills",
    "an alert",
    "a target of webhooks",
    "a reason of errors",
    "an option",
    "an event",
    "a field of our CRDs",
    "a value of the chart",
    "a rule for seed objects",
    "a health check",
    "a version of Gardener",
)
MOST_LINES = 105


def paths(text: str) -> list[str]:
    """The paths in a page: of the repository, or of a module below `generic`, without `.py`."""
    found = CODE.findall(text)
    return [name for name in found if "/" in name and "<" not in name and name[0].isalpha()]


def exists(path: str) -> bool:
    places = (ROOT / path, ROOT / "generic" / path, ROOT / "generic" / f"{path}.py")
    return any(place.exists() for place in places)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_each_path_exists(page):
    named = [name for name in paths(page.read_text()) if not is_api(name)]
    assert named or page.stem == "index"
    assert [name for name in named if not exists(name)] == []


def is_api(name: str) -> bool:
    """Names of the Kubernetes world with a slash."""
    return ".cloud/" in name


def test_a_path_that_does_not_exist_is_found():
    text = "`kube/informer` and `kube/none`, `actuator/errors.py`, `v1alpha1/<kind>.py`, `a`"
    assert [name for name in paths(text) if not exists(name)] == ["kube/none"]


def test_the_page_names_the_place_of_each_change_and_stays_one_page():
    text = PAGES[0].read_text()
    assert len(text.splitlines()) <= MOST_LINES
    for change in CHANGES:
        [row] = re.findall(rf"^\| {change} \|(.*)\|$", text, re.MULTILINE)
        begin, then = row.split("|")
        assert paths(begin), change
        assert "`" in then, change


def test_each_step_of_an_event_names_an_existing_function():
    steps = re.findall(r"^\| \d+ \| `(\S+)` `?([\w.]+)?", PAGES[0].read_text(), re.MULTILINE)
    assert len(steps) == 12
    for path, name in steps:
        code = (ROOT / "generic" / f"{path}.py").read_text()
        assert not name or f"def {name.rpartition('.')[2]}(" in code, (path, name)
