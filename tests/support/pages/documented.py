"""The commands and the Python examples of the pages, to be run by tests."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any

__all__ = ["ROOT", "commands", "files_of", "run_examples", "shell_lines"]

ROOT = Path(__file__).parents[3]
HISTORY = "CHANGELOG.md"
_COMMAND = re.compile(
    r"^(?:    )?(?:[A-Z_]+=\S+ )?(?P<line>actuator [a-z][^`|#\n]*)"
    r"|`(?P<inline>actuator [a-z][^`|#]*)",
    re.MULTILINE,
)
_OTHERS = (
    r"(?:kubectl|pip|docker|git|helm|make|python3?|\.venv/bin/python|uv|go|pytest|touch|export"
    r"|for \w+ in) [^`\n]+"
)
_PIPED = r"actuator [^`\n]+ [|>] [^`\n]+"
_LINE = re.compile(
    rf"^ *(?P<line>{_OTHERS}|{_PIPED})$|`(?P<inline>{_OTHERS}|{_PIPED})`", re.MULTILINE
)
_HEREDOC = re.compile(r"^( *)(kubectl [^\n]*) <<EOF\n(.*?)^ *EOF$", re.DOTALL | re.MULTILINE)
_PYTHON = re.compile(r"^ *```python\n.*?^ *```$", re.DOTALL | re.MULTILINE)
_FILE = re.compile(r"^Create `(\S+)`:\n\n```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
_NUMBERS = count()
"""Each module of examples has a name of its own, so that no test replaces that of another."""


def _texts() -> Iterator[tuple[str, str]]:
    """Each page and its text; the changelog tells of commands of earlier versions."""
    for pattern in ("*.md", "docs/**/*.md", "extensions/*/README.md"):
        for page in sorted(ROOT.glob(pattern)):
            if page.name != HISTORY:
                yield page.relative_to(ROOT).as_posix(), page.read_text()


def commands() -> Iterator[tuple[str, str]]:
    """The page of each `actuator` command, and the command without pipes and comments."""
    for page, text in _texts():
        for match in _COMMAND.finditer(text):
            yield page, " ".join((match["line"] or match["inline"]).split())


def shell_lines() -> Iterator[tuple[str, str, str]]:
    """The page of each line with another program or a pipe, the line, and its standard input."""
    for page, text in _texts():
        for indent, line, given in _HEREDOC.findall(text):
            yield page, line, re.sub(rf"^{indent}", "", given, flags=re.MULTILINE)
        for match in _LINE.finditer(_PYTHON.sub("", _HEREDOC.sub("", text))):
            line = (match["line"] or match["inline"]).partition(" #")[0]
            yield page, line.strip(), ""


def files_of(page: str) -> dict[str, str]:
    """The Python files that a page of `docs` creates: their names and texts."""
    return dict(_FILE.findall((ROOT / "docs" / page).read_text()))


def run_examples(heading: str, page: str = "extensions.md") -> dict[str, Any]:
    """Execute the examples below that heading of a page; return their definitions."""
    _, _, section = (ROOT / "docs" / page).read_text().partition(f"\n{heading}\n")
    section = re.split(r"^#+ ", section, maxsplit=1, flags=re.MULTILINE)[0]
    examples = re.findall(r"^```python\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
    assert examples, f"{page} has no example below {heading}"
    module = ModuleType(f"documented_example_{next(_NUMBERS)}")
    sys.modules[module.__name__] = module  # where the annotations of its classes are resolved
    for example in examples:
        exec(example, vars(module))
    return vars(module)
