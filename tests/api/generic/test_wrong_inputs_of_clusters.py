"""Wrong inputs that need an API server: one sentence with the remedy, and the exit status.

The others are in `tests/unit/generic/test_wrong_inputs.py`.
"""

import gc
import os
import re
import socket
import sys
from pathlib import Path

import pytest
import yaml

from actuator import Resource
from actuator.cluster import FORCE_DELETION
from extensions.relations.kinds import Entry, Mirror, Team
from generic.controller.predicates import OPERATION
from generic.kube.clusters import CLUSTERS
from generic.testing.garden import NAMESPACES
from generic.testing.seed import install_crds
from tests.support.cluster.harness import FINALIZER
from tests.support.objects.builders import cluster, infrastructure

BUCKETS = Resource("extensions.gardener.cloud/v1alpha1", "backupbuckets", namespaced=False)

MODULE = """
import attrs
from actuator import Actuator
from actuator.meta import Kind, Object
from actuator.v1alpha1 import Infrastructure

class Network(Actuator[Infrastructure]):
    def reconcile(self, ctx, infrastructure, cluster): ...
    def delete(self, ctx, infrastructure, cluster): ...

@attrs.define(kw_only=True)
class Tenant(Object):
    KIND = Kind(name="Tenant", plural="tenants", finalizer="t", group="example.org")
    spec: dict = attrs.field(factory=dict)

def extension(manager):
    manager.add(Network(), type="mine")
"""


FREE = "--health-bind-address=0 --metrics-bind-address=0"


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """The author's directory as the current one; a manager's exit ends no test process."""
    monkeypatch.setenv("COLUMNS", "200")
    (tmp_path / "mine.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "_exit", sys.exit)
    monkeypatch.setattr(gc, "freeze", lambda: None)


@pytest.fixture
def ask(command, seed, environment):
    """Runs a line; NS stands for the namespace, the administrator's kubeconfig is the default."""

    def run(line, *, kubeconfig=None, status=0):
        words = [*line.replace("NS", seed.namespace).split(" "), "--kubeconfig"]
        return command(*words, kubeconfig or environment.kubeconfig, status=status)

    return run


@pytest.fixture
def fails(ask):
    """Checks that a line fails with one sentence, and prints nothing else."""

    def check(line, words, **more):
        done = ask(line, status=3 if line.startswith("drain") else 1, **more)
        assert done.stdout == ""
        (printed,) = done.stderr.splitlines()
        assert words in printed
        return done

    return check


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("explain NS/Infrastructure/missing", "Error: cluster 127.0.0.1:"),
        ("explain nowhere-to-be-found", ": namespace nowhere-to-be-found not found"),
        ("explain BackupBucket/missing", "BackupBucket missing not found"),
        ("orphans close missing", "missing"),
        ("orphans verify mine:extension missing", "missing"),
        ("shoot reconcile missing", "shoot missing does not exist in the cluster at 127.0.0.1:"),
        ("shoot delete missing", "or select another cluster with --kubeconfig"),
        ("shoot restore missing", "run `actuator shoot migrate` before"),
    ],
)
def test_a_missing_object_is_named(ask, line, words):
    done = ask(line, status=1)
    assert words in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("explain NS", "kubectl create clusterrole actuator-explain --verb=get,list"),
        ("explain NS/infra/infra", "--resource=infrastructures.extensions.gardener.cloud"),
        *(
            (line, "grant this permission, or select another user with --kubeconfig")
            for line in (
                "orphans list",
                "orphans close name",
                "orphans reopen name",
                "record list --since 2026-10-01",
                "record export --since 2026-10-01",
                "record summary --since 2026-10-01",
            )
        ),
        (f"dev mine:extension {FREE}", "grant this permission, or select another user with --kube"),
        ("shoot create NS", "grant this permission, or select another user with --kubeconfig"),
        ("drain mine:extension", "use an account with the roles of `actuator rbac`"),
    ],
)
def test_a_missing_permission_comes_with_its_remedy(fails, environment, line, words):
    fails(line, words, kubeconfig=environment.user_kubeconfig("nobody"))


