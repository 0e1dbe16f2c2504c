"""Wrong inputs that need an API server: one sentence with the remedy, and the exit status.

The others are in `tests/unit/generic/test_wrong_inputs.py`.
"""

import gc
import os
import socket
import sys

import pytest
import yaml
from builders import cluster, infrastructure
from harness import FINALIZER

from actuator.cluster import FORCE_DELETION
from generic.controller.predicates import OPERATION

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


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """The author's directory as the current one; a manager's exit ends no test process."""
    monkeypatch.setenv("COLUMNS", "200")
    (tmp_path / "mine.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    monkeypatch.setattr(os, "_exit", sys.exit)
    for name in ("freeze", "set_threshold"):
        monkeypatch.setattr(gc, name, lambda *_: None)
    yield
    sys.modules.pop("mine", None)


@pytest.fixture
def ask(command, seed, environment):
    """Runs a line; NS stands for the namespace, the administrator's kubeconfig is the default."""

    def run(line, *, kubeconfig=None):
        words = line.replace("NS", seed.namespace).split(" ")
        return command(*words, "--kubeconfig", kubeconfig or environment.kubeconfig)

    return run


def fails(done, words, status=1):
    """Whether it printed one sentence, and nothing else."""
    assert (done.returncode, done.stdout) == (status, "")
    (line,) = done.stderr.splitlines()
    assert words in line


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("explain NS/Infrastructure/missing", "missing not found"),
        ("explain nowhere-to-be-found", "namespace nowhere-to-be-found not found"),
        ("explain BackupBucket/missing", "BackupBucket missing not found"),
        ("orphans close missing", "missing"),
        ("orphans verify mine:extension missing", "missing"),
    ],
)
def test_a_missing_object_is_named(ask, line, words):
    done = ask(line)
    assert done.returncode == 1
    assert words in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("explain NS", "kubectl create clusterrole actuator-explain --verb=get,list"),
        ("explain NS/infra/infra", "--resource=infrastructures.extensions.gardener.cloud"),
        ("orphans list", "grant this permission, or select another user with --kubeconfig"),
        ("drain mine:extension", "use an account with the roles of `actuator rbac`"),
    ],
)
def test_a_missing_permission_comes_with_its_remedy(ask, environment, line, words):
    fails(ask(line, kubeconfig=environment.user_kubeconfig("nobody")), words)


CRDS = [
    ("explain NS/Tenant/x --kind mine:Tenant", "Tenant is not installed here; select a seed"),
    ("explain Tenant/x --kind mine:Tenant", "Tenant is a namespaced kind: use NAMESPACE/Tenant/x"),
]


@pytest.mark.parametrize(("line", "words"), CRDS)
def test_an_absent_kind_comes_with_its_remedy(ask, line, words):
    done = ask(line)
    assert done.returncode in (1, 2)
    assert words in done.stderr


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
        ({"user": {"token": "wrong"}}, "renew the credentials in the kubeconfig"),
        ({"cluster": {"server": "ftp://127.0.0.1"}}, "set an https:// server"),
    ],
)
@pytest.mark.parametrize("line", ["explain NS", "orphans list"])
def test_a_cluster_that_does_not_answer_comes_with_its_remedy(
    ask, environment, tmp_path, line, fields, words
):
    fails(ask(line, kubeconfig=changed(environment, tmp_path / "config", **fields)), words)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("--context nope", "context 'nope' not found; set --context to one of: "),
        ("--master ftp://x", "set https://HOST:PORT"),
        ("--metrics-bind-address 127.0.0.1:TAKEN", "Address already in use; set another address"),
        ("--health-bind-address 127.0.0.1:TAKEN", "Address already in use; set another address"),
        ("--metrics-bind-address 192.0.2.1:80", "Cannot assign requested address; set another"),
    ],
)
def test_a_manager_that_cannot_start_says_why(ask, line, words):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        free = "--health-bind-address=0 --metrics-bind-address=0"
        flags = line.replace("TAKEN", str(taken.getsockname()[1]))
        done = ask(f"run mine:extension {free} {flags}")
    fails(done, words)
    assert "start failed" in done.stderr


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
    assert done.returncode == 0
    assert words in " ".join(done.stdout.replace("│", "").split())
