"""Check the words of texts for users: pages, messages, help, public docstrings. `make lint`.

The project once had a dialect of its own: free relative clauses, sentences without an agent, and
metaphors in place of terms. Each pattern below is one of its words, with the term to use instead.
Code in a text (fences, `names`) is not checked, nor are comments and private docstrings.
"""

import ast
import re
import sys
from collections.abc import Iterator
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
FENCE = re.compile(r"^\s*(?:```|~~~)")
CODE = re.compile(r"`[^`]*`|\{\{.*?\}\}|<!--.*?-->|\(https?:[^)]*\)")


def findings(line: str) -> Iterator[tuple[str, str]]:
    """Yield each word of the dialect in the line, with the term to use instead."""
    text = CODE.sub("x", line)
    for pattern, term in TERMS.items():
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
    tree = ast.parse(code)
    private = {id(one) for node in ast.walk(tree) for one in _unread(node)}
    texts = (node for node in ast.walk(tree) if isinstance(node, ast.Constant))
    for text in texts:
        if isinstance(text.value, str) and id(text) not in private:
            for number, line in enumerate(text.value.splitlines(), text.lineno):
                yield number, line.strip() if " " in line.strip() else ""


def _unread(node: ast.AST) -> Iterator[ast.Constant]:
    """Yield the docstrings that no user reads: of modules, and of private names."""
    public = isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_")
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and not public:
        for one in node.body:
            if isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant):
                yield one.value


def main() -> None:
    """Print `FILE:LINE: "WORD": use TERM` for each finding; exit with 1 if there is one."""
    pages = [(path, page_lines) for glob in PAGES for path in sorted(ROOT.glob(glob))]
    code = [(path, code_lines) for name in PACKAGES for path in sorted((ROOT / name).rglob("*.py"))]
    found = 0
    for path, lines in [*pages, *code]:
        for number, line in lines(path.read_text(encoding="utf-8")):
            for word, term in findings(line):
                print(f'{path.relative_to(ROOT)}:{number}: "{word}": use "{term}"')
                found += 1
    sys.exit(min(found, 1))


if __name__ == "__main__":
    main()
