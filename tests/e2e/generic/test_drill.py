"""`actuator drill` as people run it: it passes, it fails where a rule is broken, it cleans up."""

import json
import secrets
import signal
import subprocess
import sys
import time
from contextlib import suppress
from functools import partial

import pytest
import yaml

from actuator.cluster import Cluster
from actuator.errors import NotFound
from actuator.interface import resource_of
from actuator.v1alpha1 import ControlPlane, Extension, Infrastructure
from generic.kube import client, patches
from generic.kube.client import connect
from generic.kube.clusters import CLUSTERS
from generic.kube.crds import crd
from generic.library.lookup import find
from generic.library.managedresources import ManagedResource
from generic.library.managedresources.kind import MANAGED_RESOURCES
from generic.library.manifests import manifest
from generic.reconciler import status
from generic.reconciler.orphans import RECORD_KINDS
from generic.testing.drill import takeover
from generic.testing.drill.breaks import BREAKS
from generic.testing.drill.judge import Finding
from generic.testing.drill.names import DRILL_LABEL
from generic.testing.envtest import Environment
from generic.testing.garden import NAMESPACES
from generic.testing.seed import CRDS, install_crds
from generic.tools.cli.drill import _say_unnoticed
from tests.support.cluster.harness import eventually
from tests.support.drills.reports import NETWORK, broken_rules, target
from tests.support.pages.browser import chromium, faults

AZURE = "extensions.azurecontrolplane.rehearsal:AzureRehearsal"
GO_PARTS = ["extension-controlplane-seed", "extension-controlplane-shoot"]
ACTUATOR = [sys.executable, "-c", "from generic.tools.cli.main import main; main()"]


def test_the_drill_passes_and_its_report_proves_it(drill, tmp_path):
    done, report = drill("--shoots", "2")
    assert broken_rules(report) == set()
    rules = {*BREAKS, "end", "ready", "seed"} - {"webhooks"}
    assert {finding["rule"] for finding in report["findings"]} == rules
    assert "ERR_INFRA_UNAUTHENTICATED" in done.stdout
    secrets = ("AKIA", "secretAccessKey")
    assert not any(word in (tmp_path / "report.json").read_text() for word in secrets)
    with chromium() as browser:  # last: without one the test ends here
        assert faults(browser, tmp_path / "report.html") == []


def test_i5_fails_where_a_condition_of_others_freezes_the_status(drill, monkeypatch):
    """As it was when patches tested conditions by value, in the encoding of Python."""
    by_value = partial(patches.test, "/status/conditions")
    monkeypatch.setattr(status, "test_version", lambda obj: by_value(obj["status"]["conditions"]))
    monkeypatch.setattr(client, "_as_go_writes", lambda body, **_: json.dumps(body).encode())
    monkeypatch.setattr("generic.tools.cli.drill._patience", lambda *_: 12.0)
    _, report = drill(NETWORK, "--scenario", "deletion-denied", "--shoots", "1", status=1)
    assert "I5" in broken_rules(report)


FAILURES = {
    "killed": "failed to call webhook",
    "expired": "certificate has expired",
    "slow": "did not end within 0.5 s",
    "denying": "the drill denies every request",
}


@pytest.mark.parametrize("rehearsal", [NETWORK, f"{NETWORK}WithWebhook"])
def test_no_failing_webhook_blocks_a_force_deletion(drill, tmp_path, rehearsal):
    """The API server calls real ones; their server is killed, without a certificate, slow, …"""
    own = rehearsal != NETWORK
    done, report = drill(rehearsal, "--scenario", "webhooks-down", "--shoots", "1" if own else "4")
    assert broken_rules(report) == set()
    page = (tmp_path / "report.html").read_text()
    refused = {
        webhook["webhook"].rpartition("-")[2]: webhook for webhook in report["evidence"]["webhooks"]
    }
    assert set(refused) == ({"killed"} if own else set(FAILURES))
    for failure, item in refused.items():
        assert FAILURES[failure] in item["error"]
        assert item["webhook"].startswith("own-s1." if own else f"drill-s{item['shoot'][-1]}.")
        assert item["policy"] == "Fail"
        assert item["request"] == "gardenlet's update of Network local-network"
        assert 0 <= item["seconds"] < 90
        assert f"{item['webhook']} (Fail)" in page
    assert "Requests that failing webhooks refused" in done.stdout
    assert "not blocked" in page


