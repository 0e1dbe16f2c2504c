"""`actuator orphans list / verify / close`: records of a force deletion."""

import json
import re
import subprocess
import sys
from datetime import UTC, datetime

import attrs
import pytest
import yaml

from actuator import ExternalResource
from actuator.errors import ActuatorError, ApiError, NotFound
from actuator.meta import Raw, format_time
from generic.kube.client import connect
from generic.kube.crds import crd
from generic.manager.orphans.ledger import find, read_orphans, short_names, write_status
from generic.manager.orphans.verification import UNVERIFIABLE
from generic.manager.rbac import role_binding
from generic.reconciler.orphans import ORPHANS, RECORD_KINDS, Orphan, OrphanedFrom, OrphanReason
from generic.reconciler.orphans.record import record
from generic.testing.envtest import Environment
from generic.testing.seed import CRDS, install
from tests.support.cluster.harness import BINDINGS, ROLES, eventually, is_allowed

ACTUATOR = [sys.executable, "-c", "from generic.tools.cli.main import main; main()"]
NOW = datetime.now(UTC)
ORIGIN = (
    *("seedIdentity", "seed", "garden", "project", "shoot", "shootUid", "region"),
    *("credentials", "account", "extensionVersion", "confirmedBy"),
)
MODULE = """
from actuator import Actuator, ActuatorError, ErrorCode
from actuator.v1alpha1 import Infrastructure, Worker

class Network(Actuator[Infrastructure]):
    def reconcile(self, ctx, infrastructure, cluster): ...
    def delete(self, ctx, infrastructure, cluster): ...
    def still_exists(self, resource):
        if resource.id == "refused":
            raise ActuatorError("the cloud said no", codes=[ErrorCode.ERR_INFRA_UNAUTHORIZED])
        if resource.id == "bug":
            return {}["nothing"]
        return {"there": True, "gone": False}.get(resource.id)

class Machines(Actuator[Worker]):
    def reconcile(self, ctx, worker, cluster): ...
    def delete(self, ctx, worker, cluster): ...

def extension(manager):
    manager.add(Network(), type="TYPE")
    manager.add(Machines(), type="TYPE")
"""


@pytest.fixture(scope="module")
def environment(clusters):
    """A borrowed cluster: no other test uses its orphans and their CRD."""
    with pytest.MonkeyPatch.context() as patch:
        clusters.patch(patch)
        with Environment() as running:
            yield running


@pytest.fixture(scope="module")
def admin(environment):
    install(environment, [*RECORD_KINDS])
    client = connect(environment.kubeconfig)
    for obj in client.list(ORPHANS):  # of those who had it before
        client.delete(ORPHANS, obj["metadata"]["name"])
    return client


@pytest.fixture
def extension(tmp_path, monkeypatch, namespace):
    """An author's extension, for the type named like the namespace."""
    module = f"asked_{namespace.replace('-', '_')}"
    (tmp_path / f"{module}.py").write_text(MODULE.replace("TYPE", namespace))
    monkeypatch.chdir(tmp_path)
    return f"{module}:extension"


@pytest.fixture
def keep(admin, namespace):
    """Records orphans; no others exist meanwhile, and none afterwards."""

    def keep(id="", *, kind="Infrastructure", type=namespace, uid="", state="", **more):
        release = OrphanedFrom(
            api_version="extensions.gardener.cloud/v1alpha1",
            kind=kind,
            namespace=namespace,
            name="infra",
            uid=uid or "0b9e6b1c-58a5-4b0a-9a53-8c1d2f3e4a5b",
            type=type,
        )
        given = {"type": "Test::VPC", "id": id, "region": "eu-west-1"} | more
        resource = ExternalResource(**given)
        reason = OrphanReason.FORCED
        name = record(admin, release, resource, reason, "revoked", NOW).metadata.name
        if state:
            status = {"state": state, "verifiedAt": format_time(NOW)}
            patch = [{"op": "add", "path": "/status", "value": status}]
            admin.patch(ORPHANS, name, "", patch, subresource="status")
        return name

    yield keep
    for obj in admin.list(ORPHANS):
        admin.delete(ORPHANS, obj["metadata"]["name"])


