"""`actuator record export / verify`: the records of a cluster as a file that shows changes."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from actuator import ExternalResource
from generic.kube.client import HttpClient
from generic.reconciler.orphans import ORPHANS, OrphanedFrom, OrphanReason, record
from generic.testing.envtest import Environment
from generic.tools.record.chain import verified
from tests.support.pages.commands import run_command

Call = Callable[..., CompletedProcess[str]]
NOW = datetime.now(UTC)
TODAY = NOW.date().isoformat()
TOMORROW = (NOW + timedelta(days=1)).date().isoformat()


@pytest.fixture
def call(environment: Environment) -> Call:
    def call(*arguments: str, status: int = 0) -> CompletedProcess[str]:
        seed = ("--kubeconfig", str(environment.kubeconfig))
        return run_command("record", *arguments, *seed, status=status)

    return call


@pytest.fixture
def recorded(admin: HttpClient, namespace: str) -> str:
    """The name of an Orphan, whose id a tenant chose."""
    former = OrphanedFrom(
        api_version="extensions.gardener.cloud/v1alpha1",
        kind="Infrastructure",
        namespace=namespace,
        name="infra",
        uid=namespace,
    )
    resource = ExternalResource(type="VPC", id="\x1b[2J\x7f<script>\nmüde")
    return record(admin, former, resource, OrphanReason.FORCED, "", NOW).metadata.name


def test_an_export_verifies_and_its_last_hash_is_printed_apart(
    call: Call, recorded: str, tmp_path: Path
) -> None:
    done = call("export", "--since", TODAY)
    assert done.stdout.replace("\n", "").isprintable()
    assert done.stdout.isascii()
    file = tmp_path / "records.jsonl"
    file.write_text(done.stdout)
    export = verified(done.stdout.encode().splitlines(keepends=True))
    assert export.last_hash in done.stderr
    found = {item["name"]: item for item in export.records}
    assert found[recorded]["spec"]["id"] == "\x1b[2J\x7f<script>\nmüde"
    whole = run_command("record", "verify", str(file), "--hash", export.last_hash)
    assert "unchanged" in whole.stdout
    rewritten = run_command("record", "verify", str(file), "--hash", "0" * 64, status=1)
    assert "it was rewritten" in rewritten.stderr
    file.write_text(done.stdout.replace('"resourceType":"VPC"', '"resourceType":"VPN"', 1))
    altered = run_command("record", "verify", str(file), status=1)
    assert f"{file}: line " in altered.stderr
    assert "altered" in altered.stderr


def test_an_export_has_each_record_that_was_created_or_changed_in_its_period(
    call: Call, admin: HttpClient, recorded: str
) -> None:
    assert recorded in call("export", "--since", TODAY, "--until", TOMORROW).stdout
    assert recorded not in call("export", "--since", TOMORROW).stdout
    assert recorded not in call("export", "--since", "2020-01-01", "--until", TODAY).stdout
    later = f"{TOMORROW}T12:00:00Z"
    patch = [{"op": "add", "path": "/status", "value": {"state": "Closed", "closedAt": later}}]
    admin.patch(ORPHANS, recorded, "", patch, subresource="status")
    assert recorded in call("export", "--since", TOMORROW).stdout


@pytest.mark.parametrize("date", ["yesterday", "2026-13-01", "2026-07-01T00:00:00"])
def test_a_period_that_is_no_date_is_wrong_usage(call: Call, date: str) -> None:
    assert "expected a date" in call("export", "--since", date, status=2).stderr


def test_a_file_that_is_no_export_has_a_wrong_line(tmp_path: Path) -> None:
    file = tmp_path / "other.jsonl"
    file.write_bytes(b"\x1b[2Jsomething else\n")
    done = run_command("record", "verify", str(file), status=1)
    assert "line 1: altered" in done.stderr
    assert "\x1b" not in done.stderr