def test_a_webhook_that_does_not_exempt_deletions_is_found_and_named(drill, monkeypatch):
    monkeypatch.setattr("generic.tools.cli.drill._patience", lambda *_: 6.0)
    arguments = ("--scenario", "webhooks-down", "--shoots", "1", "--break", "webhooks")
    _, report = drill(NETWORK, *arguments, status=1)
    [found] = [finding for finding in report["findings"] if finding["rule"] == "webhooks"]
    assert any("blocked the force deletion" in problem for problem in found["problems"])
    requests = {
        webhook["request"] for webhook in report["evidence"]["webhooks"] if not webhook["seconds"]
    }
    assert "gardenlet's deletion of Network local-network" in requests


@pytest.mark.long
@pytest.mark.parametrize("rule", sorted(BREAKS.keys() - {"webhooks"}))
def test_each_check_fails_where_its_rule_is_broken(drill, rule):
    flags = ("--scenario", "deletion-denied", "--shoots", "1", "--break", rule)
    _, report = drill(NETWORK, *flags, status=1)
    assert rule in broken_rules(report)


@pytest.mark.parametrize("flags", [[], ["--path", "delete"]], ids=str)
def test_a_drill_whose_shoots_never_get_ready_names_the_reason_and_ends(drill, flags, monkeypatch):
    """Its patience would be longer than the time of a test."""
    monkeypatch.setattr("generic.tools.cli.drill._patience", lambda *_: 6000.0)
    done, report = drill(
        "tests.support.drills.affordable:NeverReady", "--shoots", "2", *flags, status=1
    )
    assert "Not ready" in done.stdout
    assert "Extension │ Error reconciling Extension: the reason" in done.stdout
    assert broken_rules(report) == ({"path"} if flags else {"end", "ready"})
    assert report["evidence"]["stopped"].endswith(
        "Extension: Error reconciling Extension: the reason"
    )
    assert report["evidence"]["remainingObjects"] == []


def test_shoots_have_several_extension_types_each_with_its_actuator(drill):
    """Two of one rehearsal, and one of another; their finalizers differ, too."""
    flags = ("--scenario", "deletion-denied", "--shoots", "1")
    _, report = drill("tests.support.drills.affordable:TwoTypes", CERTIFICATE, *flags)
    assert broken_rules(report) == set()
    lives = [life for life in report["evidence"]["lives"] if not life["bad"]]
    assert sorted(life["name"] for life in lives) == ["first", "second", lives[0]["shoot"]]
    assert {life["kind"] for life in lives} == {"Extension"}
    assert all(life["stuck"] is not None for life in lives)
    assert all(life["outcomes"] == ["force_deleted"] for life in lives)


def test_a_deletion_by_the_garbage_collector_is_no_violation(drill):
    """Each reconciliation replaces a Secret; the former ones have no other owner."""
    flags = ("--scenario", "deletion-denied", "--shoots", "1")
    _, report = drill("tests.support.drills.affordable:Rewriting", *flags)
    assert broken_rules(report) == set()


def test_an_object_of_a_type_that_no_actuator_serves_is_named_at_once(drill):
    done, report = drill("tests.support.drills.affordable:AnotherType", "--shoots", "1", status=3)
    assert "Extension shoot--" in done.stderr
    assert "spec.type is 'filter', which no actuator" in done.stderr
    assert report is None


def test_a_take_over_is_rehearsed_and_every_rule_holds(drill):
    done, report = drill(AZURE, "--scenario", "take-over", "--shoots", "1")
    assert broken_rules(report) == set()
    assert "Taking over from a Go extension" in done.stdout
    names = {bystander["name"] for bystander in report["evidence"]["bystanders"]}
    assert {f"ManagedResource {name}" for name in GO_PARTS} <= names
    text = report["evidence"]["scenarioText"]
    assert text.startswith("After a take-over from a Go extension: ")


def test_a_take_over_of_nothing_fails(drill):
    _, report = drill(
        "tests.support.drills.affordable:TakesOverNothing",
        "--scenario",
        "take-over",
        "--shoots",
        "1",
        status=1,
    )
    assert broken_rules(report) == {"I2"}
    [problem] = [problem for finding in report["findings"] for problem in finding["problems"]]
    assert problem.endswith("the rehearsal has none, so no take-over was rehearsed")


