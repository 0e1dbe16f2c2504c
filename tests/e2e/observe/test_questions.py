"""docs/questions.md: each command and query has the output that the page shows."""

import json
import re
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import attrs
import pytest

from actuator.codec import encode
from actuator.errors import AlreadyExists
from actuator.interface import SECRETS, resource_of
from actuator.meta import ObjectMeta, Raw, parse_time
from actuator.v1alpha1 import KINDS, Cluster, Infrastructure
from generic.kube.client import HttpClient, connect
from generic.kube.clusters import CLUSTERS, NAMESPACES
from generic.reconciler.origin import DeletionOrigin
from generic.reconciler.orphans import (
    FORCE_DELETIONS,
    ORPHANS,
    RECORD_KINDS,
    ForceDeletionRecord,
    Orphan,
    OrphanedFrom,
)
from generic.reconciler.orphans.forced import ForceDeletionSpec
from generic.reconciler.orphans.kind import OrphanSpec
from generic.testing.drill.all import Round, RoundResult
from generic.testing.drill.evidence import Origin
from generic.testing.drill.index import Index, write_index
from generic.testing.envtest import Environment
from generic.testing.seed import install
from generic.tools.monitoring import GROUPS, rule_file
from hack.observe.programs import find_program
from tests.support.cluster.harness import FINALIZER
from tests.support.objects.builders import cluster, infrastructure
from tests.support.pages.commands import run_command
from tests.support.pages.documented import ROOT
from tests.support.rules.series import named

PAGE = (ROOT / "docs" / "questions.md").read_text()
ANSWER = re.compile(r"^```(sh)?\n(.*?)\n```\n\n```text\n(.*?)```", re.MULTILINE | re.DOTALL)
ANSWERS = ANSWER.findall(PAGE)
COMMANDS = {text: output for language, text, output in ANSWERS if language == "sh"}
QUERIES = {text: output for language, text, output in ANSWERS if not language}
STUCK = "actuator stuck"
NAMESPACE = "shoot--web--shop"
INFRASTRUCTURES = resource_of(Infrastructure.KIND)
EXTENSION = "gardener-extension-aws"

DRILLED = Origin(version="0.1.0", commit="v1.4.0", extensions=f"{EXTENSION} 1.4.0")
SHOP = DeletionOrigin(
    seed="aws-eu1",
    project="web",
    shoot="shop",
    region="eu-west-1",
    account="111122223333",
    extension_version=f"{EXTENSION} 1.4.0",
    confirmed_by="alice@example.com",
)
LAKE = DeletionOrigin(
    seed="aws-eu1",
    project="data",
    shoot="lake",
    region="us-east-1",
    account="444455556666",
    extension_version=f"{EXTENSION} 1.4.0",
    confirmed_by="bob@example.com",
)
OLD = DeletionOrigin(project="old", shoot="old", extension_version=f"{EXTENSION} 1.3.0")
RECORDS = [
    ("u-1", "ControlPlane", SHOP, "2026-10-07T09:14:30Z", "ForceDeleted", 0),
    ("u-2", "Infrastructure", SHOP, "2026-10-07T09:15:00Z", "ForceDeleted", 2),
    ("u-3", "Infrastructure", LAKE, "2026-10-31T23:59:59Z", "BudgetExceeded", 1),
    ("u-4", "Infrastructure", OLD, "2026-09-30T23:59:59Z", "ForceDeleted", 0),
    ("u-5", "Infrastructure", OLD, "2026-11-01T00:00:00Z", "ForceDeleted", 0),
]
CLOSED = {"state": "Closed", "closedAt": "2026-10-09T08:00:00Z", "closedByVerified": True}
RESOURCES = [
    ("u-2-vpc", SHOP, "AWS::EC2::VPC", "vpc-0a1b", {"state": "Exists"}),
    (
        "u-2-subnet",
        SHOP,
        "AWS::EC2::Subnet",
        "subnet-2c3d",
        {**CLOSED, "closedBy": "carol@example.com", "note": "removed by hand"},
    ),
    ("u-3-vpc", LAKE, "AWS::EC2::VPC", "vpc-4e5f", {}),
]


