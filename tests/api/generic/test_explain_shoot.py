"""`actuator explain NAMESPACE/shoot/NAME` against a simulated garden and a seed.

Both are the embedded cluster. The real gardener-apiserver is in tests/landscape.
"""

import json

import pytest

from actuator import ActuatorError, ErrorCode, ExternalResource
from actuator.cluster import FORCE_DELETION
from actuator.errors import NotFound
from actuator.interface import resource_of
from actuator.meta import format_time
from actuator.v1alpha1 import KINDS, BackupEntry, Extension, Infrastructure
from generic.kube.client import path_of
from generic.kube.clock import SystemClock
from generic.library.webhooks import Shoot
from generic.manager.orphans.ledger import read_orphans, write_status
from generic.reconciler.orphans import ORPHANS, OrphanedFrom, OrphanReason
from generic.reconciler.orphans.kind import SHOOT_LABEL, OrphanStatus
from generic.reconciler.orphans.record import record
from generic.testing.gardenapi.kinds import garden_crds
from generic.testing.seed import install_crds
from generic.tools.explain.garden import EXPLAINED, LandscapeClients, explain_shoot
from tests.support.cluster.fault_proxy import kubeconfig
from tests.support.cluster.harness import FINALIZER, Script, eventually
from tests.support.objects.builders import cluster, infrastructure

NOW = SystemClock().now
SHOOTS = resource_of(Shoot.KIND)
UNAUTHENTICATED = ErrorCode.ERR_INFRA_UNAUTHENTICATED.value
CONFIRMED = {"confirmation.gardener.cloud/deletion": "true"}
HOLD = "example.org/hold"


@pytest.fixture
def seed(seed):
    yield seed
    for name in ("infra", *(f"infra-{number}" for number in range(EXPLAINED + 2))):
        try:
            seed.patch({"metadata": {"finalizers": None}}, name)
        except NotFound:
            pass


@pytest.fixture
def shoot(admin, seed):
    """Creates the Shoot of the seed's namespace, in deletion."""
    install_crds(admin, garden_crds())

    def create(*codes, **status):
        error = {"description": "AuthFailure: revoked", "taskID": "Destroying", "codes": [*codes]}
        operation = {"type": "Delete", "state": "Failed", "progress": 40, "description": "no luck"}
        operation["lastUpdateTime"] = format_time(NOW())
        meta = {"name": "mine", "namespace": seed.namespace, "finalizers": [HOLD]}
        manifest = {
            "apiVersion": SHOOTS.api_version,
            "kind": "Shoot",
            "metadata": {**meta, "annotations": CONFIRMED},
            "spec": {
                "seedName": "one",
                "secret": "hunter2",
                "region": "x",
                "provider": {"type": "x"},
            },
        }
        written = {
            "technicalID": seed.namespace,
            "lastErrors": [error],
            "lastOperation": operation,
            **status,
        }
        admin.create(SHOOTS, manifest)
        admin.patch(SHOOTS, "mine", seed.namespace, {"status": written}, subresource="status")
        admin.delete(SHOOTS, "mine", seed.namespace)

    yield create
    try:
        admin.patch(SHOOTS, "mine", seed.namespace, {"metadata": {"finalizers": None}})
    except NotFound:
        pass


@pytest.fixture
def run(environment, command, seed, monkeypatch):
    """Runs the command with both kubeconfigs; returns stdout and stderr."""
    monkeypatch.setenv("COLUMNS", "200")

    def runner(*arguments, name="mine", garden=None, kubeconfig=None, status=0):
        both = ["--garden-kubeconfig", garden or environment.kubeconfig]
        both += ["--kubeconfig", kubeconfig or environment.kubeconfig]
        target = f"{seed.namespace}/shoot/{name}"
        done = command("explain", target, *both, *arguments, status=status)
        return done.stdout, done.stderr

    return runner


def make_stuck(seed, start):
    """An Infrastructure whose deletion fails for revoked credentials."""

    def stuck(ctx, obj, cluster):
        raise ActuatorError("the key is revoked", codes=[ErrorCode.ERR_INFRA_UNAUTHENTICATED])

    start(Script(delete=stuck))
    seed.create(infrastructure(seed.namespace, seed.namespace))
    eventually(seed.is_ready)
    seed.delete()
    eventually(lambda: seed.last_operation() == ("Delete", "Error"))


