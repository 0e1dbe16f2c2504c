"""`actuator explain` against the API server: stuck objects, reasons, and the effects of force."""

import json
import re
import secrets
from contextlib import contextmanager, suppress
from datetime import timedelta

import attrs
import pytest
import yaml

from actuator import Actuator, ActuatorError, ErrorCode, ExternalResource, Resource, SeedObjects
from actuator.errors import ApiError, NotFound
from actuator.interface import resource_of
from actuator.meta import Raw, format_time, parse_time
from actuator.v1alpha1 import BackupEntry, Extension, Infrastructure
from generic.kube.client import connect
from generic.kube.clock import SystemClock
from generic.kube.clusters import CLUSTERS
from generic.manager.manager import Manager
from generic.manager.rbac import role_binding
from generic.reconciler.orphans import ORPHANS, RECORD_KINDS, OrphanedFrom, OrphanReason
from generic.reconciler.orphans.record import record
from generic.testing.seed import install_crds
from generic.tools.explain import explain, overview
from tests.support.cluster.fault_proxy import kubeconfig
from tests.support.cluster.harness import BINDINGS, FINALIZER, RBAC, ROLES, Script, eventually
from tests.support.objects.builders import cluster, infrastructure

NOW = SystemClock().now
CONFIG_MAPS = Resource("v1", "configmaps")
SECRETS = Resource("v1", "secrets")
NAMESPACES = Resource("v1", "namespaces", namespaced=False)
HOOKS = Resource(
    "admissionregistration.k8s.io/v1", "validatingwebhookconfigurations", namespaced=False
)
DECLARED = "example.org/declared"
FOREIGN = "example.org/foreign"
VPC = ExternalResource(type="AWS::EC2::VPC", id="vpc-1", region="eu-1")


class Network(Actuator[Infrastructure, Raw]):
    """Declares ConfigMaps, and knows of something outside."""

    seed_objects = [
        SeedObjects(
            Resource("v1", "configmaps"), finalizers=[DECLARED], label_selector="part=network"
        ),
        SeedObjects(Resource("nowhere.example.org/v1", "nothings")),
    ]

    def reconcile(self, ctx, infrastructure, cluster): ...
    def delete(self, ctx, infrastructure, cluster): ...

    def external_resources(self, infrastructure):
        return [VPC]


class OwnWay(Network):
    """Has its own force deletion, and cannot list external resources."""

    def force_delete(self, ctx, infrastructure, cluster): ...

    def external_resources(self, infrastructure):
        raise KeyError("vpc")


def extension(manager):
    """As authors write it: for the command line."""
    manager.add(Network(), type="net")


def registrations(actuator, type_):
    manager = Manager()
    manager.add(actuator, type=type_)
    return manager.registrations


@pytest.fixture
def seed(seed):
    """The seed; objects left in deletion by a test are deleted with it."""
    yield seed
    eventually(lambda: _is_released(seed))


def _is_released(seed):
    """Whether nothing holds the object; a webhook that is gone is asked for a moment longer."""
    try:
        seed.patch({"metadata": {"finalizers": None}})
    except NotFound:
        return True
    except ApiError:
        return False
    return True


@pytest.fixture
def about(seed):
    """Explains the seed's Infrastructure."""

    def explained(**more):
        return explain(seed.client, Infrastructure.KIND, seed.namespace, "infra", NOW(), **more)

    return explained


@pytest.fixture
def run(environment, command):
    """Runs the command; returns stdout and stderr."""

    def runner(*arguments, kubeconfig=environment.kubeconfig, status=0):
        done = command("explain", "--kubeconfig", kubeconfig, *arguments, status=status)
        return done.stdout, done.stderr

    return runner


def make_deleting(seed, *finalizers, **more):
    """Create a terminating Infrastructure that no manager serves."""
    given = [*finalizers] or [FINALIZER]
    seed.create(infrastructure(seed.namespace, "net", finalizers=given, **more))
    seed.delete()


