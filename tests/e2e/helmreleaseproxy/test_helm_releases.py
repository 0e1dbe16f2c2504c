"""HelmReleaseProxy: installed, upgraded, uninstalled; gone with its Target, kept while unknown."""

from __future__ import annotations

import json
import socket
import subprocess
import threading
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from actuator import ExternalResource
from actuator.meta import Base64
from extensions.helmreleaseproxy import CHARTS
from extensions.helmreleaseproxy.helm import Helm, unreachable_because
from extensions.helmreleaseproxy.helmreleaseproxy import HelmReleases
from extensions.helmreleaseproxy.kinds import RELEASE_LABEL, HelmReleaseProxy
from extensions.helmreleaseproxy.targets import guard_of
from generic.kube.clock import SystemClock
from generic.testing.envtest.certificates import LocalAuthority
from hack.faults.permission import Revocation, Revoked
from tests.support.cluster.harness import eventually, is_allowed
from tests.support.samples.helm import RELEASES, SECRETS, TARGETS, with_cluster, with_user

FINALIZER = HelmReleaseProxy.KIND.finalizer


def run_helm(helm, far, *arguments):
    """Helm by hand, as the administrator of the far cluster."""
    command = [helm, *arguments, "--kubeconfig", far.kubeconfig]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)


@pytest.mark.parametrize("lost", ["port", "credentials", "secret", "program", "hidden program"])
def test_a_target_that_is_there_and_cannot_be_asked_keeps_the_release(
    near, way, serve, namespace, far, lost, tmp_path
):
    manager = serve()
    near.target()
    near.release()
    eventually(lambda: near.is_ready(RELEASES, "alone"))
    assert near.condition(RELEASES, "alone", "TargetReachable")[:2] == ("True", "Answers")
    manager.stop()  # and with it what it remembers of the Secret
    revoked = with_user(far.kubeconfig.read_bytes(), token="x")
    good, ran = way.proxy.kubeconfig.read_bytes(), tmp_path / "ran"
    exec_ = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "touch",
        "args": [str(ran)],
        "interactiveMode": "Never",
    }
    # PyYAML reads a key b"user", which it takes for no user; helm reads the user itself.
    user = f'"name": "fault-proxy", !!binary dXNlcg==: {{"exec": {json.dumps(exec_)}}}, "user"'
    hidden = json.dumps(json.loads(good)).replace('"name": "fault-proxy", "user"', user).encode()
    breaks = {
        "port": (way.proxy.go_down, "NoAnswer"),
        "credentials": (
            lambda: near.kubeconfig("t", revoked),
            "Unauthenticated",
        ),
        "secret": (lambda: near.delete(SECRETS, "t-kubeconfig"), "NoKubeconfig"),
        "program": (lambda: near.kubeconfig("t", with_user(good, exec=exec_)), "NoKubeconfig"),
        "hidden program": (lambda: near.kubeconfig("t", hidden), "NoKubeconfig"),
    }
    lose, reason = breaks[lost]
    lose()
    near.delete(RELEASES, "alone")
    serve()
    eventually(lambda: near.says(RELEASES, "alone", "Target", "is there"))
    said = near.condition(RELEASES, "alone", "TargetReachable")[:2]
    assert said == ("Unknown", reason)
    assert FINALIZER in near.finalizers(RELEASES, "alone")
    assert not ran.exists()
    way.proxy.come_back()
    near.kubeconfig("t", good)
    eventually(lambda: near.is_gone(RELEASES, "alone"), seconds=120)
    assert way.revisions(namespace, "alone") == []


def test_a_target_that_is_gone_leaves_nothing_to_clean(near, way, serve, namespace):
    serve()
    near.target()
    near.release()
    eventually(lambda: near.is_ready(RELEASES, "alone"))
    way.proxy.go_down()
    near.remove_cluster()
    near.delete(RELEASES, "alone")
    eventually(lambda: near.is_gone(RELEASES, "alone"))
    assert len(near.events("TargetGone")) == 1
    assert way.revisions(namespace, "alone") == ["deployed"], "nobody asked that cluster"
    assert near.orphans() == []