@pytest.fixture
def call(environment, command):
    """Calls a command; returns stdout and stderr."""

    def call(*arguments, kubeconfig=environment.kubeconfig, status=0):
        done = command("orphans", *arguments, "--kubeconfig", kubeconfig, status=status)
        return done.stdout, done.stderr

    return call


@pytest.fixture
def listed(call):
    """The names in the JSON that `list` prints."""
    return lambda *arguments: {
        orphan["name"]
        for orphan in json.loads(call("list", "-o", "json", *arguments)[0])["orphans"]
    }


def status(admin, name):
    return admin.get(ORPHANS, name).get("status") or {}


def test_open_ones_are_listed_and_with_all_the_settled_ones_too(keep, listed):
    unknown = keep("unknown")
    there = keep("there", state="Exists")
    gone = keep("gone", state="Gone")
    closed = keep("closed", state="Closed")
    assert listed() == {unknown, there}
    assert listed("--all") == {unknown, there, gone, closed}


def test_a_list_can_be_narrowed(keep, listed, namespace):
    vpc = keep("1")
    subnet = keep("2")
    machine = keep("3", kind="Worker")
    assert listed("--kind", "worker") == {machine}
    assert listed("--shoot", namespace) == {vpc, subnet, machine}
    assert listed("--shoot", "another") == set()
    assert listed("--type", "test::vpc") == {vpc, subnet, machine}
    assert listed("--type", "Test::Subnet") == set()


def test_json_has_every_recorded_field(keep, call, namespace):
    name = keep("there", tags={"owner": "us"}, state="Exists")
    answer = json.loads(call("list", "-o", "json")[0])
    assert answer["version"] == 1
    (one,) = answer["orphans"]
    assert one == {
        "name": name,
        "resourceType": "Test::VPC",
        "id": "there",
        "tags": {"owner": "us"},
        "region": "eu-west-1",
        "shoot": namespace,
        "object": {
            "apiVersion": "extensions.gardener.cloud/v1alpha1",
            "kind": "Infrastructure",
            "namespace": namespace,
            "name": "infra",
            "uid": "0b9e6b1c-58a5-4b0a-9a53-8c1d2f3e4a5b",
            "type": namespace,
            "origin": dict.fromkeys(ORIGIN, ""),
        },
        "reason": "ForceDeleted",
        "message": "revoked",
        "recordedAt": format_time(NOW),
        "state": "Exists",
        "verifiedAt": format_time(NOW),
        "closedAt": None,
        "closedBy": "",
        "closedByVerified": False,
        "note": "",
    }


LONG = {f"kubernetes.io/cluster/shoot--{'x' * 60}-{number}": "owned" for number in range(3)}