def test_an_object_that_a_manager_cannot_delete_is_explained(seed, start, about):
    def stuck(ctx, obj, cluster):
        raise ActuatorError("the key is revoked", codes=[ErrorCode.ERR_INFRA_UNAUTHENTICATED])

    start(Script(delete=stuck))
    seed.create(infrastructure(seed.namespace, seed.namespace))
    eventually(seed.is_ready)
    seed.delete()
    eventually(lambda: seed.last_operation() == ("Delete", "Error"))
    found = eventually(lambda: (one := about()).warnings and one)
    standing = found.standing
    assert standing.decision.operation == "delete"
    assert standing.deleting.timestamp == seed.get()["metadata"]["deletionTimestamp"]
    since = (NOW() - parse_time(standing.deleting.timestamp)).total_seconds()
    assert 0 <= standing.deleting.seconds <= since
    assert standing.last_error.codes == ["ERR_INFRA_UNAUTHENTICATED"]
    assert parse_time(standing.last_operation.last_update_time) <= NOW()
    (cause,) = (blocker for blocker in standing.blockers if "the key is revoked" in blocker)
    assert cause.startswith("DeletionBlocked: the key is revoked; ")
    assert cause.endswith(" [ERR_INFRA_UNAUTHENTICATED]")
    assert [(held.finalizer, held.ours) for held in standing.finalizers] == [(FINALIZER, True)]
    assert standing.forcing.own_codes == ("ERR_INFRA_UNAUTHENTICATED",)
    assert "the key is revoked" in found.warnings[0].message
    assert found.unread == ()


@pytest.mark.parametrize(
    ("value", "operation", "counts"),
    [
        ("true", "force_delete", True),
        ("1", "force_delete", True),
        ("TRUE", "force_delete", True),
        ("yes", "delete", False),
        ("", "delete", False),
        ("false", "delete", False),
    ],
)
def test_the_annotation_as_written_decides_the_operation(seed, about, value, operation, counts):
    make_deleting(seed)
    seed.update_cluster(cluster(seed.namespace, force=value))
    standing = about().standing
    assert standing.decision.operation == operation
    assert (standing.forcing.value, standing.forcing.counts) == (value, counts)
    assert any("force deletion: " in text for text in standing.blockers) != counts