CRDS = [
    ("NS/Tenant/x", 1, "Tenant is not installed here; select a seed"),
    ("Tenant/x", 2, "Tenant is a namespaced kind: use NAMESPACE/Tenant/x"),
]


@pytest.mark.parametrize(("name", "status", "words"), CRDS)
def test_an_absent_kind_comes_with_its_remedy(ask, name, status, words):
    assert words in ask(f"explain {name} --kind mine:Tenant", status=status).stderr


PLUGIN = {
    "apiVersion": "client.authentication.k8s.io/v1",
    "command": "a-program-that-does-not-exist",
    "interactiveMode": "Never",
}


def changed(environment, path, **fields):
    """A kubeconfig with other fields of its cluster or user."""
    config = yaml.safe_load(environment.kubeconfig.read_text())
    for part, name in (("clusters", "cluster"), ("users", "user")):
        config[part][0][name] |= fields.get(name, {})
    path.write_text(yaml.safe_dump(config))
    path.chmod(0o600)
    return path


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"cluster": {"server": "https://127.0.0.1:1"}}, "check that the server in the kubeconfig"),
        ({"cluster": {"server": "https://nowhere.invalid"}}, "check that the server in the kube"),
        ({"cluster": {"proxy-url": "http://127.0.0.1:1"}}, "the proxy 127.0.0.1:1 does not answer"),
        ({"cluster": {"certificate-authority-data": ""}}, "set the certificate-authority of the"),
        (
            {"user": {"token": "", "exec": PLUGIN}},
            "install the program, or correct the entry `exec`",
        ),
        ({"user": {"as": "alice"}}, "impersonation (as) is not supported"),
        ({"user": {"token": "wrong"}}, "renew the credentials in the kubeconfig"),
        ({"cluster": {"server": "ftp://127.0.0.1"}}, "set an https:// server"),
    ],
)
@pytest.mark.parametrize("line", ["explain NS", "orphans list"])
def test_a_cluster_that_does_not_answer_comes_with_its_remedy(
    fails, environment, tmp_path, line, fields, words
):
    fails(line, words, kubeconfig=changed(environment, tmp_path / "config", **fields))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("--context nope", "context 'nope' not found; set --context to one of: "),
        ("--master ftp://x", "set https://HOST:PORT"),
        ("--metrics-bind-address 127.0.0.1:TAKEN", "Address already in use; set another --metri"),
        ("--health-bind-address 127.0.0.1:TAKEN", "Address already in use; set another --health"),
        ("--metrics-bind-address 192.0.2.1:80", "Cannot assign requested address; set another"),
    ],
)
def test_a_manager_that_cannot_start_names_the_reason(fails, line, words):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        flags = line.replace("TAKEN", str(taken.getsockname()[1]))
        done = fails(f"run mine:extension {FREE} {flags}", words)
    assert "start failed" in done.stderr


@pytest.mark.parametrize("flag", ["--metrics-bind-address", "--health-bind-address"])
def test_a_port_in_use_ends_the_development_before_it_starts(fails, flag):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        words = f"cannot listen on {address}: Address already in use; set another {flag}"
        fails(f"dev mine:extension {FREE} {flag} {address}", words)


MANIFEST = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndata: {key: value}"


