"""docs/finalizers.md names each test of the facts, and no other."""

from __future__ import annotations

import ast
import re
from pathlib import Path

HERE = Path(__file__).parents[2] / "api" / "generic"
PAGE = HERE.parents[2] / "docs" / "finalizers.md"
FACTS = {"F": "test_finalizer_facts.py", "O": "test_owner_facts.py"}


def test_each_fact_is_listed_once_and_nothing_else():
    told = re.findall(r"`(test_\w+)`", PAGE.read_text())
    proven = [
        node.name
        for name in FACTS.values()
        for node in ast.parse((HERE / name).read_text()).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]
    assert sorted(told) == sorted(proven)
