"""`actuator record export / verify / summary`: the records of a cluster, as a file or a page."""

import re
import shlex
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from actuator import ExternalResource
from actuator.meta import Raw
from generic.kube.client import HttpClient
from generic.manager.rbac import role_binding
from generic.reconciler.orphans import ORPHANS, OrphanedFrom, OrphanReason
from generic.reconciler.orphans.record import record
from generic.testing.drill.evidence import Origin
from generic.testing.drill.index import Index, write_index
from generic.testing.envtest import Environment
from generic.tools.record.chain import verified
from tests.support.cluster.harness import BINDINGS, ROLES, eventually, is_allowed
from tests.support.pages.commands import run_command
from tests.support.pages.documented import ROOT

PAGE = ROOT / "docs" / "evidence.md"
Call = Callable[..., CompletedProcess[str]]
NOW = datetime.now(UTC)
TODAY = NOW.date().isoformat()
TOMORROW = (NOW + timedelta(days=1)).date().isoformat()
LATER = (NOW + timedelta(days=9)).date().isoformat()


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


@pytest.mark.parametrize("reads_identity", [False, True])
def test_an_export_never_lacks_the_seed_for_want_of_a_permission(
    environment: Environment, admin: HttpClient, namespace: str, recorded: str, reads_identity: bool
) -> None:
    """The permissions are those of docs/orphans.md."""
    records = ["orphans", "forcedeletionrecords"]
    rules: list[Raw] = [{"apiGroups": [ORPHANS.group], "resources": records, "verbs": ["list"]}]
    if reads_identity:
        identity = {"resources": ["configmaps"], "resourceNames": ["cluster-identity"]}
        rules.append({"apiGroups": [""], **identity, "verbs": ["get"]})
    user = f"{namespace}-auditor"
    role: Raw = {"apiVersion": ROLES.api_version, "kind": "ClusterRole", "rules": rules}
    role["metadata"] = {"name": user}
    admin.create(ROLES, role)
    admin.create(BINDINGS, role_binding(role, user))
    kubeconfig = environment.user_kubeconfig(user)
    eventually(lambda: is_allowed(admin, user, "list", records[1], ORPHANS.group))
    line = ("record", "export", "--since", TODAY, "--kubeconfig", str(kubeconfig))
    done = run_command(*line, status=0 if reads_identity else 1)
    admin.delete(BINDINGS, user)
    admin.delete(ROLES, user)
    assert (recorded in done.stdout) is reads_identity
    refused = 'configmaps "cluster-identity" is forbidden'
    assert (refused in done.stderr) is not reads_identity


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
    assert recorded not in call("export", "--since", "2020-01-01", "--until", TODAY).stdout
    close(admin, recorded, f"{TODAY}T00:00:00Z")
    assert recorded in call("export", "--since", TODAY).stdout
    assert recorded not in call("export", "--since", TOMORROW).stdout
    close(admin, recorded, f"{TOMORROW}T12:00:00Z")
    assert recorded in call("export", "--since", TOMORROW).stdout


def close(admin: HttpClient, name: str, at: str) -> None:
    patch = {"status": {"state": "Closed", "closedAt": at}}
    admin.patch(ORPHANS, name, "", patch, subresource="status")


def test_an_open_orphan_of_an_earlier_period_is_exported_until_it_is_closed(
    call: Call, admin: HttpClient, recorded: str
) -> None:
    assert recorded in call("export", "--since", TOMORROW, "--until", LATER).stdout
    close(admin, recorded, f"{TODAY}T00:00:00Z")
    assert recorded not in call("export", "--since", TOMORROW, "--until", LATER).stdout


def test_a_summary_of_an_export_needs_no_cluster_and_escapes_texts_of_tenants(
    call: Call, recorded: str, tmp_path: Path
) -> None:
    done = call("export", "--since", TODAY)
    file = tmp_path / "records.jsonl"
    file.write_text(done.stdout)
    (last,) = re.findall(r"last hash: (\w+)", done.stderr)
    nowhere = ("--kubeconfig", str(tmp_path / "none"))
    page = run_command("record", "summary", str(file), "--hash", last, *nowhere).stdout
    assert page.replace("\n", "").isprintable()
    assert "VPC \\u001b[2J\\u007f&lt;script&gt;" in page
    assert "<script" not in page
    assert last in page
    assert "verified with --hash" in page
    assert "VPC \\u001b[2J\\u007f&lt;script&gt;" in call("summary", "--since", TODAY).stdout


def test_each_command_of_the_page_works_as_printed(
    environment: Environment, admin: HttpClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KUBECONFIG", str(environment.kubeconfig))
    index = Index(id="a", title="Mine", started=f"{TODAY}T00:00:00Z", origin=Origin(), held=[])
    write_index(tmp_path / "report", index)
    blocks = PAGE.read_text().split("```\n")[1::2]
    assert len(blocks) == 4
    last = ""
    for block in blocks:
        text, _, target = block.strip().partition(" > ")
        done = run_command(*shlex.split(text.replace("HASH", last))[1:])
        last = "".join(re.findall(r"last hash: (\w+)", done.stderr)) or last
        if target:
            Path(target).write_text(done.stdout)
    assert last in Path("summary.html").read_text()
    assert Path("records.jsonl").read_text().count(last) == 1


def test_an_altered_export_has_no_summary(call: Call, recorded: str, tmp_path: Path) -> None:
    file = tmp_path / "records.jsonl"
    content = call("export", "--since", TODAY).stdout
    file.write_text(content.replace('"resourceType":"VPC"', '"resourceType":"VPN"', 1))
    done = run_command("record", "summary", str(file), status=1)
    assert "altered" in done.stderr
    file.write_text(content)
    done = run_command("record", "summary", str(file), "--hash", "0" * 64, status=1)
    assert "it was rewritten" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        ([], 2, "set FILE, an export that has its own period, or --since"),
        (["FILE", "--since", TODAY], 2, "set FILE, an export"),
        (["FILE", "--until", TODAY], 2, "set FILE, an export"),
        (["--since", TODAY, "--hash", "0"], 2, "set FILE, an export"),
        (["FILE", "--drills", "FILE"], 1, "FILE: not an index.json of `actuator drill --all`"),
    ],
)
def test_a_wrong_choice_of_records_or_drills_is_explained(
    arguments: list[str], status: int, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("FILE").touch()
    assert words in run_command("record", "summary", *arguments, status=status).stderr


@pytest.mark.parametrize("date", ["yesterday", "2026-13-01", "2026-07-01T00:00:00"])
def test_a_period_that_is_no_date_is_wrong_usage(call: Call, date: str) -> None:
    assert "expected a date" in call("export", "--since", date, status=2).stderr


def test_a_file_that_is_no_export_has_a_wrong_line(tmp_path: Path) -> None:
    file = tmp_path / "other.jsonl"
    file.write_bytes(b"\x1b[2Jsomething else\n")
    done = run_command("record", "verify", str(file), status=1)
    assert "line 1: altered" in done.stderr
    assert "\x1b" not in done.stderr
