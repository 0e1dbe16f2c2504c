"""Rules for code and tests; `make check` runs them before CI collects the tests."""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.suite.checks import cannot_fail, checkers, find_tests, imported_tests

HERE = Path(__file__).parents[1]
LEVELS = ("unit", "api", "e2e", "landscape", "observe")
FOLDERS = ("actuator", "generic", "extensions", "hack", "tests")
MAX_LINES = 40
LONG = {
    "binding_crd": "a CustomResourceDefinition as data",
    "controllers.py __init__": "declares the metrics, one after the other",
    "registry.py __init__": "declares the metrics, one after the other",
    "wiring.py _add": "composes the parts of one controller",
    "input_of": "one case for each place of an input",
    "explanation": "one explanation with everything in it, as data",
    "test_a_release_of_ours_does_not_count_as_external_if_its_event_overtakes_the_answer": "a race",
    "test_each_deletion_is_counted_timed_and_seen_in_the_cache_while_it_lasts": "a life",
    "test_the_image_of_a_sample_runs_a_manager_and_nothing_is_written_into_it": "a run",
    "test_a_leader_that_cannot_renew_stops_before_another_leads": "a race, step by step",
}
"""Longer functions, with their file where the name says too little, and why they are."""


def test_every_module_has_a_name_of_its_own():
    """The folders are no packages: of two modules of one name pytest imports the first twice.

    `tests.soak`, `tests.adversary` and `tests.support` are imported as such.
    """
    paths = [path.relative_to(HERE) for path in HERE.rglob("*.py") if path.name != "conftest.py"]
    names = Counter(
        path.name for path in paths if path.parts[0] not in ("adversary", "soak", "support")
    )
    assert len(names) > 300
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
    found = [function for name in FOLDERS for function in functions(HERE.parent / name)]
    assert len(found) > 3000
    long = [name for name, lines in found if lines > MAX_LINES]
    assert [name for name in long if not {name, name.split()[1]} & LONG.keys()] == []


def test_a_long_function_is_seen(tmp_path):
    body = "    x = 1\n" * (MAX_LINES + 1)
    (tmp_path / "module.py").write_text(f'def long():\n    """Doc."""\n{body}')
    assert list(functions(tmp_path)) == [("module.py long", MAX_LINES + 1)]


def test_every_test_is_in_a_folder_named_by_its_needs():
    tests = [path.relative_to(HERE) for path in HERE.rglob("test_*.py")]
    strays = [path for path in tests if path.parts[0] not in LEVELS]
    assert strays == []


def test_a_unit_test_that_asks_for_a_cluster_fails(request):
    with pytest.raises(pytest.fail.Exception, match="has no cluster"):
        request.getfixturevalue("admin")


@pytest.fixture(scope="module")
def modules() -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text()) for path in HERE.rglob("*.py")}


def test_no_test_is_imported(modules):
    """pytest would run it twice, with other fixtures; `tests.support` has the shared parts."""
    assert len(modules) > 300
    found = [(path.name, *imported_tests(module)) for path, module in modules.items()]
    assert [item for item in found if len(item) > 1] == []


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("import test_garden", ["test_garden"]),
        ("from test_garden import KINDS", ["test_garden.KINDS"]),
        ("from conftest import place", ["conftest.place"]),
        ("from tests.unit import test_suite", ["tests.unit.test_suite"]),
        ("import tests.api.aws.conftest as aws", ["tests.api.aws.conftest"]),
        (
            "def test_it():\n    from tests.api.test_a import b, c",
            ["tests.api.test_a.b", "tests.api.test_a.c"],
        ),
        ("from tests.support.suite import checks\nimport tests.soak.limits", []),
        ("from generic.kube.patches import test_version\nimport json", []),
    ],
)
def test_an_import_of_a_test_is_found(code, found):
    assert list(imported_tests(ast.parse(code))) == found


def test_every_test_can_fail(modules):
    checking = checkers(modules.values())
    tests = [
        (path.name, test)
        for path, module in modules.items()
        if path.name.startswith("test_")
        for test in find_tests(module)
    ]
    assert len(tests) > 2000
    assert [f"{name} {test.name}" for name, test in tests if cannot_fail(test, checking)] == []


HELPERS = ast.parse("""
def deep(x): check(x)
def check(x): assert x
def given(): return check
def other(x): print(x)
""")
BODIES = {
    '"""Only a docstring."""': False,
    "pass": False,
    "assert True": False,
    'assert "a text"': False,
    'assert (1 == 2, "a tuple")': False,
    "assert x == x": False,
    "x = 1": False,
    "other(x)": False,
    "assert x == y": True,
    "assert f() == f()": True,
    "check(x)": True,
    "deep(x)": True,
    "given(x)": True,
    "eventually(lambda: x)": True,
    "with pytest.raises(ValueError): f()": True,
    "try: check(x)\n    except OSError: pass": True,
    "if y: check(x)": True,
    "def inner(): assert x": False,
    "for item in f(): assert item": False,
    "for item in []: assert item": False,
    "for item in f().values():\n        with open(item): check(item)": False,
    "for item in f(): assert item\n    assert len(f()) > 3": True,
    "for item in (1, 2): assert f(item)": True,
    "for item in {**TABLE}.items(): assert item": True,
    "for item in parameter: assert item": True,
    "many = [f(), 2]\n    for item in many: assert item": True,
    "assert all(item > 1 for item in f())": False,
    "assert not any(item > 1 for item in f())": False,
    "assert not [item for item in f() if item]": False,
    "assert [item for item in f() if item] == []": False,
    "assert [item for item in f() if item] == [1]": True,
    "assert all(item in f() for item in (1, 2))": True,
    "assert not f()": True,
    "assert all([item > 1 for item in f()])": False,
    "assert all(map(other, f()))": False,
    "assert all(f())": True,
    "assert all(f(item) for item in (1, 2) if f(item) > 3)": False,
    "assert set(f()) <= {1, 2}": False,
    "assert {item.name for item in f()} <= {1, 2}": False,
    "assert {f(item) for item in (1, 2)} <= f()": True,
    "assert f() <= 3": True,
}
"""Bodies of a test, and whether it can fail."""


@pytest.mark.parametrize("body", BODIES)
def test_a_test_that_cannot_fail_is_found(body):
    (test,) = find_tests(ast.parse(f"def test_it(parameter):\n    {body}\n"))
    assert cannot_fail(test, checkers([HELPERS])) is not BODIES[body]
