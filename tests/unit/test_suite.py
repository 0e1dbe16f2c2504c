"""What code and tests have to keep to; `make check` asks before CI collects the tests."""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parents[1]
LEVELS = ("unit", "api", "e2e", "landscape")
FOLDERS = ("actuator", "generic", "extensions", "hack", "tests")
MAX_LINES = 40
LONG = {
    "binding_crd": "a CustomResourceDefinition as data",
    "controllers.py __init__": "declares the metrics, one after the other",
    "registry.py __init__": "declares the metrics, one after the other",
    "wiring.py _add": "composes the parts of one controller",
    "input_of": "one case for each place of an input",
    "explanation": "one explanation with everything in it, as data",
    "test_a_release_of_ours_is_no_bypass_if_its_event_overtakes_the_answer": "a race",
    "test_each_deletion_is_counted_timed_and_seen_in_the_cache_while_it_lasts": "a life",
    "test_the_image_of_a_sample_runs_a_manager_and_nothing_is_written_into_it": "a run",
    "test_who_cannot_renew_stops_before_another_leads": "a race, step by step",
}
"""Longer functions, with their file where the name says too little, and why they are."""


def test_every_module_has_a_name_of_its_own():
    """The folders are no packages: of two modules of one name pytest imports the first twice.

    What runs as `python -m tests.soak` or `tests.adversary` is imported as such.
    """
    paths = [path.relative_to(HERE) for path in HERE.rglob("*.py") if path.name != "conftest.py"]
    names = Counter(path.name for path in paths if path.parts[0] not in ("adversary", "soak"))
    assert [name for name, count in names.items() if count > 1] == []


def test_programs_are_built_before_the_tests():
    """A build with an empty cache takes longer than a test may, so `hack.prepare` does it."""
    here = Path(__file__).name
    found = [path.name for path in HERE.rglob("*.py") if "cached_programs(" in path.read_text()]
    assert sorted(found) == ["go_programs.py", "test_golang.py", here]


def lines_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """The lines of its body, without the docstring."""
    first, *rest = function.body
    begin = rest[0] if ast.get_docstring(function, clean=False) is not None and rest else first
    return (function.end_lineno or 0) - begin.lineno + 1


def functions(folder: Path) -> Iterator[tuple[str, int]]:
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield f"{path.name} {node.name}", lines_of(node)


def test_functions_are_short():
    """Here, because no rule of ruff counts lines (PLR0915 counts statements)."""
    found = [one for name in FOLDERS for one in functions(HERE.parent / name)]
    assert len(found) > 3000
    long = [name for name, lines in found if lines > MAX_LINES]
    assert [name for name in long if not {name, name.split()[1]} & LONG.keys()] == []


def test_a_long_function_is_seen(tmp_path):
    body = "    x = 1\n" * (MAX_LINES + 1)
    (tmp_path / "module.py").write_text(f'def long():\n    """Doc."""\n{body}')
    assert list(functions(tmp_path)) == [("module.py long", MAX_LINES + 1)]


def test_every_test_is_in_a_folder_that_says_what_it_needs():
    tests = [path.relative_to(HERE) for path in HERE.rglob("test_*.py")]
    strays = [path for path in tests if path.parts[0] not in LEVELS]
    assert strays == []


def test_a_unit_test_that_asks_for_a_cluster_fails(request):
    with pytest.raises(pytest.fail.Exception, match="has no cluster"):
        request.getfixturevalue("admin")
