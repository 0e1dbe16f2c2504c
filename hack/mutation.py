"""Mutate the modules that decide, and list the mutants that no test notices: `make mutation`.

mutmut (`[tool.mutmut]` in pyproject.toml) changes one expression of a function at a time and runs
the tests that call it. A survivor is accepted if `tests/mutation.toml` lists it, with the reason;
any other fails the command. mutmut leaves out decorated functions and data outside functions:
tables of the unit tests pin those.
"""

import ast
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import Struct

ROOT = Path(__file__).parent.parent
ACCEPTED = ROOT / "tests" / "mutation.toml"
CHILDREN = 2
NOTICED = ("killed", "timeout", "caught by type check")


class Survivor(Struct, frozen=True):
    """A mutant that no test notices: the lines of a function before and after."""

    function: str
    """The module and the name, such as generic.reconciler.track.Tracks.end."""
    before: str
    after: str


def survivor_of(name: str, diff: str) -> Survivor:
    """Return the survivor with this name of mutmut, by the diff of its function."""
    function = re.sub(r"__mutmut_\d+$", "", name).replace("x\u01c1", "").replace("\u01c1", ".")
    function = re.sub(r"\.x_([^.]+)$", r".\1", function)
    changed = {sign: _changed(diff, sign) for sign in "-+"}
    return Survivor(function, changed["-"], changed["+"])


def _changed(diff: str, sign: str) -> str:
    lines = [line for line in diff.splitlines() if line[:1] == sign and line[:3] != sign * 3]
    return " ".join(line[1:].strip() for line in lines)


def accepted() -> dict[Survivor, str]:
    """Return the reviewed survivors with the class of their reason."""
    found: dict[Survivor, str] = {}
    for reason, entries in tomllib.loads(ACCEPTED.read_text()).items():
        found |= {Survivor(*entry): reason for entry in entries}
    return found


def place_of(survivor: Survivor) -> str:
    """Return the file and the line of the changed expression."""
    *module, function = survivor.function.split(".")
    if module[-1][0].isupper():
        module.pop()
    path = Path(*module).with_suffix(".py")
    lines = (ROOT / path).read_text().splitlines()
    numbers = _lines_of(ast.parse("\n".join(lines)), function)
    found = (number for number in numbers if survivor.before.startswith(lines[number - 1].strip()))
    return f"{path}:{next((number for number in found if lines[number - 1].strip()), 0)}"


def _lines_of(tree: ast.AST, function: str) -> Iterator[int]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == function:
            yield from range(node.lineno, (node.end_lineno or node.lineno) + 1)


def judge(survivors: Iterable[Survivor], known: dict[Survivor, str]) -> Iterator[str]:
    """Yield a line for each survivor that is not listed, and each entry that does not survive."""
    found = set(survivors)
    for survivor in sorted(found - known.keys(), key=str):
        place = place_of(survivor)
        yield f"{place}: {survivor.before} -> {survivor.after}: no test notices this"
    for survivor in sorted(known.keys() - found, key=str):
        yield f"{ACCEPTED.name}: {survivor.function}: {survivor.after}: remove it, tests notice it"


def main() -> None:
    """Run mutmut; exit with status 1 for a difference to the reviewed list."""
    began = time.monotonic()
    shutil.rmtree(ROOT / "mutants", ignore_errors=True)  # else it keeps the results of other tests
    _mutmut("run", "--max-children", str(CHILDREN), quiet=False)
    results = [line.split(": ") for line in _mutmut("results", "--all", "true").splitlines()]
    statuses = {name.strip(): status for name, status in results}
    left = [name for name, status in statuses.items() if status not in NOTICED]
    survivors = [survivor_of(name, _mutmut("show", name)) for name in left]
    known = accepted()
    _summarize(statuses, survivors, known)
    problems = list(judge(survivors, known))
    print(*problems, f"{(time.monotonic() - began) / 60:.0f} minutes", sep="\n")
    sys.exit(1 if problems or not statuses else 0)


def _summarize(
    statuses: dict[str, str], survivors: list[Survivor], known: dict[Survivor, str]
) -> None:
    modules = Counter(name.partition(".x")[0] for name in statuses)
    for module, number in sorted(modules.items()):
        here = [survivor for survivor in survivors if survivor.function.startswith(f"{module}.")]
        print(f"{module}: {number} mutants, {number - len(here)} noticed, {len(here)} survivors")
    for reason, number in sorted(
        Counter(known.get(survivor, "not listed") for survivor in survivors).items()
    ):
        print(f"{number} survivors: {reason}")


def _mutmut(*arguments: str, quiet: bool = True) -> str:
    program = Path(sys.executable).with_name("mutmut")
    output = subprocess.PIPE if quiet else None
    done = subprocess.run([program, *arguments], cwd=ROOT, stdout=output, text=True, check=True)
    return done.stdout or ""


if __name__ == "__main__":
    main()
