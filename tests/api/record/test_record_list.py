"""`actuator record list / drills` and `actuator orphans list --by`: counts, bad input, escaping."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from actuator import ExternalResource
from actuator.codec import encode
from generic.kube.client import HttpClient
from generic.reconciler.budget import Budget
from generic.reconciler.origin import DeletionOrigin
from generic.reconciler.orphans import FORCE_DELETIONS, OrphanedFrom, OrphanReason
from generic.reconciler.orphans.forced import Ended, forced_record
from generic.reconciler.orphans.record import record
from generic.testing.envtest import Environment
from tests.support.pages.commands import run_command

Call = Callable[..., CompletedProcess[str]]
EVIL = "eve\x1b[2J\nroot"
YEAR_3000 = ("--since", "3000-01-01", "--until", "3000-01-02")
"""The force deletions of these tests only."""


@pytest.fixture
def call(environment: Environment) -> Call:
    def call(*arguments: str, status: int = 0) -> CompletedProcess[str]:
        seed = ("--kubeconfig", str(environment.kubeconfig))
        return run_command(*arguments, *seed, status=status)

    return call


@pytest.fixture
def former(namespace: str) -> OrphanedFrom:
    return OrphanedFrom(
        api_version="extensions.gardener.cloud/v1alpha1",
        kind="Infrastructure",
        namespace=namespace,
        name="infra",
        uid=namespace,
        origin=DeletionOrigin(project=namespace, confirmed_by=EVIL),
    )


@pytest.fixture
def forced(admin: HttpClient, former: OrphanedFrom) -> OrphanedFrom:
    """The object of a ForceDeletionRecord at the first moment of the year 3000."""
    at = "3000-01-01T00:00:00Z"
    ended = Ended(reason=OrphanReason.FORCED, deletion_requested_at=at, orphans=())
    record = forced_record(
        former, Budget(0, 90), ended, forced_at=at, finished_at=at, used_seconds=1.0
    )
    admin.create(FORCE_DELETIONS, encode(record))
    return former


def test_the_first_moment_belongs_to_a_period_and_the_end_does_not(
    call: Call, forced: OrphanedFrom
) -> None:
    names = call("record", "list", *YEAR_3000, "--by", "project", "-o", "json").stdout
    assert {"project": forced.uid, "forced": 1, "orphaned": 0, "orphans": 0} in json.loads(names)[
        "groups"
    ]
    before = call("record", "list", "--since", "2999-01-01", "--until", "3000-01-01")
    assert before.stdout == "no force deletion finished in this period\n"


def test_each_record_is_a_row_by_default_and_texts_of_tenants_are_escaped(
    call: Call, forced: OrphanedFrom
) -> None:
    shown = call("record", "list", *YEAR_3000).stdout
    (row,) = (line for line in shown.splitlines() if forced.uid in line)
    assert row.split()[:3] == ["3000-01-01T00:00:00Z", "Infrastructure", forced.uid]
    assert r"eve\u001b[2J\nroot" in row


def test_orphans_are_counted_by_field_with_the_oldest(
    call: Call, admin: HttpClient, former: OrphanedFrom
) -> None:
    for number, day in enumerate((5, 3, 4)):
        resource = ExternalResource(type="VPC", id=f"vpc-{number}")
        now = datetime(2026, 10, day, tzinfo=UTC)
        record(admin, former, resource, OrphanReason.FORCED, "", now)
    options = ("--shoot", former.namespace, "--by", "confirmed-by")
    (group,) = json.loads(call("orphans", "list", *options, "-o", "json").stdout)["groups"]
    assert (group["orphans"], group["shoots"]) == (3, 1)
    assert (group["oldest"], group["confirmed-by"]) == ("2026-10-03T00:00:00Z", EVIL)
    assert "\x1b" not in call("orphans", "list", *options).stdout
    none = call("orphans", "list", "--shoot", "none-such", "--by", "account").stdout
    assert none.startswith("no open orphans selected")


def test_a_wrong_field_is_wrong_usage_and_the_error_names_all(call: Call) -> None:
    error = call("record", "list", *YEAR_3000, "--by", "colour", status=2).stderr
    assert "'colour' is not one of 'account', 'confirmed-by'" in error


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"evidence": []}', '{"evidence": {"started": 1}}', "[" * 10000, "\ud83d"],
)
def test_a_file_that_is_no_report_is_named_and_others_are_listed(tmp_path: Path, text: str) -> None:
    folder = tmp_path / "reports"
    folder.mkdir()
    (folder / "report-1.json").write_bytes(text.encode("utf-8", "surrogatepass"))
    evidence = {"started": "2026-10-05T07:00:00Z", "scenario": EVIL, "origin": {}}
    drill = {"passed": True, "findings": [], "evidence": evidence}
    (folder / "report-2.json").write_text(json.dumps(drill))
    found = run_command("record", "drills", "--since", "2026-10-01", str(folder))
    assert "report-1.json: not a report of a drill" in found.stderr
    assert r"eve\u001b[2J\nroot" in found.stdout
    assert "holds" in found.stdout


def test_a_period_without_a_drill_has_none(tmp_path: Path) -> None:
    found = run_command("record", "drills", "--since", "2026-10-01", str(tmp_path))
    assert found.stdout == "no drill started in this period\n"
