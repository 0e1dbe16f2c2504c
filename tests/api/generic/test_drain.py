"""`actuator drain`: nothing stays Terminating without an owner, or a list and exit status 1."""

import json
import subprocess
import sys
import time
from typing import Any

import pytest

from actuator import Resource
from actuator.errors import NotFound, Unavailable
from actuator.interface import resource_of
from actuator.v1alpha1 import BackupEntry
from generic.controller.predicates import Predicate
from generic.kube.clock import SystemClock
from generic.kube.printable import echo
from generic.library.manifests import manifest
from generic.manager.leaderelection import LEASES
from generic.manager.manager import Manager
from generic.manager.rbac import role_binding
from generic.reconciler.orphans import ORPHANS, RECORD_KINDS
from generic.testing.seed import install
from generic.tools.cli.load import load_manager
from generic.tools.drain import release, survey, wait
from generic.tools.drain.release import ReleaseState, rows_of_released
from tests.support.cluster.harness import (
    BINDINGS,
    FINALIZER,
    ROLES,
    Script,
    cluster_rules,
    eventually,
    is_allowed,
)
from tests.support.objects.builders import API, infrastructure
from tests.support.objects.predicates import has_name
from tests.support.suite.isolation import isolated

ACTUATOR = [sys.executable, "-c", "from generic.tools.cli.main import main; main()"]
FOREIGN = "example.org/foreign"
SECRETS = Resource("v1", "secrets")
ENTRIES = resource_of(BackupEntry.KIND)
GUARD = BackupEntry.KIND.finalizer
MODULE = """
import attrs
from actuator import Actuator, ExternalResource
from actuator.meta import Kind, Object
from actuator.v1alpha1 import BackupEntry, Infrastructure

class Network(Actuator[Infrastructure]):
    def reconcile(self, ctx, infrastructure, cluster): ...
    def delete(self, ctx, infrastructure, cluster): ...
    def external_resources(self, infrastructure):
        yield ExternalResource(type="vpc", id="vpc-" + infrastructure.metadata.name)

class Backups(Actuator[BackupEntry]):
    def reconcile(self, ctx, entry, cluster): ...
    def delete(self, ctx, entry, cluster): ...

@attrs.define(kw_only=True)
class Nowhere(Object):
    KIND = Kind(
        name="Nowhere", plural="nowheres", finalizer="example.org/nowhere", group="example.org",
        has_operation_annotation=False,
    )

class Nothing(Actuator[Nowhere]):
    def reconcile(self, ctx, obj, cluster): ...
    def delete(self, ctx, obj, cluster): ...

def extension(manager):
    manager.add(Network(), type="TYPE")
    manager.add(Backups(), type="TYPE")
    manager.add(Nothing())
"""


@pytest.fixture
def author(tmp_path, monkeypatch, namespace):
    """A directory with an author's extension in it, for the type named like the namespace."""
    module = f"drained_{namespace.replace('-', '_')}"
    (tmp_path / f"{module}.py").write_text(MODULE.replace("TYPE", namespace))
    monkeypatch.chdir(tmp_path)
    return f"{module}:extension"


@pytest.fixture
def run(author, environment, admin, command):
    """Calls the command; returns its answer and its stderr."""
    install(environment, [*RECORD_KINDS])

    def call(*arguments, kubeconfig=environment.kubeconfig, status=0):
        flags = ("-o", "json", "--kubeconfig", kubeconfig)
        done = command("drain", author, *flags, *arguments, status=status)
        return (json.loads(done.stdout) if done.stdout else None), done.stderr

    return call


@pytest.fixture
def disown(run):
    """Releases the objects of a stopped extension without leader election."""
    return lambda **more: run("--release", "--lease", "none", **more)


@pytest.fixture
def orphans(admin, namespace):
    """The Orphans recorded for this namespace's objects."""

    def find():
        found = admin.list(ORPHANS)
        return [obj["spec"] for obj in found if obj["spec"]["object"].get("type") == namespace]

    return find


