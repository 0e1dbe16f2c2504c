"""docs/installation.md says what pyproject.toml says."""

from __future__ import annotations

import re

import pytest
from installed import PROJECT, ROOT
from packaging.requirements import Requirement

PAGE = (ROOT / "docs" / "installation.md").read_text()
ROWS = dict(re.findall(r"^\| `([a-z-]+)` \| ([^|]*) \|", PAGE, re.MULTILINE))
EXTRAS = PROJECT["optional-dependencies"]


def test_each_extra_has_a_row():
    assert ROWS.keys() == EXTRAS.keys()


@pytest.mark.parametrize("extra", sorted(EXTRAS.keys() - {"dev"}))
def test_the_row_of_an_extra_names_what_it_installs(extra):
    named = {word.strip("`") for word in ROWS[extra].split(", ")}
    direct = [Requirement(text) for text in EXTRAS[extra]]
    ours = {extra for one in direct if one.name == PROJECT["name"] for extra in one.extras}
    assert named == ours | {one.name for one in direct} - {PROJECT["name"]}


def test_the_page_names_the_supported_versions_of_python():
    prefix = "Programming Language :: Python :: 3."
    versions = [one.rpartition(" ")[2] for one in PROJECT["classifiers"] if one.startswith(prefix)]
    assert f"| Python | {', '.join(versions)}." in PAGE
    assert PROJECT["requires-python"] == f">={versions[0]}"
