"""What the tests themselves have to keep to; `make check` asks before CI collects them."""

from collections import Counter
from pathlib import Path

import yaml

HERE = Path(__file__).parent


def test_every_module_has_a_name_of_its_own():
    """The folders are no packages: of two modules of one name pytest imports the first twice."""
    names = Counter(path.name for path in HERE.rglob("*.py") if path.name != "conftest.py")
    assert [name for name, count in names.items() if count > 1] == []


def test_the_update_bot_keeps_the_actions_of_the_workflows_current():
    github = HERE.parent / ".github"
    workflows = [yaml.safe_load(path.read_text()) for path in github.glob("workflows/*.yml")]
    steps = [step for one in workflows for job in one["jobs"].values() for step in job["steps"]]
    assert any("uses" in step for step in steps)
    updates = yaml.safe_load((github / "dependabot.yml").read_text())["updates"]
    ecosystems = {(one["package-ecosystem"], one["directory"]) for one in updates}
    assert ("github-actions", "/") in ecosystems