def released(uid: str, kind: str, origin: DeletionOrigin) -> OrphanedFrom:
    return OrphanedFrom(
        api_version="extensions.gardener.cloud/v1alpha1",
        kind=kind,
        namespace=f"shoot--{origin.project}--{origin.shoot}",
        name=origin.shoot,
        uid=uid,
        type="aws",
        origin=origin,
    )


def write_records(admin: HttpClient) -> None:
    for uid, kind, origin, finished, reason, orphans in RECORDS:
        made = ForceDeletionRecord(
            metadata=ObjectMeta(name=uid),
            spec=ForceDeletionSpec(
                object=released(uid, kind, origin),
                outcome="orphaned" if orphans else "force_deleted",
                reason=reason,
                finished_at=finished,
                orphan_count=orphans,
            ),
        )
        admin.create(FORCE_DELETIONS, {**encode(made), **head(ForceDeletionRecord)})
    for name, origin, resource_type, id_, status in RESOURCES:
        uid = name[:3]
        orphan = Orphan(
            metadata=ObjectMeta(name=name),
            spec=OrphanSpec(
                resource_type=resource_type,
                id=id_,
                object=released(uid, "Infrastructure", origin),
                shoot=f"shoot--{origin.project}--{origin.shoot}",
                reason="ForceDeleted",
                recorded_at=next(record[3] for record in RECORDS if record[0] == uid),
            ),
        )
        admin.create(ORPHANS, {**encode(orphan), **head(Orphan)})
        patch = [{"op": "add", "path": "/status", "value": status}]
        admin.patch(ORPHANS, name, "", patch, subresource="status")


def head(cls: type[Orphan] | type[ForceDeletionRecord]) -> Raw:
    return {"apiVersion": cls.KIND.api_version, "kind": cls.KIND.name}


def remove_records(admin: HttpClient) -> None:
    for resource in (ORPHANS, FORCE_DELETIONS):
        for obj in admin.list(resource):
            admin.delete(resource, obj["metadata"]["name"])


@pytest.fixture
def admin(borrowed: None) -> Iterator[HttpClient]:
    """A cluster with exactly the records of the page."""
    with Environment() as environment, pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUBECONFIG", str(environment.kubeconfig))
        install(environment, [*KINDS, Cluster, *RECORD_KINDS])
        client = connect(environment.kubeconfig)
        remove_records(client)
        write_records(client)
        yield client
        remove_records(client)


def rows(text: str) -> list[list[str]]:
    """The cells of a table."""
    return [re.split(r"\s{2,}", line.strip()) for line in text.splitlines()]


def report(folder: Path, number: int, *, context: str, started: str, broken: str = "") -> None:
    """Write the report of the drill that the site shows, as if of another cluster and time."""
    drill = json.loads((ROOT / "docs" / "drill.json").read_text())
    drill["passed"] = not broken
    for finding in drill["findings"]:
        finding["problems"] = ["as an example"] if finding["rule"] == broken else []
    evidence = drill["evidence"]
    evidence["started"] = started
    evidence["origin"] = attrs.asdict(DRILLED)
    evidence["target"] = {"host": "https://seed", "context": context}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"report-{number}.json").write_text(json.dumps(drill))


def write_reports(folder: Path) -> None:
    report(folder / "aws-eu1", 1, context="aws-eu1", started="2026-10-05T07:00:00Z")
    report(folder / "aws-us1", 2, context="aws-us1", started="2026-10-05T08:00:00Z", broken="I1")
    report(folder / "aws-us1", 3, context="aws-us1", started="2026-10-06T08:00:00Z")
    report(folder / "aws-us1", 4, context="aws-us1", started="2026-09-30T08:00:00Z")
    started = "2026-10-05T09:00:00Z"
    silent = RoundResult(
        round=Round("credentials-revoked", seed="aws-ap1"), problem="no answer", started=started
    )
    index = Index(id="q4", title="AWS", started=started, origin=DRILLED, held=[silent])
    write_index(folder, index)