def test_i2_fails_where_a_take_over_replaces_an_object(drill, monkeypatch):
    leave = takeover._leave

    def leave_and_delete(client, managed):
        leave(client, managed)
        meta = managed["metadata"]
        if meta["name"] in GO_PARTS[:1]:
            client.delete(MANAGED_RESOURCES, meta["name"], meta["namespace"])

    monkeypatch.setattr(takeover, "_leave", leave_and_delete)
    _, report = drill(AZURE, "--scenario", "take-over", "--shoots", "1", status=1)
    assert broken_rules(report) == {"I2"}


def test_a_take_over_without_adoption_names_the_refused_object(drill, monkeypatch):
    monkeypatch.setattr("generic.library.managedresources.ours.GO_LIBRARY", {})
    monkeypatch.setattr("generic.tools.cli.drill._patience", lambda *_: 8.0)
    done, report = drill(AZURE, "--scenario", "take-over", "--shoots", "1", status=1)
    assert broken_rules(report) == {"end"}
    reason = report["evidence"]["stopped"]
    assert "still waiting for ControlPlane azure" in reason
    assert "exists without the label origin=provider-azure" in reason
    assert "The drill ends: shoot s1" in done.stdout


@pytest.mark.parametrize("held", [True, False])
def test_a_break_without_effect_is_reported(capsys, held):
    """A release that is made twice is refused by the Target of the first: I4 holds for Helm."""
    problems = () if held else ("made twice",)
    finding = Finding(rule="I4", title="Each external resource was created once", problems=problems)
    _say_unnoticed("I4", [finding, Finding(rule="I5", title="Each blocked object said why")])
    assert ("--break I4 had no effect" in capsys.readouterr().err) is held


@pytest.mark.parametrize(
    ("flags", "status", "words"),
    [
        pytest.param(["no.such:Thing"], 3, "module 'no' not found", id="module"),
        pytest.param(["extensions.aws:nothing"], 3, "has no 'nothing'", id="object"),
        pytest.param(["extensions.aws"], 3, "expected MODULE:OBJECT", id="reference"),
        pytest.param(["--scenario", "rain"], 2, "set one of: credentials-revoked", id="scenario"),
        pytest.param(["--scenario", "rain"], 2, "everything-fails, migration", id="every scenario"),
        pytest.param(
            ["--path", "retry", "extensions.local:extension"],
            3,
            "extensions.local:extension: expected a rehearsal MODULE:CLASS, for example",
            id="an extension",
        ),
        pytest.param(
            ["--scenario", "migration", "--break", "I5"],
            2,
            "--break I5: scenario migration has the invariants M1",
            id="break of a force deletion",
        ),
        pytest.param(["--break", "each"], 2, "'each' is not one of 'I1', 'I2'", id="each"),
        pytest.param(
            ["--random-seed", "3"],
            2,
            "--random-seed requires --scenario migration",
            id="random-seed",
        ),
        pytest.param(
            [AZURE, "--kubeconfig", "x", "--context", "y", "--scenario", "take-over"],
            2,
            "scenario take-over requires the embedded cluster",
            id="take-over",
        ),
        pytest.param(["--kubeconfig", "x"], 2, "--kubeconfig and --context", id="context"),
        pytest.param(
            ["--kubeconfig", "/no/file", "--context", "x"], 3, "/no/file does not exist", id="file"
        ),
        pytest.param(
            ["--kubeconfig", "x", "--context", "y", "--break", "I1"],
            2,
            "embedded cluster",
            id="break",
        ),
    ],
)
def test_bad_input_gets_one_sentence(drill, flags, status, words):
    done, report = drill(*flags, status=status)
    assert words in done.stderr
    assert report is None


@pytest.fixture
def foreign(borrowed):
    """A seed that is not the drill's: ours to look at, not its to change.

    Another drill may have had it before, and left objects.
    """
    from extensions.aws.seed import TargetGroupBinding

    with Environment() as environment:
        admin = connect(environment.kubeconfig)
        install_crds(admin, [Infrastructure, ControlPlane, Cluster, *RECORD_KINDS])
        install_crds(admin, [crd(TargetGroupBinding)])
        yield environment, admin