def test_a_shoot_of_others_is_refused_and_an_existing_one_not_created_again(
    ask, fails, admin, namespace
):
    Path("shoot.yaml").write_text(MANIFEST)
    name = namespace.removeprefix("test-")
    done = ask(f"shoot create {name}")
    assert done.stdout == f"shoot {name}: created\n"
    assert "shoot.yaml has no object of an extension, and --extension is not set" in done.stderr
    line = rf"^{name} +shoot--dev--{name} +Create Succeeded$"
    assert re.search(line, ask("shoot list").stdout, re.MULTILINE)
    fails(f"shoot create {name}", f"shoot {name} exists; reconcile it instead")
    admin.delete(CLUSTERS, f"shoot--dev--{name}")  # as if the creation had been interrupted
    assert ask(f"shoot reconcile {name}").stdout == f"shoot {name}: reconciled\n"
    state = Path(f"{name}.shootstate.json")
    state.write_text("{}")  # of another shoot with this name
    exists = f"{state} exists; restore the shoot, or remove the file"
    fails(f"shoot migrate {name}", exists)
    restored = {"lastOperation": {"type": "Restore", "state": "Processing"}}
    interrupted = {"spec": {"shoot": {"status": restored}}}
    admin.patch(CLUSTERS, f"shoot--dev--{name}", "", interrupted)
    fails(f"shoot migrate {name}", exists)  # which has the state of what is not restored yet
    state.unlink()
    unmarked = {"metadata": {"labels": None}}
    admin.patch(NAMESPACES, f"shoot--dev--{name}", "", unmarked)
    for act in ("create", "reconcile", "delete", "force-delete", "migrate", "restore"):
        words = f"Namespace shoot--dev--{name} is not of this shoot; choose another name"
        fails(f"shoot {act} {name}", words)
    assert "deletionTimestamp" not in admin.get(NAMESPACES, f"shoot--dev--{name}")["metadata"]


def test_a_cluster_scoped_object_of_others_is_not_changed(fails, admin, namespace):
    bucket = {
        "apiVersion": "extensions.gardener.cloud/v1alpha1",
        "kind": "BackupBucket",
        "metadata": {"name": namespace},
        "spec": {"type": "mine", "region": "eu-1", "secretRef": {"name": "s", "namespace": "ns"}},
    }
    admin.create(BUCKETS, bucket)
    Path("shoot.yaml").write_text(yaml.safe_dump({**bucket, "spec": {"type": "other"}}))
    words = f"BackupBucket {namespace} is not of this shoot; choose another name"
    fails(f"shoot create {namespace}", words)
    assert admin.get(BUCKETS, namespace)["spec"] == bucket["spec"]


def test_a_minimal_object_that_is_refused_comes_with_its_remedy(
    fails, admin, namespace, tmp_path, monkeypatch
):
    """The texts of these kinds must not be empty."""
    monkeypatch.setenv("RELATIONS_REGISTER", str(tmp_path / "register.sqlite"))
    install_crds(admin, [Team, Mirror, Entry])
    line = f"shoot create {namespace} --extension extensions.relations:extension"
    done = fails(line, "; write a valid object into shoot.yaml")
    assert "should be at least 1 chars long" in done.stderr


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: b: c", "shoot.yaml cannot be read: mapping values are not allowed here"),
        ("- 1", "shoot.yaml: "),
        ("", "the shoot has no objects; set --extension or --file"),
    ],
)
def test_wrong_manifests_of_a_shoot_are_named(fails, namespace, text, words):
    Path("shoot.yaml").write_text(text)
    fails(f"shoot create {namespace}", words)


@pytest.mark.parametrize(
    ("annotations", "force", "words"),
    [
        ({OPERATION: "reconcil"}, None, "'reconcil'; did you mean 'reconcile'?"),
        ({}, "yes", "'yes' has no effect: it is not a boolean; set \"true\""),
        ({}, "false", "'false' has no effect: it means false"),
        ({FORCE_DELETION: "true"}, None, "the annotation on the object itself has no effect"),
    ],
)
def test_an_annotation_without_effect_is_explained(ask, seed, annotations, force, words):
    seed.create(
        infrastructure(seed.namespace, "mine", finalizers=[FINALIZER], annotations=annotations)
    )
    seed.delete()
    if force:
        seed.update_cluster(cluster(seed.namespace, force=force))
    done = ask("explain NS/Infrastructure/infra")
    seed.patch({"metadata": {"finalizers": None}})
    assert words in " ".join(done.stdout.replace("│", "").split())
