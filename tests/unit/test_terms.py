"""The terms of this project are introduced where they first appear on the pages of beginners."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
GLOSSARY = (DOCS / "glossary.md").read_text()
TERMS = {
    "drill": "Drill",
    "rehearsal": "Rehearsal",
    "scenario": "Scenario",
    "path": "Path",
    "explore": "Explore",
    "strip": "Strip",
    "seed object": "Seed objects",
    "external resource": "External resource",
    "state": "State",
    "providerStatus": "Provider status",
}
"""Each term, and its entry in the glossary."""
PAGES = ["tutorial.md", "new-project.md"]
LEFT_OUT = re.compile(
    r"^```.*?^```|`[^`\n]+`|\]\([^)]*\)|^#.*?$|folder with", re.DOTALL | re.MULTILINE
)
"""Code, targets of links and headings."""


def first_use(page, term):
    """The first use of a term in the sentences of a page, with its surroundings; "" for none."""
    text = LEFT_OUT.sub("", page)
    found = re.search(rf"[*\[]?\b{term}s?\b[*]?", text)
    return found[0] if found else ""


@pytest.mark.parametrize("term", TERMS)
@pytest.mark.parametrize("page", PAGES)
def test_a_term_is_introduced_or_linked_where_a_page_first_uses_it(page, term):
    found = first_use((DOCS / page).read_text(), term)
    assert found == "" or found[0] in "*["
    if page == "tutorial.md":
        assert found.strip("*").rstrip("s") == term.rstrip("s")


@pytest.mark.parametrize("entry", TERMS.values())
def test_the_glossary_has_each_term(entry):
    assert f"\n{entry}\n  " in GLOSSARY


def test_a_use_before_the_introduction_is_found():
    assert first_use("The drill runs. A *drill* is a test.", "drill") == "drill"
    assert first_use("`drill`: a *drill* is a test.", "drill") == "*drill*"
    assert first_use("See the [drill](tutorial.md).", "drill") == "[drill"