def everything(admin):
    """All namespaces, Clusters and CRDs, by name and version."""
    found = {}
    for resource in (NAMESPACES, CLUSTERS, CRDS):
        for obj in admin.list(resource):
            if obj["metadata"].get("deletionTimestamp") is None:
                found[str(resource), obj["metadata"]["name"]] = obj["metadata"]["uid"]
    return found


def drilled(admin, resource=NAMESPACES):
    """The namespaces of drills; those of one before may still be ending."""
    return {obj["metadata"]["name"] for obj in admin.list(resource, label_selector=DRILL_LABEL)}


def test_on_a_seed_that_is_not_its_own_it_leaves_nothing(foreign, drill):
    _, admin = foreign
    before = everything(admin)
    _, report = drill("--shoots", "1", *target(foreign[0]))
    assert broken_rules(report) == set()
    assert everything(admin) == before


def test_an_interrupted_drill_leaves_nothing(foreign, tmp_path):
    _, admin = foreign
    before = everything(admin)
    known = drilled(admin)
    clusters = drilled(admin, CLUSTERS)
    command = [*ACTUATOR, "drill", "--output", str(tmp_path), "--shoots", "2", *target(foreign[0])]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    eventually(lambda: len(drilled(admin) - known) > 2, seconds=240)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=300)
    assert process.returncode != 0
    assert "Traceback" not in errors
    assert everything(admin) == before
    assert drilled(admin, CLUSTERS) <= clusters


def test_it_refuses_where_another_controller_reacts_to_its_type(foreign, drill, monkeypatch):
    """A controller that accepts every type, and reacts before the drill can send a request."""
    _, admin = foreign
    before = everything(admin)
    create = client.HttpClient.create

    def create_and_react(self, resource, obj):
        created = create(self, resource, obj)
        if resource == resource_of(Infrastructure.KIND):
            meta = created["metadata"]
            patch = {"metadata": {"annotations": {"meddled": "yes"}}}
            admin.patch(resource, meta["name"], meta["namespace"], patch)
        return created

    monkeypatch.setattr(client.HttpClient, "create", create_and_react)
    done, report = drill(*target(foreign[0]), status=3)
    assert "another controller reacts" in done.stderr
    assert report is None
    assert everything(admin) == before


CERTIFICATE = "extensions.certificate.rehearsal:CertificateRehearsal"
ISSUERS = "issuers.certificates.example.org"


def test_the_remedy_for_a_missing_crd_helps_and_the_drill_serves_its_own_shoots_only(
    foreign, drill, command
):
    """Nothing on the seed serves its shoots: it simulates their resource managers."""
    _, admin = foreign
    install_crds(admin, [Extension, ManagedResource])
    with suppress(NotFound):
        admin.delete(CRDS, ISSUERS)
        eventually(lambda: find(admin, CRDS, ISSUERS) is None)
    done, report = drill(CERTIFICATE, "--shoots", "1", *target(foreign[0]), status=3)
    assert report is None
    printing, _, applying = done.stderr.partition("run: ")[2].partition(" | ")
    assert printing == f"actuator crds --rehearsal {CERTIFICATE} --only {ISSUERS}"
    apply = ["apply", "--server-side", "-f", "-"]
    assert applying.split() == ["kubectl", *target(foreign[0]), *apply]
    printed = command(*printing.split()[1:]).stdout
    install_crds(admin, list(yaml.safe_load_all(printed)))
    other = managed_resource_of_another_shoot(admin)
    before = everything(admin)
    done, report = drill(CERTIFICATE, "--shoots", "1", *target(foreign[0]))
    assert broken_rules(report) == set()
    assert everything(admin) == before
    where = (MANAGED_RESOURCES, other["metadata"]["name"], other["metadata"]["namespace"])
    assert admin.get(*where) == other, "not even a status"
    told = report["evidence"]
    assert told["target"]["context"] == target(foreign[0])[-1]
    assert told["target"]["serverVersion"].startswith("v1.")
    assert f"type drill-{told['drill']}, beside the extensions" in told["manager"]
    assert told["manager"] in " ".join(done.stdout.split())


def managed_resource_of_another_shoot(admin):
    name = f"shoot--other--{secrets.token_hex(4)}"
    admin.create(NAMESPACES, manifest("v1", "Namespace", name))
    spec = {"secretRefs": [{"name": "missing"}]}
    head = (ManagedResource.KIND.api_version, "ManagedResource", "addons", name)
    return admin.create(MANAGED_RESOURCES, manifest(*head, spec=spec))