def make_fine(seed):
    """An Extension that is ready."""
    extensions = seed.of(Extension, "dns")
    manifest = {
        "apiVersion": Extension.KIND.api_version,
        "kind": "Extension",
        "metadata": {"name": "dns", "namespace": seed.namespace},
        "spec": {"type": "dns"},
    }
    extensions.create(manifest)
    operation = {"type": "Create", "state": "Succeeded", "progress": 100, "description": "done"}
    operation["lastUpdateTime"] = format_time(NOW())
    extensions.patch({"status": {"lastOperation": operation}}, subresource="status")


def test_a_shoot_whose_deletion_is_stuck_is_explained_across_garden_and_seed(
    seed, start, shoot, run
):
    make_stuck(seed, start)
    make_fine(seed)
    shoot(UNAUTHENTICATED)
    text, complaint = run()
    assert complaint == ""
    for words in (
        f"Shoot {seed.namespace}/mine",
        "Delete Failed, 40 %",
        f"AuthFailure: revoked [{UNAUTHENTICATED}], task Destroying",
        "allowed by Gardener",
        f"Infrastructure {seed.namespace}/infra",
        "the key is revoked",
        f"kubectl annotate shoot -n {seed.namespace} mine {FORCE_DELETION}=true",
        "the operators of the extensions: fix the blockers of their objects",
    ):
        assert words in " ".join(text.split())
    row = next(line for line in text.splitlines() if line.startswith("│"))
    assert row.split()[1::2][:4] == ["Extension", "dns", "dns", "Create"]
    told = json.loads(run("-o", "json")[0])
    assert told["version"] == 2
    assert told["shoot"]["confirmed"] is True
    assert told["shoot"]["forcing"]["allowed"] is True
    (blocked,) = told["seed"]["explanations"]
    assert blocked["standing"]["lastError"]["codes"] == [UNAUTHENTICATED]
    objects = told["seed"]["overview"]["objects"]
    assert [object_["subject"]["kind"] for object_ in objects] == ["Infrastructure", "Extension"]
    assert "hunter2" not in text + json.dumps(told)


def test_a_seed_that_has_another_shoot_of_this_name_or_none_is_noted(seed, shoot, run, admin):
    shoot(UNAUTHENTICATED)
    uid = admin.get(SHOOTS, "mine", seed.namespace)["metadata"]["uid"]
    for of_cluster, noted in ((uid, False), ("former", True)):
        seed.update_cluster(cluster(seed.namespace, shoot={"metadata": {"uid": of_cluster}}))
        text = " ".join(run()[0].split())
        assert ("is of another Shoot of this name, with the uid former" in text) is noted
    seed.delete_cluster()
    text = " ".join(run()[0].split())
    assert f"this cluster has no Cluster {seed.namespace}; the Shoot is in seed one" in text


def test_open_orphans_are_shown_and_closed_ones_are_not(seed, shoot, run):
    shoot(UNAUTHENTICATED)
    released = OrphanedFrom(
        api_version=Infrastructure.KIND.api_version,
        kind="Infrastructure",
        namespace=seed.namespace,
        name="infra",
        uid="gone",
    )
    for id in ("open", "closed"):
        resource = ExternalResource(type="AWS::EC2::VPC", id=f"vpc-{id}", region="eu-1")
        record(seed.client, released, resource, OrphanReason.FORCED, "why", NOW())
    of_shoot = read_orphans(seed.client, label_selector=f"{SHOOT_LABEL}={seed.namespace}")
    (orphan,) = (obj for obj in of_shoot if obj.spec.id == "vpc-closed")
    write_status(seed.client, orphan, OrphanStatus(state="Closed"))
    text, _ = run()
    seed.client.send(
        "DELETE", path_of(ORPHANS), query={"labelSelector": f"{SHOOT_LABEL}={seed.namespace}"}
    )
    assert "vpc-open" in text
    assert "vpc-closed" not in text
    assert "the owner of the cloud account: delete the resources of the open orphans" in text


def test_many_blocked_objects_are_counted(seed, shoot, admin):
    for number in range(EXPLAINED + 2):
        name = f"infra-{number}"
        seed.create(infrastructure(seed.namespace, "net", name=name, finalizers=[FINALIZER]))
        seed.delete(name)
    shoot(UNAUTHENTICATED)
    both = LandscapeClients(admin, admin)
    kinds = [cls.KIND for cls in KINDS]
    found = explain_shoot(both, seed.namespace, "mine", NOW(), kinds)
    assert found.seed.overview is not None
    assert len(found.seed.overview.objects) == EXPLAINED + 2
    assert len(found.seed.explanations) == EXPLAINED
    (note,) = found.seed.notes
    assert note == f"2 more objects are blocked: explain {seed.namespace}"


