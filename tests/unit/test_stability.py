"""docs/stability.md: each promise and cell names an existing test, and the versions are true."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from generic.testing.envtest.binaries import kubernetes_version
from generic.testing.landscape.programs import gardener_version

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/stability.md").read_text()
EVENTS = (ROOT / "docs/outcomes.md").read_text()
NAMED = re.compile(r"`((?:\w+/)+test_\w+\.py)?(?:::(test_\w+))?`")
DERIVED = {"DeleteError", "ForceDeleteError"}
"""Reasons that are made of the name of an operation."""


def rows(heading: str) -> list[list[str]]:
    """The cells of the table whose first column has that heading."""
    [table] = re.findall(rf"^\| {heading} \|.*\n\|-.*\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    return [[cell.strip() for cell in row.split("|")[1:-1]] for row in table.splitlines()]


def named_in(cell: str) -> Iterator[tuple[str, str]]:
    """The file and the name of each test; a test without a file is in the file before it."""
    last = ""
    for file, test in NAMED.findall(cell):
        last = file or last
        if last:
            yield last, test


CELLS = [cell for row in rows("component") for cell in row[1:]]
CELLS += [row[-1] for heading in ("part", "product") for row in rows(heading)]


@pytest.mark.parametrize("cell", CELLS)
def test_each_cell_names_an_existing_test_or_is_untested(cell):
    if cell == "untested" or ".github/workflows/ci.yml" in cell:
        return
    named = list(named_in(cell))
    assert named
    for file, test in named:
        text = (ROOT / "tests" / file).read_text()
        assert not test or f"def {test}(" in text, (file, test)


def test_a_cell_without_a_test_is_found():
    assert list(named_in("works")) == []
    assert list(named_in("`a/test_b.py::test_c`, `::test_d`")) == [
        ("a/test_b.py", "test_c"),
        ("a/test_b.py", "test_d"),
    ]


def test_the_versions_are_those_of_the_tests():
    tested = {row[0]: row[1] for row in reversed(rows("product")) if row[2] != "untested"}
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())
    assert tested["Gardener"] == minor(gardener_version())
    assert tested["Kubernetes of the seed"] == minor(kubernetes_version())
    assert tested["Python"].split(", ") == workflow["jobs"]["run"]["strategy"]["matrix"]["python"]


def minor(version: str) -> str:
    return ".".join(version.removeprefix("v").split(".")[:2])


def reasons() -> Iterator[str]:
    """The reasons of events that managers and the library write."""
    for path in (ROOT / "generic").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Call(
                    func=ast.Attribute(attr="event" | "once"),
                    args=[ast.Constant(value=str(reason)), *_],
                ):
                    yield reason
                case ast.Assign(
                    targets=[ast.Name(id="STATUS_NOT_WRITTEN")], value=ast.Constant(value=reason)
                ):
                    yield str(reason)


def test_each_documented_event_has_its_reason():
    [table] = re.findall(r"^\| event \|.*\n\|-.*\n((?:\|.*\n)+)", EVENTS, re.MULTILINE)
    cells = "".join(row.split("|")[1] for row in table.splitlines())
    documented = {*re.findall(r"`(\w+)`", cells)}
    assert documented - DERIVED == {*reasons()}