@pytest.mark.parametrize("forced", [False, True], ids=["", "forced"])
def test_a_release_that_was_created_by_hand_keeps_its_target_until_it_is_uninstalled(
    near, way, serve, namespace, forced
):
    serve()
    near.target()
    uid = near.release()["metadata"]["uid"]
    eventually(lambda: near.is_ready(RELEASES, "alone"))
    assert near.finalizers(TARGETS, "t") == [guard_of(uid)]
    assert FINALIZER in near.finalizers(RELEASES, "alone")
    way.proxy.go_down()
    near.delete(TARGETS, "t")
    eventually(lambda: near.says(RELEASES, "alone", "NoAnswer"))
    assert near.finalizers(TARGETS, "t") == [guard_of(uid)]
    if forced:
        near.force(TARGETS, "t")
    else:
        way.proxy.come_back()
    eventually(lambda: near.is_gone(TARGETS, "t"), seconds=120)
    eventually(lambda: near.is_gone(RELEASES, "alone"))
    left = [("Helm::Release", f"{namespace}/alone@{namespace}/t")]
    assert near.orphans() == (left if forced else [])
    assert way.revisions(namespace, "alone") == (["deployed"] if forced else [])


def test_the_releases_of_a_target_remove_their_guards_at_the_same_time(near, serve, admin):
    serve()
    near.target()
    names = [f"r{number}" for number in range(4)]
    for name in names:
        near.release(name)
    for name in names:
        eventually(lambda name=name: near.is_ready(RELEASES, name))
    assert len(near.finalizers(TARGETS, "t")) == len(names)
    near.delete(TARGETS, "t")
    eventually(lambda: near.is_gone(TARGETS, "t"), seconds=120)
    for name in names:
        eventually(lambda name=name: near.is_gone(RELEASES, name))


def test_a_target_of_the_same_name_is_another_one(near, way, serve, namespace):
    serve()
    near.target()
    near.release()
    eventually(lambda: near.is_ready(RELEASES, "alone"))
    near.remove_cluster()
    near.target(secret=False)
    near.delete(RELEASES, "alone")
    eventually(lambda: near.is_gone(RELEASES, "alone"))
    assert way.revisions(namespace, "alone") == ["deployed"]


def test_a_target_that_may_not_be_read_does_not_count_as_deleted(near, serve, admin):
    manager = serve()
    near.target()
    near.release()
    eventually(lambda: near.is_ready(RELEASES, "alone"))
    role = f"{near.namespace}-{id(manager):x}"
    revocation = Revocation(admin, role, Revoked(resource="targets", verbs=["get"]))
    revocation.take()
    look = ("get", TARGETS.plural, TARGETS.group)
    eventually(lambda: not is_allowed(admin, role, *look, namespace=near.namespace))
    near.delete(RELEASES, "alone")
    eventually(lambda: near.says(RELEASES, "alone", "forbidden") or near.is_gone(RELEASES, "alone"))
    assert FINALIZER in near.finalizers(RELEASES, "alone")
    revocation.give_back()
    eventually(lambda: near.is_gone(RELEASES, "alone"), seconds=120)


def test_a_release_that_was_never_installed_goes_without_a_target(near, serve):
    serve()
    near.release(target="nowhere")
    eventually(lambda: near.says(RELEASES, "alone", "TargetNotFound", "there is none; create it"))
    near.delete(RELEASES, "alone")
    eventually(lambda: near.is_gone(RELEASES, "alone"))


def test_a_release_of_another_owner_is_neither_adopted_nor_removed(
    near, way, serve, namespace, helm, far
):
    where = ("--namespace", namespace, "--create-namespace")
    run_helm(helm, far, "install", "alone", CHARTS / "note", *where)
    serve()
    near.target()
    near.release()
    eventually(lambda: near.says(RELEASES, "alone", "another owner"))
    assert way.revisions(namespace, "alone") == ["deployed"]
    near.delete(RELEASES, "alone")
    eventually(lambda: near.is_gone(RELEASES, "alone"))
    assert way.revisions(namespace, "alone") == ["deployed"]


