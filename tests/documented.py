"""The Python examples of docs/extensions.md, to be run by tests."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

PAGE = Path(__file__).parents[1] / "docs" / "extensions.md"


def run_examples(heading: str) -> dict[str, Any]:
    """Execute the examples below that heading; return what they define."""
    _, _, section = PAGE.read_text().partition(f"\n{heading}\n")
    section = re.split(r"^#+ ", section, maxsplit=1, flags=re.MULTILINE)[0]
    examples = re.findall(r"^```python\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
    assert examples, f"{PAGE.name} has no example below {heading}"
    module = ModuleType("documented_example")
    sys.modules[module.__name__] = module  # where the annotations of its classes are resolved
    for example in examples:
        exec(example, vars(module))
    return vars(module)
