"""Check that code assigns one name a line, names loop variables and classes, and formats no CEL.

`make lint` runs it.

`a, b = x, y` makes a reader count positions, and says that the values belong together. A swap,
and the unpacking of a sequence of any length, are allowed. `f(*(a, b))` only saves lines. `one`
does not tell what is iterated. A class name that two modules define is ambiguous in a search and in
an import. An expression of CEL that is formatted as text has its values unquoted, and its operands
without parentheses.
"""

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
FOLDERS = ("actuator", "generic", "extensions", "hack")

ON_THE_WIRE = {
    "BackupBucketStatus",
    "BastionStatus",
    "ControlPlaneConfig",
    "DNSRecordStatus",
    "InfrastructureStatus",
}
"""Kinds of provider configurations and statuses: a provider's group has Gardener's names, too."""

BUILDER = Path("generic/kube/expressions.py")
"""The only module that formats CEL."""
CEL = re.compile(
    r"^[\Wx]*(&&|\|\|)[\Wx]*$|\b(has|size|dyn)\(|\.(all|exists|map|filter|orValue|matches)\("
    r"|\b(object|oldObject|self|oldSelf|request|variables|params)\.\w"
)
EXPRESSIONS = ("expression", "messageExpression", "rule")
"""Fields of Kubernetes that are CEL."""


def findings(code: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the problem of each dense assignment or call, and each loop over `one`."""
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.Assign(targets=[ast.Tuple() as target], value=ast.Tuple() as value):
                if not _needs_all_values(target, value):
                    yield node.lineno, "assign one name a line"
            case ast.For(target=target) | ast.comprehension(target=target):
                if any(name.id == "one" for name in _names(target)):
                    yield target.lineno, "name the loop variable `one` by its element"
            case ast.Lambda(args=ast.arguments(args=args)):
                if any(argument.arg == "one" for argument in args):
                    yield node.lineno, "name the argument `one` by its element"
            case ast.Call(args=args):
                for argument in args:
                    match argument:
                        case ast.Starred(value=ast.Tuple() | ast.List()):
                            yield argument.lineno, "write the arguments without `*(…)`"


def formatted_cel(code: str) -> Iterator[int]:
    """Yield the line of each expression of CEL that is formatted as text; a name may be."""
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.Call(func=ast.Name(id="Expr"), args=[given, *_]):
                if not re.fullmatch(r"\w*", _format(given)):
                    yield node.lineno
            case ast.Dict(keys=keys, values=values):
                fields = zip(keys, values, strict=True)
                yield from (
                    value.lineno
                    for key, value in fields
                    if isinstance(key, ast.Constant) and key.value in EXPRESSIONS and _format(value)
                )
            case ast.expr() if CEL.search(_format(node)):
                yield node.lineno


def _format(node: ast.expr) -> str:
    """Return a text that is made of values, with `x` for each; "" for any other expression."""
    match node:
        case ast.JoinedStr(values=values):
            return "".join(map(_text, values))
        case ast.BinOp(left=left, op=ast.Add(), right=right) if _text(left) + _text(right) != "xx":
            return _text(left) + _text(right)
        case (
            ast.BinOp(left=ast.Constant(value=str(text)), op=ast.Mod())
            | ast.Call(
                func=ast.Attribute(value=ast.Constant(value=str(text)), attr="format" | "join")
            )
        ):
            return re.sub(r"%\w|\{\w*\}", "x", text)
    return ""


def _text(node: ast.expr) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return _format(node) or "x"


def repeated(codes: Iterable[str]) -> Iterator[str]:
    """Yield each class name that two modules define, except kinds on the wire.

    `_Event` counts as `Event`.
    """
    names = Counter(
        node.name.lstrip("_")
        for code in codes
        for node in ast.parse(code).body
        if isinstance(node, ast.ClassDef)
    )
    yield from sorted(
        name for name, times in names.items() if times > 1 and name not in ON_THE_WIRE
    )


def _needs_all_values(target: ast.Tuple, value: ast.Tuple) -> bool:
    """Whether a value is computed from what the statement assigns, or a part is unpacked."""
    if any(isinstance(element, ast.Starred) for element in (*target.elts, *value.elts)):
        return True
    assigned = {ast.unparse(element) for element in target.elts}
    return any(
        ast.unparse(node) in assigned for node in ast.walk(value) if isinstance(node, ast.expr)
    )


def _names(target: ast.expr) -> Iterator[ast.Name]:
    return (node for node in ast.walk(target) if isinstance(node, ast.Name))


def main() -> None:
    """Print `FILE:LINE: PROBLEM` for each finding; exit with 1 if there is one."""
    paths = sorted(path for name in FOLDERS for path in (ROOT / name).rglob("*.py"))
    codes = {path.relative_to(ROOT): path.read_text(encoding="utf-8") for path in paths}
    lines = [
        f"{path}:{line}: {problem}"
        for path, code in codes.items()
        for line, problem in findings(code)
    ]
    lines += [
        f"{path}:{line}: build the expression of CEL with generic.kube.expressions"
        for path, code in codes.items()
        if path != BUILDER
        for line in sorted({*formatted_cel(code)})
    ]
    lines += [f"{name}: give each class a name of its own" for name in repeated(codes.values())]
    print(*lines, sep="\n", end="\n" if lines else "")
    sys.exit(min(len(lines), 1))


if __name__ == "__main__":
    main()