def test_a_release_is_installed_after_its_dependencies_and_removed_before_them(
    near, way, serve, namespace
):
    serve()
    near.target()
    near.release("top", dependsOn=["base"])
    eventually(lambda: "HelmReleaseProxy base" in near.condition(RELEASES, "top")[2])
    assert way.text(namespace, "top") is None
    near.release("base")
    eventually(lambda: near.is_ready(RELEASES, "top"))
    near.delete(RELEASES, "base")
    eventually(lambda: "top: the dependent release" in near.condition(RELEASES, "base")[2])
    assert way.text(namespace, "base") is not None
    near.delete(RELEASES, "top")
    eventually(lambda: near.is_gone(RELEASES, "base") and near.is_gone(RELEASES, "top"))
    assert way.revisions(namespace, "base") == way.revisions(namespace, "top") == []


class At(SystemClock):
    """It is always then, however long a machine takes."""

    def __init__(self, moment):
        self.moment = moment

    def now(self):
        return self.moment


@pytest.mark.usefixtures("short_window")
@pytest.mark.parametrize("verb", ["install", "upgrade"])
def test_a_release_left_pending_by_a_killed_helm_is_finished_once_no_helm_can_run(
    verb, near, way, serve, namespace, helm, far, tmp_path
):
    near.target()
    uid = near.release()["metadata"]["uid"]
    slow = tmp_path / "slow"
    (slow / "templates").mkdir(parents=True)
    (slow / "Chart.yaml").write_text("apiVersion: v2\nname: slow\nversion: 0.1.0\n")
    service = "apiVersion: v1\nkind: Service\nmetadata: {name: never}\n"
    ports = "spec: {type: LoadBalancer, ports: [{port: 80}]}\n"  # nobody here gives it an address
    (slow / "templates" / "service.yaml").write_text(service + ports)
    options = ["--namespace", namespace, "--labels", f"{RELEASE_LABEL}={uid}"]
    if verb == "upgrade":
        run_helm(helm, far, "install", "alone", CHARTS / "note", *options, "--create-namespace")
    command = [helm, verb, "alone", slow, *options, "--wait", "--kubeconfig", far.kubeconfig]
    command += ["--create-namespace"] if verb == "install" else []
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        eventually(lambda: way.revisions(namespace, "alone")[-1] == f"pending-{verb}")
        process.kill()
    died = SystemClock().now()
    early = serve(clock=At(died))
    eventually(lambda: "another helm" in near.condition(RELEASES, "alone")[2])
    early.stop()
    serve(clock=At(died + timedelta(minutes=2)))
    eventually(lambda: near.is_ready(RELEASES, "alone"))
    assert way.revisions(namespace, "alone")[-1] == "deployed"
    assert way.text(namespace, "alone") == "Hello"


def test_helm_receives_secrets_through_a_pipe_and_a_private_file_that_is_removed(
    near, way, serve, namespace, helm, tmp_path
):
    noted, wrapper = tmp_path / "noted", tmp_path / "helm"
    wrapper.write_text(
        f"#!/bin/sh\n"
        f'echo "$(/usr/bin/stat -c %a "$KUBECONFIG") $KUBECONFIG $*" >> {noted}\n'
        f'exec {helm} "$@"\n'
    )
    wrapper.chmod(0o755)
    serve(program=Helm(wrapper))
    near.target()
    near.release(values={"text": "s3cr3t"})
    eventually(lambda: near.is_ready(RELEASES, "alone"))
    near.delete(RELEASES, "alone")
    eventually(lambda: near.is_gone(RELEASES, "alone"))
    runs = [line.split(maxsplit=2) for line in noted.read_text().splitlines()]
    assert [run[2].split()[0] for run in runs] == ["list", "install", "list", "uninstall"]
    assert {mode for mode, _, _ in runs} == {"600"}
    assert "s3cr3t" not in noted.read_text()
    assert not any(tmp_path.joinpath(path).exists() for _, path, _ in runs)


