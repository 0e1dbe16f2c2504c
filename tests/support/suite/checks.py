"""Tests that cannot fail: they check nothing, or nothing where a collection is empty."""

import ast
from collections.abc import Iterable, Iterator

Test = ast.FunctionDef
_CHECKS = frozenset({"assert_rehearsal", "eventually", "fail", "raises", "warns"})
_PASSED_ON = frozenset(
    {"chain", "dict", "enumerate", "items", "keys", "list", "map", "pairwise", "product"}
    | {"reversed", "set", "sorted", "tuple", "values", "zip"}
)
"""Functions and methods whose result is as empty as their arguments."""
_SHARED = ("adversary", "rules", "soak", "support")
"""Folders of `tests` that tests may import from."""
_ENDLESS = frozenset({"count", "cycle", "range", "repeat"})


def find_tests(module: ast.Module) -> Iterator[Test]:
    """Yield the tests of a module."""
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield node


def imported_tests(module: ast.Module) -> Iterator[str]:
    """Yield the test modules, and the modules beside them, that a module imports."""
    for node in ast.walk(module):
        match node:
            case ast.Import(names=names):
                imported = [alias.name for alias in names]
            case ast.ImportFrom(module=str(origin), names=names):
                imported = [f"{origin}.{alias.name}" for alias in names]
            case _:
                continue
        yield from filter(_is_of_tests, imported)


def _is_of_tests(name: str) -> bool:
    folder, _, inside = name.partition(".")
    if folder == "tests":
        return not inside.startswith(_SHARED)
    return folder == "conftest" or folder.startswith("test_")


def checkers(modules: Iterable[ast.Module]) -> frozenset[str]:
    """Return the names of functions that check something, also by a function that they name."""
    named: dict[str, set[str]] = {}
    found = set(_CHECKS)
    for module in modules:
        for node in ast.walk(module):
            if isinstance(node, ast.FunctionDef):
                named.setdefault(node.name, set()).update(_called(node) | _returned(node))
                if any(_is_assertion(item) for item in ast.walk(node)):
                    found.add(node.name)
    while more := {name for name in named.keys() - found if named[name] & found}:
        found |= more
    return frozenset(found)


def cannot_fail(test: Test, checking: frozenset[str]) -> bool:
    """Return whether each check of a test, if it has one, is of a collection that may be empty."""
    filled = {argument.arg for argument in test.args.args}
    for node in ast.walk(test):
        if isinstance(node, ast.Assign) and _is_filled(node.value, filled):
            filled |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    asserted = [node.test for node in ast.walk(test) if isinstance(node, ast.Assert)]
    return any(map(_is_always_true, asserted)) or not any(
        _is_certain(statement, filled, checking) for statement in test.body
    )


def _is_certain(statement: ast.stmt, filled: set[str], checking: frozenset[str]) -> bool:
    """Return whether a statement certainly checks something, or one in it does."""
    if isinstance(statement, ast.Assert):
        return not _may_be_vacuous(statement.test, filled)
    if isinstance(statement, ast.For) and not _is_filled(statement.iter, filled):
        return False
    inner = [item for item in ast.iter_child_nodes(statement) if isinstance(item, ast.stmt)]
    if isinstance(statement, ast.FunctionDef):
        return False
    if not inner:
        return bool(_called(statement) & checking) or _is_assertion(statement)
    heads = [item for item in ast.iter_child_nodes(statement) if not isinstance(item, ast.stmt)]
    handlers = [item for head in heads for item in ast.iter_child_nodes(head)]
    inner += [item for item in handlers if isinstance(item, ast.stmt)]
    return any(_called(head) & checking for head in heads) or any(
        _is_certain(item, filled, checking) for item in inner
    )


def _is_always_true(value: ast.expr) -> bool:
    if any(isinstance(node, ast.Call) for node in ast.walk(value)):
        return isinstance(value, ast.Tuple)  # a second call may have another result
    if isinstance(value, ast.Compare):
        return any(ast.dump(value.left) == ast.dump(other) for other in value.comparators)
    return isinstance(value, ast.Constant | ast.JoinedStr | ast.Tuple | ast.Lambda)


def _may_be_vacuous(test: ast.expr, filled: set[str]) -> bool:
    """Return whether an assertion holds if a collection has no elements."""
    match test:
        case ast.Call(func=ast.Name(id="all"), args=[found]):
            return _may_be_empty(found, filled)
        case ast.UnaryOp(op=ast.Not(), operand=ast.Call(func=ast.Name(id="any"), args=[found])):
            return _is_open(found, filled)
        case ast.UnaryOp(op=ast.Not(), operand=found):
            return _is_open(found, filled)
        case ast.Compare(left=found, ops=[ast.Eq()], comparators=[other]):
            return ast.unparse(other) in ("[]", "()", "{}", "set()") and _is_open(found, filled)
        case ast.Compare(left=found, ops=[ast.LtE() | ast.Lt()]):
            return _may_be_empty(found, filled)
    return False


_Comprehension = ast.GeneratorExp | ast.ListComp | ast.SetComp | ast.DictComp


def _is_open(found: ast.expr, filled: set[str]) -> bool:
    return isinstance(found, _Comprehension) and not _is_filled(found.generators[0].iter, filled)


def _may_be_empty(found: ast.expr, filled: set[str]) -> bool:
    """Return whether a comprehension, or a call that makes a collection, may have no elements."""
    if isinstance(found, _Comprehension):
        return _is_open(found, filled) or any(part.ifs for part in found.generators)
    made = isinstance(found, ast.Call) and _name(found.func) in _PASSED_ON
    return made and not _is_filled(found, filled)


def _is_filled(value: ast.expr, filled: set[str]) -> bool:
    """Return whether a collection has elements, as far as its expression shows."""
    match value:
        case ast.List() | ast.Tuple() | ast.Set():
            return any(
                not isinstance(item, ast.Starred) or _is_filled(item.value, filled)
                for item in value.elts
            )
        case ast.Dict():
            return bool(value.keys)
        case ast.Constant():
            return bool(value.value)
        case ast.Name():
            return value.id in filled or value.id.isupper()
        case ast.Attribute():
            return value.attr.isupper()
        case ast.Subscript():
            return _is_filled(value.value, filled)
        case ast.BinOp():
            return _is_filled(value.left, filled) or _is_filled(value.right, filled)
        case ast.Call():
            return _is_filled_by(value, filled)
    return False


def _is_filled_by(call: ast.Call, filled: set[str]) -> bool:
    name = _name(call.func)
    given = [*call.args, *([call.func.value] if isinstance(call.func, ast.Attribute) else [])]
    is_filled = any(_is_filled(item, filled) for item in given)
    return name in _ENDLESS or (name in _PASSED_ON and is_filled)


def _is_assertion(node: ast.AST) -> bool:
    if isinstance(node, ast.Raise) and node.exc is not None:
        return "AssertionError" in ast.unparse(node.exc)
    return isinstance(node, ast.Assert)


def _called(node: ast.AST) -> set[str]:
    return {_name(item.func) for item in ast.walk(node) if isinstance(item, ast.Call)}


def _returned(function: ast.FunctionDef) -> set[str]:
    """Return the names of functions that a fixture gives to its test."""
    found = [item.value for item in ast.walk(function) if isinstance(item, ast.Return | ast.Yield)]
    return {_name(item) for item in found if item is not None}


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
