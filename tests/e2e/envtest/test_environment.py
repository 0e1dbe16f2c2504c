"""The embedded cluster is real, starts in seconds, and leaves nothing behind."""

import json
import os
import signal
import stat
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from actuator import Resource
from actuator.errors import ApiError, NotFound, Unavailable
from generic.kube.client import connect
from generic.library.programs import processes
from generic.testing.envtest import ClusterAccess, Environment, EnvtestError
from generic.testing.envtest.servers import CONTROLLER_MANAGER, KillableServer
from generic.testing.polling import eventually

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
COLLECTED = 180.0
"""Seconds; both collectors wait for kinds that other tests add and remove."""

START = """
from generic.testing.envtest import Environment
import os, sys, time
with Environment(print) as environment:
    print(environment.directory, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(scope="module")
def own() -> Iterator[Environment]:
    """An environment that a test may stop parts of."""
    with Environment() as started:
        yield started


def config_map(name: str, owner: object = None) -> dict[str, object]:
    """A small object."""
    metadata = {"name": name, "ownerReferences": [owner] if owner else []}
    return {"metadata": metadata, "data": {"a": "b"}}


def exists(access: ClusterAccess, path: str) -> bool:
    """Say whether there is an object at this path."""
    try:
        access.request("GET", path)
    except NotFound:
        return False
    return True


def status_of_list(kubeconfig: Path, namespace: str) -> int:
    """List the namespace's config maps as the kubeconfig's user; return the HTTP status.

    helm, a client in Go, reads such kubeconfigs in tests/e2e/helmreleaseproxy.
    """
    try:
        connect(kubeconfig).list(Resource("v1", "configmaps"), namespace)
    except ApiError as error:
        return error.status
    return 200


def test_it_starts_within_a_minute_and_leaves_nothing(
    processes_of: Callable[[Path], list[int]],
) -> None:
    environment = Environment()
    started = time.monotonic()
    environment.start()
    try:
        assert time.monotonic() - started < 60  # a few seconds where nothing else runs
        directory = environment.directory
        assert len(processes_of(directory)) == 4  # etcd, two of Kubernetes, the reaper
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    finally:
        environment.stop()
    assert not directory.exists()
    assert not processes_of(directory)
    environment.stop()
    with pytest.raises(EnvtestError, match="not running"):
        _ = environment.url


def test_two_at_once_know_nothing_of_each_other(
    own: Environment, environment: ClusterAccess
) -> None:
    assert own.url != environment.url
    own.request("POST", CONFIG_MAPS, config_map("only-here"))
    assert not exists(environment, f"{CONFIG_MAPS}/only-here")


@pytest.mark.parametrize("crash", [False, True], ids=["stopped", "killed"])
def test_objects_and_address_outlive_the_api_server(own: Environment, crash: bool) -> None:
    name = f"kept-{crash}".lower()
    url = own.url
    own.request("POST", CONFIG_MAPS, config_map(name))
    own.kill(KillableServer.APISERVER) if crash else own.stop_apiserver()
    with pytest.raises(Unavailable, match="refused"):
        own.request("GET", "/readyz")
    own.restart(KillableServer.APISERVER)
    assert own.url == url
    assert json.loads(own.request("GET", f"{CONFIG_MAPS}/{name}"))["data"] == {"a": "b"}


def test_the_api_server_stops_soon_although_a_watch_is_open(
    own: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "STOP_SECONDS", 60.0)  # it is not killed before it is done
    own.request("POST", CONFIG_MAPS, config_map("watched"))  # else the watch says nothing
    watch = ["curl", "-sN", "--cacert", str(own.ca_file), "-H", "@-"]
    with subprocess.Popen(
        [*watch, f"{own.url}{CONFIG_MAPS}?watch=1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as curl:
        assert curl.stdin is not None
        assert curl.stdout is not None
        curl.stdin.write(f"Authorization: Bearer {own.admin_token}".encode())
        curl.stdin.close()
        curl.stdout.readline()
        started = time.monotonic()
        own.stop_apiserver()
        assert time.monotonic() - started < 30
        curl.wait(60)
    own.restart(KillableServer.APISERVER)


def test_credentials_are_private_and_differ_from_run_to_run(
    own: Environment, environment: ClusterAccess
) -> None:
    secrets = [own.kubeconfig, own.ca_key_file, own.token_file]
    secrets += [own.user_kubeconfig("someone")]
    assert {stat.S_IMODE(path.stat().st_mode) for path in secrets} == {0o600}
    assert own.admin_token != environment.admin_token
    token = own.admin_token
    assert not [log for log in own.logs.iterdir() if token in log.read_text(errors="replace")]


def test_only_the_loopback_address_listens(own: Environment) -> None:
    port = int(own.url.rpartition(":")[2])
    assert own.url == f"https://127.0.0.1:{port}"
    tables = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
    rows = [line.split() for table in tables for line in table.read_text().splitlines()[1:]]
    listening = {row[1] for row in rows if row[3] == "0A" and row[1].endswith(f":{port:04X}")}
    assert listening == {f"0100007F:{port:04X}"}


def test_a_user_has_the_permissions_that_rbac_grants(
    environment: ClusterAccess,
    namespace: str,
    wait_until: Callable[[Callable[[], bool], float], None],
) -> None:
    kubeconfig = environment.user_kubeconfig(f"manager-of-{namespace}", ["managers"])
    assert status_of_list(kubeconfig, namespace) == 403
    rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}
    environment.request("POST", f"{rbac}/roles", {"metadata": {"name": "lister"}, "rules": [rule]})
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "lister"}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "managers"}
    binding = {"metadata": {"name": "managers"}, "roleRef": reference, "subjects": [subject]}
    environment.request("POST", f"{rbac}/rolebindings", binding)
    wait_until(lambda: status_of_list(kubeconfig, namespace) == 200, 60)  # roles are cached


@pytest.mark.parametrize("user", [{}, {"token": "wrong"}], ids=["none", "wrong"])
def test_without_credentials_there_is_no_answer(
    environment: ClusterAccess, user: dict[str, str]
) -> None:
    content = json.loads(environment.kubeconfig.read_text())
    content["users"][0]["user"] = user
    wrong = environment.user_kubeconfig("wrong")
    wrong.write_text(json.dumps(content))
    assert status_of_list(wrong, "default") == 401


def test_owned_objects_are_collected(
    environment: ClusterAccess,
    namespace: str,
    wait_until: Callable[[Callable[[], bool], float], None],
) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    owner = json.loads(environment.request("POST", path, config_map("owner")))
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner"}
    reference["uid"] = owner["metadata"]["uid"]
    environment.request("POST", path, config_map("owned", reference))
    environment.request("DELETE", f"{path}/owner")
    wait_until(lambda: not exists(environment, f"{path}/owned"), COLLECTED)


def test_objects_in_a_namespace_are_deleted_with_it(
    environment: ClusterAccess,
    namespace: str,
    wait_until: Callable[[Callable[[], bool], float], None],
) -> None:
    path = f"/api/v1/namespaces/{namespace}"
    environment.request("POST", f"{path}/configmaps", config_map("inside"))
    environment.request("DELETE", path)
    wait_until(lambda: not exists(environment, path), COLLECTED)


def test_a_killed_program_leaves_no_cluster_behind(
    python: list[str],
    processes_of: Callable[[Path], list[int]],
    wait_until: Callable[[Callable[[], bool], float], None],
) -> None:
    with subprocess.Popen(
        [*python, START], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdout is not None
        directory = Path(program.stdout.readline().strip())
        assert len(processes_of(directory)) == 4
        program.send_signal(signal.SIGKILL)
        wait_until(lambda: not processes_of(directory) and not directory.exists(), 60)


def test_an_ordinary_user_can_run_it(
    assets: Path, as_ordinary_user: list[str], python: list[str]
) -> None:
    environ = os.environ | {
        "HOME": "/nonexistent",
        "KUBEBUILDER_ASSETS": str(assets),
        "ACTUATOR_CACHE": "/nonexistent",
    }
    code = START.replace("sys.stdin.read()", "print(os.getuid(), os.stat(environment.logs).st_uid)")
    run = subprocess.run(
        [*as_ordinary_user, *python, code],
        capture_output=True,
        cwd="/",
        env=environ,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    directory, users = run.stdout.splitlines()
    user, owner = map(int, users.split())
    assert user == owner != 0
    assert not Path(directory).exists()


def test_more_flags_of_a_program_replace_one_value_and_extend_a_list() -> None:
    flags = {
        KillableServer.APISERVER: ["--service-cluster-ip-range=10.77.0.0/24"],
        CONTROLLER_MANAGER: ["--controllers=deployment-controller"],
    }
    with Environment(flags=flags) as environment:
        service = "/api/v1/namespaces/default/services/kubernetes"
        eventually(lambda: json.loads(environment.request("GET", service)))
        address = json.loads(environment.request("GET", service))["spec"]["clusterIP"]
        log = environment.logs / f"{CONTROLLER_MANAGER}.log"
        eventually(lambda: 'disabled" controller="replicaset-controller"' in log.read_text())
        text = log.read_text()
    for name in ("deployment-controller", "garbage-collector-controller"):
        assert f'disabled" controller="{name}"' not in text
    assert address == "10.77.0.1"