def test_gardeners_own_conditions_are_read_from_the_shoot(seed, about):
    make_deleting(seed)
    assert about().standing.forcing.not_allowed_because.startswith("the shoot is not being deleted")
    manifest = cluster(seed.namespace)
    shoot = manifest["spec"]["shoot"]
    shoot["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    shoot["status"]["lastErrors"] = [{"codes": ["ERR_INFRA_QUOTA_EXCEEDED"]}]
    seed.update_cluster(manifest)
    assert about().standing.forcing.allowed is False
    shoot["status"]["lastErrors"] += [{"codes": ["ERR_INFRA_UNAUTHORIZED"]}]
    seed.update_cluster(manifest)
    forcing = about().standing.forcing
    assert (forcing.allowed, forcing.not_allowed_because) == (True, "")
    assert forcing.shoot_codes == ("ERR_INFRA_QUOTA_EXCEEDED", "ERR_INFRA_UNAUTHORIZED")


def test_a_missing_cluster_and_a_missing_secret_are_named(seed, about):
    make_deleting(seed)
    secret = f"referenced Secret {seed.namespace}/cloudprovider not found"
    assert secret in about().standing.blockers
    meta = {"name": "cloudprovider", "namespace": seed.namespace}
    seed.client.create(SECRETS, {"metadata": meta})
    seed.client.delete(CLUSTERS, seed.namespace)
    standing = about().standing
    assert standing.secret.exists is True
    assert standing.decision.blocked
    assert standing.blockers[0].startswith(f"Cluster {seed.namespace} not found")
    assert secret not in standing.blockers


def test_finalizers_of_others_are_named_with_their_owners(seed, about):
    make_deleting(seed, "machine.sapcloud.io/machine-controller-manager", FOREIGN)
    standing = about().standing
    assert (standing.decision.operation, standing.decision.blocked) == ("", False)
    assert [held.owner for held in standing.finalizers] == [
        "machine-controller-manager",
        "unknown: a controller of example.org",
    ]
    assert f"finalizer {FOREIGN} (unknown: a controller of example.org)" in standing.blockers


def config_map(seed, name, *finalizers, part="network"):
    meta = {"name": name, "namespace": seed.namespace, "finalizers": [*finalizers]}
    seed.client.create(CONFIG_MAPS, {"metadata": {**meta, "labels": {"part": part}}})


def test_seed_objects_and_remaining_resources_of_a_force_deletion_are_listed_unchanged(seed, about):
    make_deleting(seed)
    config_map(seed, "plain")
    config_map(seed, "held", DECLARED, FOREIGN)
    config_map(seed, "elsewhere", DECLARED, part="other")
    removal = about(registrations=registrations(Network(), "net")).removal
    found = {
        seed_object.name: (seed_object.stripped, seed_object.holding)
        for seed_object in removal.seed_objects
    }
    assert found == {"plain": ((), ()), "held": ((DECLARED,), (FOREIGN,))}
    assert (removal.actuator, removal.own_way) == ("Network", False)
    assert removal.remaining_resources == (VPC,)
    held = seed.client.get(CONFIG_MAPS, "held", seed.namespace)
    assert held["metadata"]["finalizers"] == [DECLARED, FOREIGN]
    assert "deletionTimestamp" not in held["metadata"]
    for name in ("held", "elsewhere"):
        patch = {"metadata": {"finalizers": None}}
        seed.client.patch(CONFIG_MAPS, name, seed.namespace, patch)


def test_an_own_force_deletion_is_reported_and_unidentified_resources_are_unknown(seed, about):
    make_deleting(seed)
    found = about(registrations=registrations(OwnWay(), "net"))
    assert found.removal.own_way
    assert found.removal.remaining_resources == (ExternalResource(type="unknown"),)
    (note,) = (note for note in found.notes if note.startswith("external_resources failed"))
    assert re.search(r"\(test_explain\.py:\d+\)$", note)


def test_an_extension_that_serves_another_type_is_noted(seed, about):
    make_deleting(seed)
    found = about(registrations=registrations(Network(), "another"))
    assert found.removal is None
    assert "the extension serves no Infrastructure of type 'net'" in found.notes


def test_an_untouched_object_is_explained_by_the_types_reconciled_here(seed, about):
    served = f"{seed.namespace}-acme"
    kind = Infrastructure.KIND
    seed.create(infrastructure(seed.namespace, served, name="other"))
    done = {
        "type": "Create",
        "state": "Succeeded",
        "description": "d",
        "progress": 100,
        "lastUpdateTime": format_time(NOW()),
    }
    seed.patch({"status": {"lastOperation": done}}, "other", "status")
    seed.create(infrastructure(seed.namespace, f"{served}e"))
    later = NOW() + timedelta(minutes=1)
    arguments = (seed.client, kind, seed.namespace, "infra", later)
    found = explain(*arguments, registrations(Network(), served))
    assert found.standing.untouched
    assert found.standing.blockers[0].endswith(f"an extension runs for type '{served}e'")
    mean = f"did you mean {served!r}?"
    assert found.notes[0] == (f"the extension serves no Infrastructure of type '{served}e'; {mean}")
    assert found.notes[1].endswith(mean)
    assert not explain(*arguments[:-1], NOW()).standing.untouched


def test_a_kind_that_is_not_installed_differs_from_a_missing_object(seed):
    absent = attrs.evolve(Infrastructure.KIND, name="Absent", plural="absents")
    with pytest.raises(ActuatorError, match=r"Absent is not installed here.*actuator crds"):
        explain(seed.client, absent, seed.namespace, "infra", NOW())
    with pytest.raises(ActuatorError, match=r"serves no extension kind.*actuator crds"):
        overview(seed.client, [absent], seed.namespace, NOW())


@contextmanager
def webhook(admin, namespace, **more):
    """A webhook that is never asked: its namespace selector names another namespace as well."""
    name = f"guard-{namespace}"
    rule = {
        "operations": ["UPDATE"],
        "apiGroups": ["extensions.gardener.cloud"],
        "apiVersions": ["*"],
        "resources": ["infrastructures", "infrastructures/status"],
    }
    hook: Raw = {
        "name": "guard.example.org",
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        **more,
    }
    admin.create(HOOKS, {"metadata": {"name": name}, "webhooks": [hook]})
    try:
        yield name
    finally:
        admin.delete(HOOKS, name)


@pytest.mark.parametrize(
    ("more", "asked"),
    [
        ({}, True),
        ({"failurePolicy": "Ignore"}, True),
        ({"objectSelector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}, True),
        ({"objectSelector": {"matchLabels": {"a": "c"}}}, False),
        ({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "x"}}}, False),
    ],
)
def test_webhooks_that_may_refuse_our_patches_are_named(seed, about, more, asked):
    make_deleting(seed, labels={"a": "b"})
    with webhook(seed.client, seed.namespace, **more) as name:
        found = [hook for hook in about().webhooks if hook.configuration == name]
    if not asked:
        assert found == []
        return
    (hook,) = found
    assert hook.failure_policy == more.get("failurePolicy", "Fail")
    assert hook.patches == ("finalizers", "status")
    assert (hook.name, hook.mutating, hook.conditional) == ("guard.example.org", False, False)


EXEMPT = {"name": "deleting", "expression": "! has( object.metadata.deletionTimestamp )"}
OURS = {"name": "exempt-objects-under-deletion", "expression": EXEMPT["expression"]}
OTHER = {"name": "type", "expression": "object.spec.type == 'x'"}


@pytest.mark.parametrize(
    ("conditions", "exempts", "ours", "conditional"),
    [
        ([], False, False, False),
        ([EXEMPT], True, False, False),
        ([OURS], True, True, False),
        ([OURS, OTHER], True, True, True),
        ([OTHER], False, False, True),
    ],
)
def test_webhooks_that_exempt_objects_under_deletion_are_recognized(
    seed, about, conditions, exempts, ours, conditional
):
    make_deleting(seed)
    with webhook(seed.client, seed.namespace, matchConditions=conditions) as name:
        (hook,) = [hook for hook in about().webhooks if hook.configuration == name]
    assert (hook.exempts_deletion, hook.ours) == (exempts, ours)
    assert (hook.conditional, hook.error) == (conditional, "")


def test_a_webhook_that_does_not_answer_is_shown_with_its_last_error(seed, about):
    make_deleting(seed)
    error = 'failed calling webhook "guard.example.org": connection refused'
    seed.patch({"status": {"lastError": {"description": error}}}, "infra", "status")
    rules = [
        {
            "operations": ["DELETE"],
            "apiGroups": ["*"],
            "apiVersions": ["*"],
            "resources": ["infrastructures"],
        }
    ]
    with webhook(seed.client, seed.namespace, rules=rules) as name:
        (hook,) = [hook for hook in about().webhooks if hook.configuration == name]
    assert (hook.patches, hook.error) == (("deletion",), error)


def test_orphans_of_this_very_object_are_shown(seed, about):
    install_crds(seed.client, [*RECORD_KINDS])
    make_deleting(seed)
    uid = seed.get()["metadata"]["uid"]
    for owner in (uid, "another"):
        release = OrphanedFrom(
            api_version=Infrastructure.KIND.api_version,
            kind="Infrastructure",
            namespace=seed.namespace,
            name="infra",
            uid=owner,
        )
        record(seed.client, release, VPC, OrphanReason.FORCED, "why", NOW())
    found = about()
    (orphan,) = found.orphans
    assert (orphan.resource, orphan.reason, orphan.state) == (VPC, "ForceDeleted", "Unverified")
    assert orphan.name.startswith(uid)
    assert found.notes == ()
    for obj in seed.client.list(ORPHANS):
        if obj["spec"].get("shoot") == seed.namespace:
            seed.client.delete(ORPHANS, obj["metadata"]["name"])


@contextmanager
def limited_user(environment, admin, *rules):
    """The kubeconfig of a user who may do only this: (group, resources, verbs)."""
    name = f"reader-{secrets.token_hex(4)}"
    listed = [{"apiGroups": [g], "resources": r, "verbs": v} for g, r, v in rules]
    role = {"apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": name}, "rules": listed}
    admin.create(ROLES, role)
    admin.create(BINDINGS, role_binding(role, name))
    try:
        yield environment.user_kubeconfig(name)
    finally:
        admin.delete(BINDINGS, name)
        admin.delete(ROLES, name)