def test_the_table_has_one_whole_line_for_each_and_totals(keep, call, namespace, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    rows = {
        keep("sg-0123456789abcdef0", type=namespace): ["sg-0123456789abcdef0", "Unverified"],
        keep("a\nb", uid="1-2"): ["a\\nb"],
        keep(tags=LONG, uid="2-3", state="Exists"): [*LONG, "Exists"],
        keep("", uid="3-4", region=""): ["Unverified"],
    }
    for output, more in (("table", []), ("wide", ["ForceDeleted", "revoked", "Infrastructure/i"])):
        head, *lines, blank, total = call("list", "-o", output)[0].splitlines()
        assert head.split()[:2] == ["NAME", "TYPE"]
        assert blank == ""
        assert total == "4 orphans of 1 shoot: 1 Exists, 3 Unverified"
        for (name, words), line in zip(rows.items(), lines, strict=True):
            assert name.startswith(line.split()[0].partition("-")[0])
            assert all(word in line for word in (*words, *more, namespace, "Test::VPC"))
    states = json.loads(call("list", "-o", "json")[0])["totals"]
    assert states == {"Unverified": 3, "Exists": 1}


def test_names_are_accepted_by_the_other_commands(keep, call, admin):
    names = [keep("one"), keep("two", uid="1-2")]
    shown = call("list", "-o", "name")[0].split()
    assert sorted(shown) == sorted(names)
    call("close", *shown, "--note", "done")
    assert {status(admin, name)["state"] for name in names} == {"Closed"}
    assert call("list", "-o", "name")[0] == "", "nothing for xargs"


def test_yaml_and_json_have_the_same_content(keep, call):
    keep("there", state="Exists", tags={"owner": "us"})
    assert yaml.safe_load(call("list", "-o", "yaml")[0]) == json.loads(
        call("list", "-o", "json")[0]
    )


def test_an_empty_record_is_reported_as_empty(keep, call):
    assert call("list")[0] == "no open orphans selected, 0 recorded\n"
    keep("closed", state="Closed")
    assert call("list")[0] == "no open orphans selected, 1 recorded\n"
    assert call("close", "--all-gone")[0] == "no orphans in state Gone\n"


def test_verify_asks_the_actuator_and_records_its_answers(keep, call, extension, admin):
    there = keep("there")
    gone = keep("gone")
    unknown = keep("")
    out, said = call("verify", extension, "-o", "json", status=1)
    assert said == "Error: 2 of 3 still exist or could not be verified\n"
    answers = {orphan["name"]: orphan for orphan in json.loads(out)["orphans"]}
    assert {name: answer["state"] for name, answer in answers.items()} == {
        there: "Exists",
        gone: "Gone",
        unknown: "Unverified",
    }
    assert answers[unknown]["problem"] == UNVERIFIABLE
    for name in (there, gone):
        assert status(admin, name)["state"] == answers[name]["state"]
        assert status(admin, name)["verifiedAt"] == answers[name]["verifiedAt"] is not None
    assert status(admin, unknown) == {"state": "Unverified"}


def test_verify_succeeds_once_nothing_is_left(keep, call, extension, admin):
    keep("gone", state="Exists")
    keep("there", state="Closed")
    call("verify", extension, "-o", "json")
    assert call("verify", extension)[0] == "no open orphans\n"


def test_one_that_cannot_be_verified_keeps_no_other_from_it(keep, call, extension, admin):
    refused = keep("refused", state="Exists")
    bug = keep("bug")
    gone = keep("gone")
    out, said = call("verify", extension, "-o", "json", status=1)
    answers = {orphan["name"]: orphan for orphan in json.loads(out)["orphans"]}
    assert answers[refused]["problem"] == "the cloud said no"
    assert answers[bug]["problem"] == "KeyError: 'nothing'"
    assert answers[gone]["state"] == "Gone"
    assert said == "Error: 2 of 3 still exist or could not be verified\n"
    assert status(admin, refused)["state"] == "Exists", "what was known before stays"


def test_the_table_of_verify_has_the_problem(keep, call, extension):
    keep("refused")
    head, line, *_ = call("verify", extension, status=1)[0].splitlines()
    assert line[head.index("PROBLEM") :] == "the cloud said no"


def test_orphans_of_other_extensions_are_not_asked_about(keep, call, extension, admin):
    gone = keep("gone")
    other = keep("there", type="gcp")
    out, said = call("verify", extension, "-o", "json")
    assert json.loads(out)["ofOthers"] == [other]
    assert "skipped 1 open orphan of other extensions" in said
    assert status(admin, gone)["state"] == "Gone"
    assert status(admin, other) == {}


def test_verify_can_be_narrowed_to_a_shoot(keep, call, extension, admin, namespace):
    gone = keep("gone")
    assert call("verify", extension, "--shoot", "another")[0] == "no open orphans\n"
    assert status(admin, gone) == {}
    call("verify", extension, "--shoot", namespace)
    assert status(admin, gone)["state"] == "Gone"


def test_an_extension_that_serves_none_of_them_verified_nothing(keep, call, extension):
    keep("there", kind="Network")
    assert f"no open orphan belongs to {extension}" in call("verify", extension, status=3)[1]


def test_one_that_is_named_but_served_by_no_actuator_is_not_verified(keep, call, extension):
    other = keep("there", type="gcp")
    gone = keep("gone")
    out, said = call("verify", extension, other, gone, "-o", "json", status=1)
    problem = {orphan["name"]: orphan["problem"] for orphan in json.loads(out)["orphans"]}
    assert "serves Infrastructure of type gcp" in problem[other]
    assert problem[gone] == ""
    assert "Error: 1 of 2 still exist or could not be verified" in said


def test_a_name_that_is_not_there_keeps_no_other_from_being_verified(keep, call, extension, admin):
    gone = keep("gone")
    _, said = call("verify", extension, "nowhere", gone, status=1)
    assert "Orphan nowhere not found; run `actuator orphans list --all`" in said
    assert "Error: 1 of 2 still exist or could not be verified" in said
    assert status(admin, gone)["state"] == "Gone"


def test_verify_keeps_a_closed_orphan_closed(keep, call, extension, admin):
    closed = keep("there", state="Closed")
    call("verify", extension, closed)
    assert status(admin, closed)["state"] == "Closed"


@pytest.mark.parametrize(("others", "marked"), [(0, False), (1, True)])
def test_many_are_marked_as_gone_only_if_another_exists_or_their_number_is_set(
    keep, call, extension, admin, others, marked
):
    """With credentials of another account, every resource appears to be gone."""
    gone = [keep("gone", uid=f"{number}-1") for number in range(6)]
    for number in range(others):
        keep("there", uid=f"{number}-2")
    out, _ = call("verify", extension, "-o", "json", status=1)
    problems = {orphan["problem"] for orphan in json.loads(out)["orphans"]}
    states = {status(admin, name).get("state") for name in gone}
    assert states == ({"Gone"} if marked else {"Unverified"})
    doubt = "not recorded: all 6 resources are missing, as with credentials of another account; "
    assert problems == ({""} if marked else {f"{doubt}check the account, then set --gone 6"})
    if not marked:
        call("verify", extension, "--gone", "5", status=1)
        assert {status(admin, name)["state"] for name in gone} == {"Unverified"}
        call("verify", extension, "--gone", "6")
        assert {status(admin, name)["state"] for name in gone} == {"Gone"}


def test_many_are_closed_only_with_their_number_and_can_be_reopened(keep, call, admin):
    gone = [keep("gone", uid=f"{number}-1", state="Gone") for number in range(6)]
    for flags in ([], ["--count", "5"]):
        assert "then set --count 6" in call("close", "--all-gone", *flags, status=2)[1]
    assert {status(admin, name)["state"] for name in gone} == {"Gone"}
    call("close", "--all-gone", "--count", "6")
    assert {status(admin, name)["state"] for name in gone} == {"Closed"}
    out, _ = call("reopen", *gone, "--note", "another account")
    assert out.count(": reopened\n") == 6
    assert {tuple(status(admin, name).items()) for name in gone} == {
        (("note", "another account"), ("state", "Unverified"))
    }
    out, said = call("reopen", gone[0], "nowhere", status=1)
    assert "already open" in out
    assert "Error: 1 of 2 not reopened" in said


def test_a_wide_list_has_the_origin_and_escapes_it(keep, call, admin, namespace):
    origin = {"seed": "aws-eu1", "confirmedBy": "eve\x1b[2J\nroot"}
    name = keep("there")
    admin.patch(ORPHANS, name, "", {"spec": {"object": {"origin": origin}}})
    found, _ = call("list", "-o", "wide", "--shoot", namespace)
    assert "aws-eu1" in found.split()
    assert r"eve\u001b[2J\nroot" in found
    assert "\x1b" not in found


def test_close_records_when_and_why(keep, call, admin):
    name = keep("unknown")
    assert call("close", name, "--note", "removed by hand") == (
        f"{name}: Test::VPC unknown in eu-west-1: closed by admin (not verified)\n",
        "",
    )
    written = status(admin, name)
    assert (written["state"], written["note"]) == ("Closed", "removed by hand")
    assert written["closedAt"]
    assert (written["closedBy"], written.get("closedByVerified", False)) == ("admin", False)


def test_a_note_is_never_stored_without_its_end(keep, call):
    for command in ("close", "reopen"):
        _, said = call(command, keep("there"), "--note", "x" * 1001, status=2)
        assert "has 1001 characters; at most 1000 are stored" in said


def test_closing_again_changes_nothing_but_the_note(keep, call, admin):
    name = keep("unknown", state="Gone")
    call("close", name, "--note", "first")
    before = admin.get(ORPHANS, name)
    assert call("close", name)[0].endswith("already closed\n")
    assert admin.get(ORPHANS, name) == before
    call("close", name, "--note", "second")
    assert status(admin, name) == before["status"] | {"note": "second"}
    assert before["status"]["verifiedAt"]


def test_an_orphan_that_exists_is_closed_only_with_a_flag(keep, call, admin):
    there = keep("there", state="Exists")
    other = keep("unknown")
    out, said = call("close", there, other, "--note", "left there", status=1)
    assert "still existed at" in said
    assert "--even-if-exists" in said
    assert "Error: 1 of 2 not closed" in said
    assert out.startswith(other)
    assert status(admin, there)["state"] == "Exists"
    call("close", there, "--even-if-exists", "--note", "left there")
    assert status(admin, there)["state"] == "Closed"


def test_all_that_is_gone_is_closed_at_once_and_nothing_else(keep, call, admin):
    gone = [keep("1", state="Gone"), keep("2", state="Gone")]
    unknown = keep("3")
    call("close", "--all-gone")
    assert [status(admin, name)["state"] for name in gone] == ["Closed", "Closed"]
    assert status(admin, unknown) == {}
    (note,) = {status(admin, name)["note"] for name in gone}
    assert re.fullmatch(r"verified at \S+Z: the resource does not exist", note)


@pytest.mark.parametrize("note", [(), ("--note", " ")])
def test_an_orphan_that_is_not_gone_is_closed_only_with_a_reason(note, keep, call, admin):
    names = [keep("unknown"), keep("there", state="Exists")]
    _, said = call("close", *names, "--even-if-exists", *note, status=1)
    assert said.count("is not verified to be gone; set --note with the reason") == 2
    assert "Closed" not in {status(admin, name).get("state") for name in names}


def test_nothing_to_close_is_a_wrong_call(call):
    assert "--all-gone" in call("close", status=2)[1]


def test_each_short_name_is_unique_and_finds_its_orphan(keep, admin):
    uids = ["0b9e6b1c-0000-4b0a-9a53-000000000001", "0b9e6b1c-1111-4b0a-9a53-000000000002"]
    for uid in uids:
        for id in ("1", "2"):
            keep(id, uid=uid)
    found = read_orphans(admin)
    short = short_names(found)
    assert len(set(short.values())) == 4
    for obj in found:
        assert find(found, short[obj.metadata.name]) == obj
        assert find(found, obj.metadata.name) == obj
    with pytest.raises(ActuatorError, match="is ambiguous, it matches"):
        find(found, "0b9e6b1c")


def test_one_that_changed_since_it_was_read_is_not_overwritten(keep, call, admin):
    name = keep("unknown")
    (as_read,) = read_orphans(admin)
    call("close", name, "--note", "x")
    with pytest.raises(ActuatorError, match="was modified concurrently"):
        write_status(admin, as_read, attrs.evolve(as_read.status, state="Exists"))
    assert status(admin, name)["state"] == "Closed"
    admin.delete(ORPHANS, name)
    with pytest.raises(ActuatorError, match="was deleted concurrently"):
        write_status(admin, as_read, attrs.evolve(as_read.status, state="Exists"))


@pytest.mark.parametrize(
    "line", [["list"], ["verify", "EXTENSION"], ["close", "x"], ["reopen", "x"]]
)
def test_without_the_crd_one_sentence_names_the_command_to_install_it(
    call, extension, admin, environment, line
):
    name = crd(Orphan)["metadata"]["name"]
    admin.delete(CRDS, name)
    try:
        eventually(lambda: is_gone(lambda: admin.get(CRDS, name)))
        eventually(lambda: is_gone(lambda: admin.list(ORPHANS)))
        given = [extension if word == "EXTENSION" else word for word in line]
        _, said = call(*given, status=3 if "verify" in given else 1)
        assert "`actuator crds generic:Orphan`" in said
    finally:
        install(environment, [*RECORD_KINDS])


def is_gone(look):
    try:
        look()
    except NotFound:
        return True
    except ApiError as error:  # the API server no longer serves it, and still lists it
        if error.status != 404:
            raise
    return False


def test_a_user_who_may_not_list_orphans_gets_an_error(keep, call, environment, namespace):
    stranger = environment.user_kubeconfig(f"{namespace}-stranger")
    for command in (["list"], ["close", "x"]):
        _, error = call(*command, kubeconfig=stranger, status=1)
        assert "forbidden" in error
        assert "orphans" in error


def test_a_user_who_may_only_read_orphans_gets_an_error_for_each(
    keep, call, environment, admin, namespace, extension
):
    there = keep("there")
    gone = keep("gone")
    user = f"{namespace}-reader"
    rule = {"apiGroups": [ORPHANS.group], "resources": [ORPHANS.plural], "verbs": ["list"]}
    role: Raw = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"}
    role |= {"metadata": {"name": user}, "rules": [rule]}
    admin.create(ROLES, role)
    admin.create(BINDINGS, role_binding(role, user))
    try:
        reader = environment.user_kubeconfig(user)
        eventually(lambda: is_allowed(admin, user, "list", ORPHANS.plural, ORPHANS.group))
        out, said = call("verify", extension, "-o", "json", kubeconfig=reader, status=1)
        problems = {orphan["name"]: orphan["problem"] for orphan in json.loads(out)["orphans"]}
        assert all("cannot patch" in problem for problem in problems.values())
        assert set(problems) == {there, gone}
        assert "Error: 2 of 2 still exist or could not be verified" in said
        _, said = call("close", there, gone, "--note", "x", kubeconfig=reader, status=1)
        assert said.count("cannot patch") == 2
        assert said.count("; grant this permission, or select another user") == 2
        assert "Error: 2 of 2 not closed" in said
    finally:
        admin.delete(BINDINGS, user)
        admin.delete(ROLES, user)


def test_as_a_program_it_ends_with_a_status_and_never_with_a_traceback(
    keep, environment, extension, tmp_path
):
    keep("there")
    done = subprocess.run(
        [*ACTUATOR, "orphans", "verify", extension, "--kubeconfig", str(environment.kubeconfig)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=tmp_path,
    )
    assert (done.returncode, done.stderr.splitlines()[-1]) == (
        1,
        "Error: 1 of 1 still exist or could not be verified",
    )
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "status"),
    [(["list"], 0), (["verify", "nowhere:x"], 3), (["close"], 2), (["close", "nowhere"], 1)],
)
def test_the_status_says_whether_it_was_done(command, environment, keep, arguments, status):
    keep("there")
    command("orphans", *arguments, "--kubeconfig", environment.kubeconfig, status=status)