@pytest.fixture
def held(seed, namespace):
    """Creates objects as an extension that is gone has left them."""
    names = []

    def create(name, *, deleting=False, foreign=(), type=namespace, **spec):
        manifest = infrastructure(namespace, type, name, finalizers=[FINALIZER, *foreign])
        manifest["spec"].update(spec)
        seed.create(manifest)
        names.append(name)
        if deleting:
            seed.delete(name)

    yield create
    for name in names:
        try:
            seed.delete(name)
            seed.patch({"metadata": {"finalizers": None}}, name)
        except NotFound:
            pass


def finalizers(seed, name):
    return seed.get(name)["metadata"].get("finalizers") or []


def states(answer):
    return {object_["name"]: object_["state"] for object_ in answer["objects"]}


def test_drain_succeeds_where_no_object_has_our_finalizer(run, seed, namespace):
    seed.create(infrastructure(namespace, namespace, finalizers=[FOREIGN]))
    answer, _ = run()
    assert answer == {
        "drained": True,
        "objects": [],
        "notInstalled": ["nowheres.example.org"],
    }
    seed.patch({"metadata": {"finalizers": None}})


NOWHERE = """

def elsewhere(manager):
    manager.add(Nothing())
"""


@pytest.mark.parametrize("disown", [(), ("--release", "--lease", "none")])
def test_a_cluster_that_serves_no_kind_of_the_extension_is_refused(
    disown, author, environment, tmp_path, command
):
    module = author.partition(":")[0]
    with (tmp_path / f"{module}.py").open("a") as file:
        file.write(NOWHERE)
    flags = (f"{module}:elsewhere", "--kubeconfig", environment.kubeconfig, *disown)
    refused = command("drain", *flags, status=3)
    host = environment.url.removeprefix("https://")
    (error,) = [line for line in refused.stderr.splitlines() if line.startswith("Error: ")]
    assert error.startswith(f"Error: the cluster at {host} serves no kind of {module}:elsewhere")
    assert "(nowheres.example.org); select the seed with --kubeconfig and --context" in error
    assert not refused.stdout
    command("drain", *flags, "--allow-missing-crds")


def test_drain_waits_for_terminating_objects_while_the_extension_runs(
    run, seed, start, gate, namespace, monkeypatch
):
    def waits(text, **how):
        """Let the deletion continue once the command reports that it waits."""
        echo(text, **how)
        if text.startswith("waiting for the deletion of 1 object, such as Infrastructure"):
            gate.set()

    monkeypatch.setattr("generic.tools.cli.drain.echo", waits)
    start(Script(delete=lambda *_: gate.wait(200)))
    seed.create(infrastructure(namespace, namespace))
    eventually(seed.is_ready)
    seed.delete()
    assert not gate.is_set()
    answer, _ = run("--timeout", "100")
    assert gate.is_set()
    assert answer["drained"]
    assert seed.is_gone()


def test_living_objects_are_listed_at_once_and_left_unchanged(run, seed, held):
    held("one")
    held("two")
    before = [seed.get(name)["metadata"]["resourceVersion"] for name in ("one", "two")]
    began = time.monotonic()
    answer, error = run("--timeout", "300", status=1)
    assert time.monotonic() - began < 150
    assert states(answer) == {"one": "Alive", "two": "Alive"}
    assert not answer["drained"]
    assert "2 objects" in error
    assert "--release" in error
    assert [seed.get(name)["metadata"]["resourceVersion"] for name in ("one", "two")] == before


def test_a_stuck_object_is_listed_with_its_error_after_the_timeout(run, seed, held):
    held("stuck", deleting=True)
    last = {"description": "the cloud\nsays no", "codes": ["ERR_INFRA_UNAUTHORIZED"]}
    seed.patch({"status": {"lastError": last}}, "stuck", subresource="status")
    answer, error = run("--timeout", "1", status=1)
    (one,) = answer["objects"]
    assert (one["state"], one["lastError"]) == ("Deleting", "the cloud says no")
    assert one["deletedAt"]
    assert "1 object " in error