def put_stuck_object(admin: HttpClient) -> str:
    """Create an object whose deletion is stuck; return its deletionTimestamp."""
    with suppress(AlreadyExists):
        admin.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
    admin.apply(CLUSTERS, cluster(NAMESPACE))
    secret = {"metadata": {"name": "cloudprovider", "namespace": NAMESPACE}}
    admin.apply(SECRETS, {"apiVersion": "v1", "kind": "Secret", **secret})
    obj = infrastructure(NAMESPACE, "aws", "shop", finalizers=[FINALIZER])
    admin.create(INFRASTRUCTURES, obj)
    status = {"lastError": {"description": "the key is revoked"}}
    admin.patch(INFRASTRUCTURES, "shop", NAMESPACE, {"status": status}, subresource="status")
    admin.delete(INFRASTRUCTURES, "shop", NAMESPACE)
    found = admin.get(INFRASTRUCTURES, "shop", NAMESPACE)
    return str(found["metadata"]["deletionTimestamp"])


def test_each_command_on_records_has_the_output_of_the_page(
    admin: HttpClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_reports(tmp_path / "reports")
    assert len(COMMANDS) == 9
    for text, output in COMMANDS.items():
        if text != STUCK:
            found = run_command(*shlex.split(text)[1:])
            assert found.stdout == output, f"{text}\n{found.stdout}{found.stderr}"


def test_a_stuck_object_is_listed_as_on_the_page(
    admin: HttpClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four hours later; objects of other tests can be in the list too."""
    deleted = parse_time(put_stuck_object(admin))
    later = SimpleNamespace(now=lambda: deleted + timedelta(hours=4))
    monkeypatch.setattr("generic.tools.cli.stuck.SystemClock", lambda: later)
    try:
        found = rows(run_command(*STUCK.split()[1:]).stdout)
    finally:
        gone = {"metadata": {"finalizers": None}}
        admin.patch(INFRASTRUCTURES, "shop", NAMESPACE, gone)
    shown = rows(COMMANDS[STUCK])
    assert [row for row in found if row[0] in ("NAMESPACE", NAMESPACE)] == shown[:2]
    assert len(found) >= len(shown) == 4


def prometheus_rules_test() -> Raw:
    """A seed in which 40 objects were deleted within an hour: 3 late, and 2 forced."""
    own = {"seed": "aws-eu1", "extension": EXTENSION, "instance": "a", "job": "extension"}
    own |= {"controller": "infrastructure", "kind": "Infrastructure"}
    counts = {
        named("actuator_deletion_duration_seconds_count", **own, outcome="deleted"): 40,
        named(
            "actuator_deletion_duration_seconds_bucket", **own, outcome="deleted", le="600.0"
        ): 37,
        named("actuator_deletions_total", **own, outcome="deleted"): 38,
        named("actuator_deletions_total", **own, outcome="orphaned"): 2,
    }
    return {
        "rule_files": ["rules.json"],
        "evaluation_interval": "1m",
        "group_eval_order": [group["name"] for group in GROUPS],
        "tests": [
            {
                "interval": "1m",
                "input_series": [
                    {"series": str(name), "values": f"0x80 {count}x40"}
                    for name, count in counts.items()
                ],
                "promql_expr_test": [
                    {
                        "expr": f"round({query}, 0.001)",
                        "eval_time": "120m",
                        "exp_samples": expected(output),
                    }
                    for query, output in QUERIES.items()
                ],
            }
        ],
    }


def expected(output: str) -> list[Raw]:
    """The samples of a page."""
    lines = (line.rsplit(maxsplit=1) for line in output.splitlines())
    return [{"labels": labels, "value": float(value)} for labels, value in lines]


@pytest.mark.timeout(900)  # the first time promtool is built
def test_each_query_has_the_result_of_the_page(tmp_path: Path) -> None:
    (tmp_path / "rules.json").write_text(json.dumps(rule_file(GROUPS)))
    cases = tmp_path / "cases.json"
    assert len(QUERIES) == 3
    cases.write_text(json.dumps(prometheus_rules_test()))
    command = [str(find_program("promtool", print)), "test", "rules", str(cases)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