def test_resources_that_explain_may_not_read_are_listed_and_the_rest_is_explained(
    environment, admin, seed, run
):
    make_deleting(seed)
    only = ("extensions.gardener.cloud", ["infrastructures"], ["get", "list"])
    target = f"{seed.namespace}/Infrastructure/infra"
    with limited_user(environment, admin, only) as kubeconfig:
        client = connect(kubeconfig)
        found = eventually(lambda: _try(client, seed))
        printed, _ = run(target, kubeconfig=kubeconfig)
    cannot = {(item.verb, item.resource) for item in found.unread}
    assert ("get", "clusters.extensions.gardener.cloud") in cannot
    assert ("get", "secrets") in cannot
    assert ("list", "events") in cannot
    assert ("list", "validatingwebhookconfigurations.admissionregistration.k8s.io") in cannot
    assert all(item.reason == "forbidden (403)" for item in found.unread)
    assert found.standing.forcing.counts is None
    assert found.standing.decision.blocked
    assert found.standing.secret.exists is None
    assert "cannot get secrets" in printed


def _try(client, seed):
    """None until the new user's role has arrived."""
    with suppress(ActuatorError):
        return explain(client, Infrastructure.KIND, seed.namespace, "infra", NOW())
    return None


def test_a_user_who_may_not_read_the_object_gets_one_sentence(environment, admin, seed, run):
    make_deleting(seed)
    with limited_user(environment, admin) as kubeconfig:
        where = f"{seed.namespace}/infra/infra"
        _, complaint = run(where, kubeconfig=kubeconfig, status=1)
    assert "cannot get infrastructures.extensions.gardener.cloud" in complaint
    assert "forbidden (403)" in complaint
    assert "--resource=infrastructures.extensions.gardener.cloud" in complaint