def test_the_explanation_of_a_backup_entry_needs_no_namespace(seed, shoot, admin):
    entry = {
        "apiVersion": BackupEntry.KIND.api_version,
        "kind": "BackupEntry",
        "metadata": {"name": f"{seed.namespace}--uid", "finalizers": [HOLD]},
        "spec": {"type": "net", "region": "r", "bucketName": "b", "secretRef": {"name": "s"}},
    }
    entries = seed.of(BackupEntry, f"{seed.namespace}--uid")
    entries.client.create(entries.resource, entry)
    entries.client.delete(entries.resource, entries.name)
    shoot(UNAUTHENTICATED)
    kinds = [cls.KIND for cls in KINDS]
    found = explain_shoot(LandscapeClients(admin, admin), seed.namespace, "mine", NOW(), kinds)
    entries.client.patch(entries.resource, entries.name, "", {"metadata": {"finalizers": None}})
    assert [explanation.standing.subject.kind for explanation in found.seed.explanations] == [
        "BackupEntry"
    ]


@pytest.fixture
def unreachable(tmp_path):
    """The kubeconfig of a server that does not run."""
    return kubeconfig(tmp_path / "unreachable", "https://127.0.0.1:1", token="t")


REQUIRED = "--kubeconfig must be that of seed one"


def test_without_the_seed_the_garden_is_explained_with_one_sentence_about_the_seed(
    shoot, run, unreachable, tmp_path
):
    shoot(UNAUTHENTICATED)
    for path, why in (
        (tmp_path / "missing", f"kubeconfig {tmp_path / 'missing'} does not exist"),
        (unreachable, "GET "),
    ):
        text, complaint = run(kubeconfig=path)
        assert complaint == ""
        (sentence,) = (line for line in text.splitlines() if REQUIRED in line)
        assert f"objects in the seed: {why}" in sentence
        assert "allowed by Gardener" in text
        told = json.loads(run("-o", "json", kubeconfig=path)[0])
        assert told["seed"]["problem"].startswith(why)
        assert told["seed"]["overview"] is None


def test_another_seed_is_recognized_by_the_missing_namespace(shoot, run):
    shoot(UNAUTHENTICATED, technicalID="shoot--of--others")
    text, _ = run()
    assert f"objects in the seed: namespace shoot--of--others not found; {REQUIRED}" in text


def test_a_user_without_permission_in_the_seed_gets_the_explanation_of_the_garden(
    environment, admin, shoot, run
):
    shoot(UNAUTHENTICATED)
    text, _ = run(kubeconfig=environment.user_kubeconfig("of-the-garden-alone"))
    assert "allowed by Gardener" in text
    assert "forbidden (403)" in text


def test_a_shoot_that_no_gardenlet_has_started_needs_no_seed(shoot, run, tmp_path):
    shoot(technicalID="")
    text, _ = run(kubeconfig=tmp_path / "missing")
    assert "no gardenlet has started with the Shoot" in text
    assert REQUIRED not in text


def test_a_garden_that_cannot_be_read_is_one_sentence_with_a_remedy(
    environment, shoot, run, unreachable, tmp_path
):
    shoot(UNAUTHENTICATED, conditions="none")
    stranger = environment.user_kubeconfig("stranger")
    for words, more in (
        ("mine-too not found in the garden; if it was deleted, `actuator", {"name": "mine-too"}),
        ("become a member of the Project, or set another user", {"garden": stranger}),
        ("check that the server in --garden-kubeconfig runs", {"garden": unreachable}),
        ("missing does not exist; set --garden-kubeconfig", {"garden": tmp_path / "missing"}),
        ("cannot read the Shoot in the garden: conditions: expected a list", {}),
    ):
        printed, complaint = run(status=1, **more)
        assert printed == ""
        (line,) = complaint.splitlines()
        assert words in line


def test_the_variable_of_gardener_selects_the_garden(
    environment, command, shoot, seed, monkeypatch
):
    shoot(UNAUTHENTICATED)
    target = f"{seed.namespace}/shoots/mine"
    seeds = ["--kubeconfig", environment.kubeconfig]
    refused = command("explain", target, *seeds, status=2).stderr
    assert "a Shoot is in the garden: set --garden-kubeconfig or GARDEN_KUBECONFIG" in refused
    monkeypatch.setenv("GARDEN_KUBECONFIG", str(environment.kubeconfig))
    assert command("explain", target, *seeds).stdout.startswith(f"Shoot {seed.namespace}/mine")
    assert "use NAMESPACE/shoot/mine" in command("explain", "shoot/mine", *seeds, status=2).stderr