def test_an_uninstalled_extension_with_many_objects_leaves_nothing_terminating(
    run, disown, seed, held, orphans, namespace
):
    """Scenario 51."""
    for number in range(6):
        held(f"infra-{number}", deleting=number < 3, foreign=[FOREIGN] if number in (2, 5) else ())
    answer, _ = disown()
    assert set(states(answer).values()) == {"Released"}
    assert [seed.is_gone(f"infra-{number}") for number in range(6)] == [True] * 2 + [False] * 4
    assert finalizers(seed, "infra-2") == [FOREIGN]
    assert finalizers(seed, "infra-3") == []
    assert finalizers(seed, "infra-5") == [FOREIGN]
    notes = {object_["name"]: object_["note"] for object_ in answer["objects"]}
    assert FOREIGN in notes["infra-2"]
    assert {(orphan["id"], orphan["reason"]) for orphan in orphans()} == {
        (f"vpc-infra-{number}", "Drained") for number in range(6)
    }
    answer, _ = run()
    assert answer["drained"]
    assert disown()[0]["objects"] == []
    assert len(orphans()) == 6


def test_objects_of_other_extensions_are_not_ours(run, disown, seed, held):
    held("other-type", deleting=True, type="another")
    held("other-class", **{"class": "garden"})
    assert run()[0]["drained"]
    disown()
    assert finalizers(seed, "other-type") == [FINALIZER]
    assert finalizers(seed, "other-class") == [FINALIZER]
    answer, _ = run("--extension-classes", "shoot,garden", status=1)
    assert states(answer) == {"other-class": "Alive"}


def test_an_object_migrated_to_another_seed_leaves_no_orphan(disown, seed, held, orphans):
    held("moved", deleting=True)
    moved = {
        "description": "",
        "lastUpdateTime": "2026-01-01T00:00:00Z",
        "progress": 100,
        "state": "Succeeded",
        "type": "Migrate",
    }
    seed.patch({"status": {"lastOperation": moved}}, "moved", subresource="status")
    disown()
    assert seed.is_gone("moved")
    assert orphans() == []


def test_an_object_that_cannot_be_recorded_is_not_released(run, disown, user, seed, held):
    held("infra", deleting=True)
    extension = "extensions.gardener.cloud"
    allowed = [
        {"apiGroups": [extension], "resources": ["*"], "verbs": ["list", "get", "patch"]},
        {"apiGroups": ["example.org"], "resources": ["*"], "verbs": ["list"]},
    ]
    answer, error = disown(kubeconfig=user(allowed), status=1)
    (one,) = answer["objects"]
    assert one["state"] == "Deleting"
    assert "cannot create orphans" in one["note"]
    assert "1 object " in error
    assert finalizers(seed, "infra") == [FINALIZER]


@pytest.fixture
def user(admin, environment, namespace):
    """A user with these rights, and no others: its kubeconfig."""
    name = f"{namespace}-drain"
    made = []

    def make(rules):
        head = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"}
        role = {**head, "metadata": {"name": name}, "rules": rules}
        admin.create(ROLES, role)
        made.append(ROLES)
        admin.create(BINDINGS, role_binding(role, name))
        made.append(BINDINGS)
        for rule in rules[:1]:
            first = (rule["verbs"][0], rule["resources"][0], rule["apiGroups"][0])
            eventually(lambda first=first: is_allowed(admin, name, *first))
        return environment.user_kubeconfig(name)

    yield make
    for resource in made:
        admin.delete(resource, name)


@pytest.fixture
def manager(namespace, author):
    """The author's extension, added to a manager that never runs."""
    with isolated():
        yield load_manager(author, ())