def test_a_namespace_of_which_nothing_may_be_read_is_an_error(environment, admin, seed, run):
    with limited_user(environment, admin) as kubeconfig:
        printed, complaint = run(seed.namespace, kubeconfig=kubeconfig, status=1)
    assert printed == ""
    assert "kubectl create clusterrole actuator-explain --verb=get,list" in complaint


def test_a_namespace_is_a_table_with_the_troubled_first(seed):
    name = f"{seed.namespace}--uid"
    entries = resource_of(BackupEntry.KIND)
    entry = {
        "apiVersion": BackupEntry.KIND.api_version,
        "kind": "BackupEntry",
        "metadata": {"name": name},
        "spec": {"type": "net", "region": "r", "bucketName": "b", "secretRef": {"name": "s"}},
    }
    seed.client.create(entries, entry)
    extensions = seed.of(Extension, "dns")
    manifest = {
        "apiVersion": Extension.KIND.api_version,
        "kind": "Extension",
        "metadata": {"name": "dns", "namespace": seed.namespace},
        "spec": {"type": "dns"},
    }
    extensions.create(manifest)
    make_deleting(seed)
    kinds = [BackupEntry.KIND, Extension.KIND, Infrastructure.KIND]
    found = overview(seed.client, kinds, seed.namespace, NOW())
    names = [standing.subject.name for standing in found.objects]
    seed.client.delete(entries, name)
    assert names[0] == "infra"
    assert sorted(names) == sorted(["infra", "dns", name])
    assert found.deleting is None
    assert {object_.decision.operation for object_ in found.objects} == {"delete", "reconcile"}


def test_a_namespace_that_cannot_end_names_the_remaining_objects(seed):
    make_deleting(seed)
    seed.client.delete(NAMESPACES, seed.namespace)

    def explained():
        found = overview(seed.client, [Infrastructure.KIND], seed.namespace, NOW())
        return found if any("infrastructures" in text for text in found.remaining) else None

    assert eventually(explained).deleting is not None


def test_the_command_prints_a_page_a_table_and_json(seed, run):
    make_deleting(seed, provider_config={"password": "hunter2"})
    target = f"{seed.namespace}/infra/infra"
    printed, _ = run(target)
    assert f"Infrastructure {seed.namespace}/infra" in printed
    printed, _ = run(seed.namespace)
    assert "Infrastructure" in printed
    printed, _ = run(target, "-o", "json", "--extension", f"{__name__}:extension")
    told = json.loads(printed)
    assert told["version"] == 2
    assert told["standing"]["subject"]["name"] == "infra"
    assert told["removal"]["remainingResources"] == [attrs.asdict(VPC)]
    whole, _ = run(seed.namespace, "-o", "json")
    assert [object_["subject"]["name"] for object_ in json.loads(whole)["objects"]] == ["infra"]
    assert "hunter2" not in printed + whole