@pytest.mark.parametrize("gone", [False, True], ids=["there", "gone"])
def test_a_forced_deletion_asks_no_target_and_records_the_remaining_release(
    near, way, serve, namespace, helm, tmp_path, gone
):
    noted, wrapper = tmp_path / "noted", tmp_path / "helm"
    wrapper.write_text(f'#!/bin/sh\necho "$1" >> {noted}\nexec {helm} "$@"\n')
    wrapper.chmod(0o755)
    serve(program=Helm(wrapper))
    near.target()
    near.release()
    eventually(lambda: near.is_ready(RELEASES, "alone"))
    before = noted.read_text()
    if gone:
        near.remove_cluster()  # before the annotation, which would have the guard put back
    near.force(RELEASES, "alone")
    near.delete(RELEASES, "alone")
    eventually(lambda: near.is_gone(RELEASES, "alone"))
    left = [("Helm::Release", f"{namespace}/alone@{namespace}/t")]
    assert near.orphans() == ([] if gone else left)
    assert gone or near.finalizers(TARGETS, "t") == []
    assert set(noted.read_text().removeprefix(before).split()) <= {"list"}


def test_remaining_releases_are_derived_from_the_object_alone(helm):
    actuator = HelmReleases(Helm(helm), CHARTS)
    release = HelmReleaseProxy()
    assert list(actuator.external_resources(release)) == []
    release.status.target_uid = "1"
    [left] = actuator.external_resources(release)
    assert isinstance(left, ExternalResource)


@pytest.mark.parametrize(
    ("errors", "reason"),
    [
        ("Error: Kubernetes cluster unreachable: dial tcp: lookup x: no such host", "NoAnswer"),
        ("Error: Kubernetes cluster unreachable: x509: unknown authority", "NoAnswer"),
        ("Error: Kubernetes cluster unreachable: something new", "NoAnswer"),
        ("Error: query: secrets is forbidden: User x cannot list", "Forbidden"),
        ("Error: YAML parse error on note/templates/configmap.yaml", None),
    ],
)
def test_no_answer_of_a_target_means_that_it_is_gone(errors, reason):
    found = unreachable_because(errors)
    assert (found and found.reason) == reason


def closed_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


@pytest.fixture
def speaks_http():
    """A port where a server answers HTTP in clear text."""
    with HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def test_a_tenant_sees_no_difference_between_servers_that_do_not_authenticate_themselves(
    near, serve, far, speaks_http, caplog
):
    """Closed port, unknown host, no TLS, and a certificate of another authority."""
    caplog.set_level("DEBUG")
    good = far.kubeconfig.read_bytes()
    ca = Base64.encode_bytes(LocalAuthority.new("another").key_pair.certificate)
    kubeconfigs = {
        "closed": with_cluster(good, server=f"https://127.0.0.1:{closed_port()}"),
        "nowhere": with_cluster(good, server="https://nowhere.invalid:443"),
        "http": with_cluster(good, server=f"https://127.0.0.1:{speaks_http}"),
        "untrusted": with_cluster(good, **{"certificate-authority-data": ca}),
    }
    serve()
    told = set()
    for name, kubeconfig in kubeconfigs.items():
        near.target(name)
        near.kubeconfig(name, kubeconfig)
        near.release(f"on-{name}", name)
    for name in kubeconfigs:

        def settled(release=f"on-{name}"):
            condition = near.condition(RELEASES, release, "TargetReachable")
            assert condition[1] not in ("", "Answers"), condition
            ready = near.condition(RELEASES, release)
            assert "Target" in ready[2], ready
            return [item.replace(release, "x") for item in (*condition, *ready)]

        told.add("|".join(eventually(settled, 120)).replace(f"/{name}", "/x"))
    assert len(told) == 1, told
    assert "NoAnswer" in told.pop()
    events = str(near.events("NoAnswer")) + str(near.events("TargetUnreachable"))
    assert "refused" not in events
    assert "no such host" not in events
    assert "helm cannot use the target" in caplog.text


def test_a_helm_that_prints_without_end_is_ended(near, serve, tmp_path):
    wrapper = tmp_path / "helm"
    wrapper.write_text("#!/bin/sh\nhead -c 40000000 /dev/zero\nexec sleep 55\n")
    wrapper.chmod(0o755)
    serve(program=Helm(wrapper))
    near.target()
    near.release()
    eventually(lambda: near.says(RELEASES, "alone", "NoAnswer"), seconds=20)
