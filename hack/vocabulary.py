"""Check the words of texts for users (pages, messages, help, docstrings), of names and of tests.

`make lint`. The project once had a dialect of its own: free relative clauses, sentences without an
agent, and metaphors in place of terms. Each pattern below is one of its words, with the term to use
instead. Code in a text (fences, `names`) is not checked, nor are comments and private docstrings.
Names that code defines are checked as texts of their words. The docstrings of tests, and the names
of tests, which are sentences, have some more terms.
"""

import ast
import re
import sys
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGES = ("actuator", "generic", "extensions")
PAGES = ("*.md", "docs/**/*.md", "extensions/*/README.md", "generic/**/*.yaml", "generic/**/*.html")
_BEGIN = r"(?:^|[.!?:|] |[-*] |\*\*)"
TERMS = {
    _BEGIN + r"(?:What|Whatever|Who|Whoever|Whose)\b(?![^.]*\?)": "a subject that names the thing",
    r"\b(?:some|no)body\b": "the agent: the user, another controller, no controller",
    r"\btold (?:of|about)\b|\bhears? of\b|\blearns? of\b": "receives, is notified",
    r"\bsaid of\b|\bsays (?:so|why)\b|\bsaid so\b": "reports, explains",
    r"\bby now\b": "already, or nothing",
    r"\blet(?:s|ting)? go\b": "removes the finalizer, releases",
    r"\baside\b": "abandoned, except",
    r"\bon record\b": "recorded",
    r"\bleft-?overs?\b": "remaining external resource",
    r"\bvanish\w*": "is deleted, is not found",
    r"\bmute\b": "unresponsive",
    r"\bbypass\w*": "finalizer removed externally",
    r"\bdice\b": "seed",
    r"\bmend(?:s|ed|ing)?\b": "fix, repair",
    r"\bhurr(?:y|ies|ied)\b": "enqueue urgently",
    r"\b(?:comes?|came|takes?|took|taken|are|is) (?:\w+ )?off\b": "is removed",
    r"\bmachinery\b": "framework, collaborators",
    r"\bstand-?ins?\b|\bdoubles?\b": "simulated",
    r"\bfor ever\b": "without limit, permanently",
    r"\bwhat holds\b": "guarantee, rule",
    r"\bwhat (?:is|was|it|they|we)\b": "the noun",
    r"\ba word\b|\bin time of\b": "a plain statement",
}
IN_TESTS = TERMS | {
    r"\bwhat\b|\bwhoever\b": "the noun",
    r"\b(?:told|said)\b": "reported, requested",
    r"\b(?:every|any)body\b": "the agent",
}
IN_NAMES_OF_TESTS = IN_TESTS | {r"^(?:That|Those|Where|How)\b": "a subject that names the thing"}
FENCE = re.compile(r"^\s*(?:```|~~~)")
CODE = re.compile(r"`[^`]*`|\{\{.*?\}\}|<!--.*?-->|\(https?:[^)]*\)")


def findings(line: str, terms: dict[str, str] = TERMS) -> Iterator[tuple[str, str]]:
    """Yield each word of the dialect in the line, with the term to use instead."""
    text = CODE.sub("x", line)
    for pattern, term in terms.items():
        for found in re.finditer(pattern, text, re.IGNORECASE if "What" not in pattern else 0):
            yield found.group().strip(" .:|*-"), term


def page_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the numbered lines of a page that are not inside a fence."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if FENCE.match(line) and not line.strip().endswith("```{glossary}"):
            fenced = not fenced
        elif not fenced and not line.startswith("    "):
            yield number, line


def code_lines(code: str) -> Iterator[tuple[int, str]]:
    """Yield the numbered lines of messages and public docstrings in Python code."""
    private = {id(item) for node in _nodes(code) for item in _unread(node)}
    texts = (node for node in _nodes(code) if isinstance(node, ast.Constant))
    for text in texts:
        if isinstance(text.value, str) and id(text) not in private:
            for number, line in enumerate(text.value.splitlines(), text.lineno):
                yield number, line.strip() if " " in line.strip() else ""


def identifier_lines(code: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the words of each name that Python code defines: "let_go" as "let go"."""
    for node in _nodes(code):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.arg(arg=name):
                yield node.lineno, _words(name)
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield node.lineno, _words(name)


def docstring_lines(code: str) -> Iterator[tuple[int, str]]:
    """Yield the numbered lines of each docstring, of private names and attributes too."""
    for node in _nodes(code):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                for number, line in enumerate(text.splitlines(), node.lineno):
                    yield number, line.strip()


def test_name_lines(code: str) -> Iterator[tuple[int, str]]:
    """Yield the line of each test, and its name as a sentence."""
    for node in _nodes(code):
        match node:
            case ast.FunctionDef(name=name) if name.startswith("test_"):
                yield node.lineno, _words(name.removeprefix("test_")).capitalize()


@lru_cache(maxsize=1)
def _nodes(code: str) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(ast.parse(code)))


def _words(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|_", " ", name).strip().lower()


def _unread(node: ast.AST) -> Iterator[ast.Constant]:
    """Yield the docstrings that no user reads: of modules, and of private names."""
    public = isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_")
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and not public:
        for item in node.body:
            if isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant):
                yield item.value


Lines = Callable[[str], Iterator[tuple[int, str]]]


def problems(paths: list[Path], *checks: tuple[Lines, dict[str, str]]) -> Iterator[str]:
    """Yield `FILE:LINE: "WORD": use TERM` for each finding in the files' names and these lines."""
    for path in paths:
        text = path.read_text(encoding="utf-8")
        found = (
            (item, terms)
            for lines, terms in checks
            for item in [(1, _words(path.stem)), *lines(text)]
        )
        for (number, line), terms in found:
            for word, term in findings(line, terms):
                yield f'{path.relative_to(ROOT)}:{number}: "{word}": use "{term}"'


def main() -> None:
    """Print each problem; exit with 1 if there is one."""
    pages = [path for glob in PAGES for path in sorted(ROOT.glob(glob))]
    product = [path for name in PACKAGES for path in sorted((ROOT / name).rglob("*.py"))]
    tools = sorted((ROOT / "hack").rglob("*.py"))
    tests = sorted((ROOT / "tests").rglob("*.py"))
    names = (identifier_lines, TERMS)
    found = [
        *problems(pages, (page_lines, TERMS)),
        *problems(product, (code_lines, TERMS), names),
        *problems(tools, names),
        *problems(tests, names, (docstring_lines, IN_TESTS), (test_name_lines, IN_NAMES_OF_TESTS)),
    ]
    for problem in found:
        print(problem)
    sys.exit(min(len(found), 1))


if __name__ == "__main__":
    main()
