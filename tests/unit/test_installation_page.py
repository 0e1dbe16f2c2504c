"""docs/installation.md agrees with pyproject.toml."""

from __future__ import annotations

import re

import pytest
from packaging.requirements import Requirement

from tests.support.pages.installed_wheel import PROJECT, ROOT

PAGE = (ROOT / "docs" / "installation.md").read_text()
ROWS = dict(re.findall(r"^\| `([a-z-]+)` \| ([^|]*) \|", PAGE, re.MULTILINE))
EXTRAS = PROJECT["optional-dependencies"]


def test_each_extra_has_a_row():
    assert ROWS.keys() == EXTRAS.keys()


@pytest.mark.parametrize("extra", sorted(EXTRAS.keys() - {"dev"}))
def test_the_row_of_an_extra_names_its_packages(extra):
    named = {word.strip("`") for word in ROWS[extra].split(", ")}
    direct = [Requirement(text) for text in EXTRAS[extra]]
    ours = {extra for item in direct if item.name == PROJECT["name"] for extra in item.extras}
    assert named == ours | {item.name for item in direct} - {PROJECT["name"]}


def test_the_page_names_the_supported_versions_of_python():
    prefix = "Programming Language :: Python :: 3."
    versions = [
        classifier.rpartition(" ")[2]
        for classifier in PROJECT["classifiers"]
        if classifier.startswith(prefix)
    ]
    assert f"| Python | {', '.join(versions)}." in PAGE
    assert PROJECT["requires-python"] == f">={versions[0]}"
