"""The workflows and the update bot's configuration: pinned actions, few permissions, no secrets."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
GITHUB = ROOT / ".github"
WORKFLOWS = sorted(GITHUB.glob("workflows/*.y*ml"))
BY_HAND = {
    "generic/testing/envtest/assets/etcd",
    "generic/testing/envtest/assets/kubernetes",
    "generic/testing/landscape/assets/gardener",
    "tests/api/generic/golibrary",
}
"""Go modules with replacements or requirements that have to fit the version."""
SIGNS = {"contents": "read", "id-token": "write", "attestations": "write"}


def faults(text: str) -> Iterator[str]:
    """The faults of a workflow, one phrase each."""
    workflow = yaml.safe_load(text)
    if workflow.get("permissions") != {"contents": "read"}:
        yield "permissions are not explicit and read-only"
    for name, job in workflow["jobs"].items():
        if "timeout-minutes" not in job:
            yield f"{name} has no time limit"
        granted = job.get("permissions", {"contents": "read"})
        if granted != {"contents": "read"} and (granted != SIGNS or "environment" not in job):
            yield f"{name} has more permissions than it needs, or no environment"
        if "id-token" in granted and any("run" in step for step in job["steps"]):
            yield f"{name} runs programs beside its right to sign"
        yield from (
            f"{name}: an expression in a run line"
            for step in job["steps"]
            if "${{" in step.get("run", "")
        )
    if "secrets" in text:
        yield "uses a secret"
    for line in re.findall(r"uses: *(.*)", text):
        if not re.fullmatch(r"[\w-]+/[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line):
            yield f"not pinned by digest, with its tag: {line}"


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_pins_its_actions_and_has_few_permissions(path):
    assert list(faults(path.read_text())) == []


def test_one_digest_stands_for_one_version_in_all_workflows():
    text = "".join(path.read_text() for path in WORKFLOWS)
    pins = set(re.findall(r"uses: (\S+)@(\S+) # (\S+)", text))
    assert len(pins) == len({name for name, _, _ in pins}) == 7


PLANTED = [
    ("permissions:\n  contents: read\njobs:", "permissions: write-all\njobs:", "explicit"),
    ("@a26af69be951a213d495a4c3e4e4022e16d87065 # v5.6.0", "@v5", "not pinned"),
    (" # v5.6.0", "", "not pinned"),
    ("bash .ci/run", 'echo "${{ github.head_ref }}"', "expression in a run line"),
    ("TAG: ${{ github.ref_name }}", "TAG: ${{ secrets.TOKEN }}", "uses a secret"),
    ("    timeout-minutes: 10\n    steps:", "    steps:", "no time limit"),
    ("    environment: pypi\n", "    env: {}\n", "no environment"),
    (
        "      id-token: write\n",
        "      id-token: write\n      packages: write\n",
        "more permissions",
    ),
    ("        with:\n          subject-path: dist/*\n", "      - run: make\n", "right to sign"),
]


@pytest.mark.parametrize(("text", "planted", "fault"), PLANTED)
def test_a_fault_of_a_workflow_is_found(text, planted, fault):
    workflow = (GITHUB / "workflows" / "release.yaml").read_text()
    assert text in workflow
    found = list(faults(workflow.replace(text, planted, 1)))
    assert len(found) == 1
    assert fault in found[0]


def test_only_a_tag_publishes():
    workflow = yaml.safe_load((GITHUB / "workflows" / "release.yaml").read_text())
    assert workflow[True] == {"push": {"tags": ["v*"]}}  # YAML 1.1 reads `on` as a boolean
    jobs = workflow["jobs"]
    assert set(jobs["publish"]["needs"]) == {"test", "build"}
    assert [name for name, job in jobs.items() if "permissions" in job] == ["publish"]


def test_the_update_bot_keeps_actions_packages_and_go_modules_current():
    updates = yaml.safe_load((GITHUB / "dependabot.yml").read_text())["updates"]
    covered = {
        (update["package-ecosystem"], folder.strip("/"))
        for update in updates
        for folder in update.get("directories", [update.get("directory")])
    }
    asked = ["git", "-C", str(ROOT), "ls-files", "*go.mod"]
    listed = subprocess.run(asked, capture_output=True, check=True, text=True).stdout.split()
    modules = {str(Path(name).parent) for name in listed} - BY_HAND
    expected = {("github-actions", ""), ("pip", ""), *(("gomod", module) for module in modules)}
    assert covered == expected


def test_each_issue_form_has_required_fields():
    forms = [path for path in GITHUB.glob("ISSUE_TEMPLATE/*.yml") if path.stem != "config"]
    assert {path.stem for path in forms} == {"bug", "feature"}
    for path in forms:
        form = yaml.safe_load(path.read_text())
        assert {"name", "description", "body"} <= form.keys()
        fields = [part for part in form["body"] if part["type"] != "markdown"]
        assert len({field["id"] for field in fields}) == len(fields)
        assert any(field.get("validations", {}).get("required") for field in fields)


def test_the_template_of_pull_requests_names_existing_files():
    text = (GITHUB / "PULL_REQUEST_TEMPLATE.md").read_text()
    names = re.findall(r"`([\w/]+\.\w+)`", text)
    assert names
    for name in names:
        assert (ROOT / name).exists(), name