def test_the_role_of_the_extension_is_enough(run, disown, user, manager, seed, held, orphans):
    kubeconfig = user(cluster_rules(manager))
    held("alive")
    held("deleting", deleting=True)
    answer, _ = run("--timeout", "0", kubeconfig=kubeconfig, status=1)
    assert states(answer) == {"alive": "Alive", "deleting": "Deleting"}
    answer, _ = disown(kubeconfig=kubeconfig)
    assert states(answer) == {"alive": "Released", "deleting": "Released"}
    assert len(orphans()) == 2


def test_a_resource_that_may_not_be_read_is_named(run, user):
    answer, error = run(kubeconfig=user([]), status=3)
    assert answer is None
    assert "cannot list infrastructures.extensions.gardener.cloud" in error


def test_a_finalizer_that_was_added_again_is_reported(admin, manager, seed, held):
    held("infra")
    done = list(release(admin, survey(admin, manager.registrations, ()), SystemClock()))
    seed.patch({"metadata": {"finalizers": [FINALIZER]}}, "infra")
    (row,) = rows_of_released(done, survey(admin, manager.registrations, ()).held)
    assert row.state is ReleaseState.ALIVE
    assert "added again" in row.note


def test_the_selection_and_no_predicate_decides_about_releases(admin, seed, held, namespace):
    manager = Manager()
    nothing: list[Predicate] = [lambda event: bool(1 / 0), has_name("another")]
    manager.add(Script(), type=namespace, namespaces=[namespace], predicates=nothing)
    elsewhere = Manager()
    elsewhere.add(Script(), type=namespace, namespaces=["elsewhere"])
    held("mine")
    found = survey(admin, elsewhere.registrations, ())
    assert not found.held
    assert ("mine", namespace) in {
        (other.request.name, other.request.namespace) for other in found.of_others
    }
    found = survey(admin, manager.registrations, ())
    done = list(release(admin, found, SystemClock()))
    (row,) = rows_of_released(done, survey(admin, manager.registrations, ()).held)
    assert (row.name, row.state) == ("mine", ReleaseState.RELEASED)
    assert finalizers(seed, "mine") == []


def test_a_changed_object_loses_no_foreign_finalizer_and_a_new_object_keeps_ours(
    admin, manager, seed, held
):
    held("changed", foreign=[FOREIGN])
    held("replaced", deleting=True)
    found = survey(admin, manager.registrations, ())
    seed.patch({"metadata": {"finalizers": [FOREIGN, FINALIZER, "example.org/late"]}}, "changed")
    seed.patch({"metadata": {"finalizers": None}}, "replaced")
    held("replaced")
    assert all(not item.is_held for item in release(admin, found, SystemClock()))
    assert finalizers(seed, "changed") == [FOREIGN, "example.org/late"]
    assert finalizers(seed, "replaced") == [FINALIZER], "another object of the same name"


def test_drain_waits_for_an_unavailable_api_server(admin, manager, seed, held):
    held("infra", deleting=True)
    calls: list[Any] = []

    def look():
        calls.append(None)
        if len(calls) == 1:
            raise Unavailable(0, "no answer")
        seed.patch({"metadata": {"finalizers": None}}, "infra")
        return survey(admin, manager.registrations, ())

    assert wait(look, 20, lambda _found: None).held == ()
    calls.clear()
    with pytest.raises(Unavailable):
        wait(look, 0, lambda _found: None)


def test_while_the_extension_runs_nothing_is_released(run, seed, start, admin, namespace):
    manager = start(Script(), leader_election=True, leader_election_id="mine")
    seed.create(infrastructure(namespace, namespace))
    eventually(seed.is_ready)
    lease = ("--release", "--lease", f"{namespace}/mine")
    answer, error = run(*lease, status=3)
    assert answer is None
    assert "scale the extension's Deployment to zero" in error
    assert finalizers(seed, "infra") == [FINALIZER]
    for other in ("none", f"{namespace}/other"):  # the name of a Lease that is not its own
        admin.apply(LEASES, manifest(LEASES.api_version, "Lease", "other", namespace))
        answer, error = run("--release", "--lease", other, status=3)
        assert answer is None
        assert f"holds the Lease {namespace}/mine and would add" in error
    assert finalizers(seed, "infra") == [FINALIZER]
    manager.stop()
    answer, _ = run(*lease)
    assert states(answer) == {"infra": "Released"}
    assert finalizers(seed, "infra") == []


