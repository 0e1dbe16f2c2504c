"""Shell completion of names, namespaces and scenarios, from the cluster and the rehearsals."""

import subprocess
import sys
from datetime import UTC, datetime

import pytest
from click.shell_completion import ShellComplete

from actuator import ExternalResource
from generic.reconciler.orphans import ORPHANS, OrphanedFrom, OrphanReason
from generic.reconciler.orphans.record import record
from generic.tools.cli.main import cli
from tests.support.objects.builders import infrastructure

SCRIPT = f"#!{sys.executable}\nfrom generic.tools.cli.main import main\nmain()\n"


def completed(*words):
    """The completions of the last word."""
    *before, incomplete = map(str, words)
    found = ShellComplete(cli, {}, "actuator", "_ACTUATOR_COMPLETE")
    return [item.value for item in found.get_completions(before, incomplete)]


@pytest.fixture
def orphan(admin, namespace):
    uid = f"{namespace}-uid"
    head = {"api_version": "v1", "kind": "Infrastructure", "namespace": namespace, "name": "i"}
    former = OrphanedFrom(**head, uid=uid, type="t")
    resource = ExternalResource(type="VPC", id="v")
    now = datetime.now(UTC)
    name = record(admin, former, resource, OrphanReason.FORCED, "m", now).metadata.name
    yield name
    admin.delete(ORPHANS, name)


@pytest.mark.parametrize(
    "line",
    [
        ("orphans", "close"),
        ("orphans", "reopen"),
        ("orphans", "verify", "extensions.aws:extension"),
    ],
)
def test_names_of_orphans_are_completed(orphan, environment, line, namespace):
    flags = ("--kubeconfig", environment.kubeconfig)
    assert completed(*line, *flags, namespace) == [orphan]


def test_namespaces_and_objects_are_completed(seed, environment):
    flags = ("--kubeconfig", environment.kubeconfig)
    space = seed.namespace
    seed.create(infrastructure(space, "net"))
    assert space in completed("explain", *flags, space[:6])
    target = f"{space}/Infrastructure/infra"
    assert completed("explain", *flags, f"{space}/") == [target]
    assert completed("explain", *flags, target, f"{space}/Infra") == [target]
    assert space in completed("orphans", "list", *flags, "--shoot", space[:-1])


def test_scenarios_are_those_of_the_rehearsals():
    aws = completed("drill", "--scenario", "")
    assert {"credentials-revoked", "migration", "webhooks-down"} <= set(aws)
    own = completed("drill", "tests.support.drills.affordable:OneScenario", "--scenario", "")
    assert own == ["deletion-denied", "webhooks-down"]
    assert completed("drill", "tests.support.drills.affordable:OneScenario", "--scenario", "w") == [
        "webhooks-down"
    ]


@pytest.mark.parametrize(
    "line",
    [
        ("orphans", "close", "--kubeconfig", "/no/such/file", ""),
        ("explain", "--kubeconfig", "/no/such/file", ""),
        ("drill", "no.such:Thing", "--scenario", ""),
        ("drill", "extensions.local:extension", "--scenario", ""),
    ],
)
def test_without_a_cluster_or_a_rehearsal_nothing_is_completed_or_printed(line, capfd):
    assert completed(*line) == []
    assert capfd.readouterr() == ("", "")


def test_bash_completes_with_the_printed_script(command, tmp_path):
    (tmp_path / "actuator").write_text(SCRIPT)
    (tmp_path / "actuator").chmod(0o755)
    (tmp_path / "script").write_text(command("completion", "bash").stdout)
    words = "source ./script; COMP_WORDS=(actuator drill --scenario cred); COMP_CWORD=3"
    line = f'PATH="$PWD:$PATH"; {words}; _actuator_completion actuator; echo "${{COMPREPLY[@]}}"'
    done = subprocess.run(
        ["bash", "-c", line], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("credentials-revoked\n", "")