def test_several_targets_are_explained_and_a_missing_one_keeps_no_other(seed, run):
    make_deleting(seed)
    target = f"{seed.namespace}/infra/infra"
    for given in ((seed.namespace, target), (target, "nowhere-to-be-found", seed.namespace)):
        status = 0 if "nowhere-to-be-found" not in given else 1
        printed, complaint = run(*given, "-o", "json", status=status)
        names = [item.get("namespace", "infra") for item in json.loads(printed)["items"]]
        assert sorted(names) == ["infra", seed.namespace]
        words = [": namespace nowhere-to-be-found not found"] * status
        assert [line[line.index(": namespace") :] for line in complaint.splitlines()] == words
    page, _ = run(seed.namespace, target)
    assert page.index(f"Namespace {seed.namespace}") < page.index(f"Infrastructure {target[:4]}")
    told = yaml.safe_load(run(target, "-o", "yaml")[0])
    assert told["standing"]["subject"]["class"] == ""


def test_contents_of_secrets_and_states_are_never_printed(seed, run):
    make_deleting(seed, provider_config={"password": "hunter2"})
    meta = {"name": "cloudprovider", "namespace": seed.namespace}
    seed.client.create(SECRETS, {"metadata": meta, "stringData": {"key": "hunter2"}})
    seed.patch({"status": {"state": {"key": "hunter2"}}}, subresource="status")
    for form in ("json", "table"):
        for target in (f"{seed.namespace}/Infrastructure/infra", seed.namespace):
            printed, _ = run(target, "-o", form)
            assert "hunter2" not in printed
            assert "aHVudGVyMg" not in printed


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["NS/Infrastructure/missing"], 1, "Infrastructure NS/missing not found"),
        (["NS/infrastructures/missing"], 1, "Infrastructure NS/missing not found"),
        (["nowhere-to-be-found"], 1, "namespace nowhere-to-be-found not found"),
        (["BackupBucket/missing"], 1, "BackupBucket missing not found"),
        (["NS/Thing/x"], 2, "unknown kind 'Thing'"),
        (["Infrastructure/x"], 2, "use NAMESPACE/Infrastructure/x"),
        (["a/b/c/d"], 2, "expected NAMESPACE or NAMESPACE/KIND/NAME"),
        (["NS/Infrastructure/"], 2, "expected NAMESPACE or NAMESPACE/KIND/NAME"),
        ([""], 2, "expected NAMESPACE or NAMESPACE/KIND/NAME"),
        ([], 2, "Missing argument"),
        (["NS", "--type", "net"], 2, "--extension"),
        (["NS", "-o", "xml"], 2, "xml"),
        (["NS", "--kind", "nowhere:Thing"], 1, "module 'nowhere' not found"),
    ],
)
def test_each_wrong_argument_gets_one_sentence(seed, run, arguments, status, words):
    given = [text.replace("NS", seed.namespace) for text in arguments]
    printed, complaint = run(*given, status=status)
    assert words.replace("NS/m", f"{seed.namespace}/m") in complaint
    assert printed == ""


def test_a_kind_of_ones_own_is_explained_as_well(seed, run):
    from extensions.local.mounts import Mount

    install_crds(seed.client, [Mount])
    kind = Mount.KIND
    manifest = {
        "apiVersion": kind.api_version,
        "kind": kind.name,
        "metadata": {"name": "m", "namespace": seed.namespace, "finalizers": [kind.finalizer]},
        "spec": {"share": "x"},
    }
    resource = resource_of(kind)
    seed.client.create(resource, manifest)
    seed.client.delete(resource, "m", seed.namespace)
    own = ["--kind", "extensions.local.mounts:Mount", "-o", "json"]
    printed, complaint = run(f"{seed.namespace}/{kind.name}/m", *own)
    seed.client.patch(resource, "m", seed.namespace, {"metadata": {"finalizers": None}})
    assert complaint == ""
    told = json.loads(printed)["standing"]
    assert told["decision"]["operation"] == "delete"
    assert told["finalizers"][0]["ours"] is True


def test_without_an_api_server_there_is_one_sentence(tmp_path, run):
    path = kubeconfig(tmp_path / "kubeconfig", "https://127.0.0.1:1", token="t")
    _, complaint = run("ns", kubeconfig=path, status=1)
    assert complaint.startswith("Error: GET ")
    assert len(complaint.splitlines()) == 1