def test_drain_waits_for_the_end_of_a_lease_that_is_not_renewed(run, admin, namespace, held):
    spec = {"holderIdentity": "crashed", "leaseDurationSeconds": 1}
    meta = {"name": "mine", "namespace": namespace}
    lease = {"apiVersion": LEASES.api_version, "kind": "Lease", "metadata": meta, "spec": spec}
    admin.create(LEASES, lease)
    held("infra")
    answer, _ = run("--release", "--lease", f"{namespace}/mine")
    assert states(answer) == {"infra": "Released"}


def test_a_missing_lease_does_not_prove_that_no_manager_runs(run, held, seed, namespace):
    held("infra")
    answer, error = run("--release", "--lease", f"{namespace}/other", status=3)
    assert answer is None
    assert f"Lease {namespace}/other not found" in error
    assert finalizers(seed, "infra") == [FINALIZER]


@pytest.mark.parametrize("lease", [(), ("--lease", "mine"), ("--lease", "/mine")])
def test_to_release_takes_the_name_of_the_lease(run, lease):
    assert "NAMESPACE/NAME" in run("--release", *lease, status=2)[1]


def entry(name, type, secret):
    spec = {"type": type, "region": "eu-1", "bucketName": "b", "secretRef": secret}
    meta = {"name": name, "finalizers": [GUARD]}
    return {"apiVersion": API, "kind": "BackupEntry", "metadata": meta, "spec": spec}


@pytest.fixture
def entries(admin, namespace):
    """BackupEntries that share a guarded Secret: one of our type, one of another's."""
    meta = {"name": "backup", "namespace": namespace, "finalizers": [GUARD, FOREIGN]}
    admin.create(SECRETS, {"apiVersion": "v1", "kind": "Secret", "metadata": meta})
    secret = {"name": "backup", "namespace": namespace}
    names = [f"{namespace}--ours", f"{namespace}--ours-too", f"{namespace}--theirs"]
    for name, type in zip(names, (namespace, namespace, "another"), strict=True):
        admin.create(ENTRIES, entry(name, type, secret))
    yield names
    for resource, name, where in (
        *((ENTRIES, name, "") for name in names),
        (SECRETS, "backup", namespace),
    ):
        try:
            admin.patch(resource, name, where, {"metadata": {"finalizers": None}})
            admin.delete(resource, name, where)
        except NotFound:
            pass


def test_a_guarded_secret_is_released_with_the_last_object_that_needs_it(
    disown, admin, namespace, entries
):
    def guards():
        return admin.get(SECRETS, "backup", namespace)["metadata"]["finalizers"]

    disown()
    assert guards() == [GUARD, FOREIGN], "another's BackupEntry still needs it"
    admin.patch(ENTRIES, entries[2], "", {"metadata": {"finalizers": None}})
    admin.delete(ENTRIES, entries[2])
    for name in entries[:2]:
        admin.patch(ENTRIES, name, "", {"metadata": {"finalizers": [GUARD]}})
    admin.delete(ENTRIES, entries[0])
    disown()
    assert guards() == [FOREIGN]


def test_as_a_command_it_shows_a_table_and_exits_with_1(author, environment, held, tmp_path, run):
    held("infra")
    command = [*ACTUATOR, "drain", author, "--kubeconfig", environment.kubeconfig]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, cwd=tmp_path
    )
    assert done.returncode == 1
    assert "infra" in done.stdout
    assert "Alive" in done.stdout
    assert done.stderr.splitlines()[-1].startswith("Error: 1 object ")
    run("--release", "--lease", "none")
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, cwd=tmp_path
    )
    host = environment.url.removeprefix("https://")
    assert (done.returncode, done.stdout) == (
        0,
        f"no object in the cluster at {host} carries a finalizer of this extension\n",
    )
