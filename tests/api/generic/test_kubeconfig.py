"""Configurations and credentials: their places, their errors, their renewal."""

import base64
import json
import logging
import os
import ssl
import stat
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from actuator import Resource
from actuator.errors import ConfigurationError, Unauthorized, Unavailable
from generic.kube.access import find_access
from generic.kube.client import connect
from generic.kube.kubeconfig import read_kubeconfig
from generic.manager.manager import Manager
from generic.manager.options import Options
from generic.testing.envtest.certificates import LocalAuthority
from generic.testing.landscape.router import Router
from hack.faults import FaultProxy
from tests.support.cluster.fault_proxy import kubeconfig
from tests.support.cluster.harness import eventually
from tests.support.objects.builders import infrastructure

NAMESPACES = Resource("v1", "namespaces", namespaced=False)


@pytest.fixture(autouse=True)
def nothing_around(monkeypatch, tmp_path):
    """No kubeconfig, no pod, and a home of our own."""
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture
def pod(environment, monkeypatch, tmp_path):
    """The files and variables of a pod; returns its token's file."""
    address = urlsplit(environment.url)
    (tmp_path / "pod").mkdir()
    token = tmp_path / "pod" / "token"
    token.write_text(environment.admin_token)
    (tmp_path / "pod" / "ca.crt").symlink_to(environment.ca_file)
    monkeypatch.setattr("generic.kube.access._SERVICE_ACCOUNT", tmp_path / "pod")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", address.hostname)
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(address.port))
    return token


class Plugin:
    """An exec plugin: prints the text in its folder, and counts its runs."""

    def __init__(self, folder: Path) -> None:
        self.runs_file = folder / "runs"
        self.says = folder / "says"
        self.script = folder / "plugin"
        self.script.write_text(
            f"#!{sys.executable} -IS\n"
            "import pathlib, sys\n"
            f"folder = pathlib.Path({str(folder)!r})\n"
            "open(folder / 'runs', 'a').write('.')\n"
            "said = (folder / 'says').read_text()\n"
            "sys.exit(said[1:]) if said.startswith('!') else print(said)\n"
        )
        self.script.chmod(stat.S_IRWXU)

    def prints(self, token: str, **more: str) -> None:
        api = "client.authentication.k8s.io/v1"
        said = {"apiVersion": api, "kind": "ExecCredential", "status": {"token": token, **more}}
        self.says.write_text(json.dumps(said))

    def fails(self, why: str) -> None:
        self.says.write_text(f"!{why}")

    @property
    def runs(self) -> int:
        return len(self.runs_file.read_text())

    @property
    def user(self) -> dict[str, object]:
        api = "client.authentication.k8s.io/v1"
        return {"apiVersion": api, "command": str(self.script), "interactiveMode": "Never"}


@pytest.fixture
def plugin(tmp_path):
    (tmp_path / "plugin").mkdir()
    return Plugin(tmp_path / "plugin")


@pytest.fixture
def plugged(plugin, environment, tmp_path):
    """A kubeconfig that asks the plugin."""
    return kubeconfig(tmp_path / "k", environment.url, environment.ca_file, exec=plugin.user)


def works(client) -> bool:
    return client.get(NAMESPACES, "default")["metadata"]["name"] == "default"


def test_the_given_file_comes_before_the_variable_before_the_pod_before_the_home(
    environment, pod, monkeypatch, tmp_path
):
    def write(name, host):
        return kubeconfig(tmp_path / name, f"https://{host}", environment.ca_file)

    (tmp_path / ".kube").mkdir()
    write(".kube/config", "home.example")
    given = write("given", "given.example")
    monkeypatch.setenv("KUBECONFIG", str(write("variable", "variable.example")))
    assert connect(given).host == "given.example"
    assert connect().host == "variable.example"
    monkeypatch.delenv("KUBECONFIG")
    assert works(connect())
    assert connect(context="x").host == "home.example"  # a context is one of a kubeconfig
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST")
    assert connect().host == "home.example"


def test_the_variable_may_name_several_files(environment, monkeypatch, tmp_path):
    one = kubeconfig(tmp_path / "one", environment.url, environment.ca_file, token="t")
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join([str(tmp_path / "missing"), "", str(one)]))
    assert connect().host == urlsplit(environment.url).netloc


def test_a_context_chooses_the_cluster(environment, tmp_path):
    path = kubeconfig(tmp_path / "k", "https://first.example", environment.ca_file)
    config = json.loads(path.read_text())
    config["clusters"].append({"name": "d", "cluster": {"server": "https://second.example"}})
    config["contexts"].append({"name": "y", "context": {"cluster": "d"}})
    path.write_text(json.dumps(config))
    assert connect(path).host == "first.example"
    assert connect(path, "y").host == "second.example"
    with pytest.raises(
        ConfigurationError, match=r"context 'z' not found; set --context to one of: x, y$"
    ):
        connect(path, "z")


def broken():
    """Kubeconfigs that cannot be used, and the words of the message."""
    good = {
        "clusters": [{"name": "c", "cluster": {"server": "https://a.example"}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }

    def cluster(**more):
        entry = {"server": "https://a.example", **more}
        return {**good, "clusters": [{"name": "c", "cluster": entry}]}

    def user(**entry):
        return {**good, "users": [{"name": "u", "user": entry}]}

    rubbish = base64.b64encode(b"rubbish").decode()
    api = "client.authentication.k8s.io/v1"
    yield "empty", "", "empty"
    yield "not-yaml", "a: [", "cannot load"
    yield "a-list", "[1, 2]", "not a valid kubeconfig"
    yield "a-word", "kubeconfig", "not a valid kubeconfig"
    yield "binary", "\x00\x01", "cannot load"
    yield "no-context", {**good, "current-context": ""}, "current-context"
    yield "context-unknown", {**good, "current-context": "gone"}, "gone"
    yield "no-cluster", {**good, "clusters": []}, "clusters"
    yield "no-server", cluster(server=""), "server"
    yield "server-no-url", cluster(server="not a url"), "server"
    yield "insecure", cluster(**{"insecure-skip-tls-verify": True}), "certificate-authority"
    yield "ca-missing", cluster(**{"certificate-authority": "/missing.crt"}), "missing.crt"
    yield "ca-no-base64", cluster(**{"certificate-authority-data": "%"}), "-data; set PEM"
    yield "ca-rubbish", cluster(**{"certificate-authority-data": rubbish}), "certificate-authority"
    yield (
        "certificate-rubbish",
        user(**{"client-certificate-data": rubbish, "client-key-data": rubbish}),
        "client-certificate",
    )
    yield "token-file-missing", user(tokenFile="/missing.token"), "missing.token"
    yield "exec-missing", user(exec={"apiVersion": api, "command": "/no/plugin"}), "/no/plugin"
    yield "exec-no-command", user(exec={"apiVersion": api}), "command"
    yield "exec-fails", user(exec={"apiVersion": api, "command": "false"}), "returned 1"
    yield "exec-says-nothing", user(exec={"apiVersion": api, "command": "true"}), "decode"


@pytest.mark.parametrize(("name", "content", "clue"), [pytest.param(*b, id=b[0]) for b in broken()])
def test_a_broken_kubeconfig_is_one_clear_sentence(name, content, clue, tmp_path, caplog, capfd):
    path = tmp_path / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(ConfigurationError) as caught:
        connect(path)
    message = caught.value.message
    assert str(path) in message
    assert clue in message
    assert "\n" not in message
    assert len(message.replace(str(tmp_path), "")) < 200
    assert capfd.readouterr() == ("", "")
    assert caplog.text == ""


def test_a_missing_kubeconfig_names_the_ways_out(tmp_path, monkeypatch):
    with pytest.raises(ConfigurationError, match=r"/nowhere does not exist; set --kubeconfig"):
        connect(Path("/nowhere"))
    with pytest.raises(ConfigurationError, match=rf"{tmp_path}/.kube/config does not exist"):
        connect()
    with pytest.raises(ConfigurationError, match="does not exist"):
        connect(tmp_path)  # a folder


def test_a_pod_without_its_files_is_one_clear_sentence(pod):
    pod.unlink()
    with pytest.raises(ConfigurationError, match=r"service account.*No such file.*token"):
        connect()


def test_a_rotated_pod_token_is_read_again_once_the_old_one_is_refused(pod, environment):
    pod.write_text("expired")
    client = connect()
    with pytest.raises(Unauthorized):
        client.get(NAMESPACES, "default")
    pod.write_text(environment.admin_token)
    assert works(client)


def test_a_rotated_token_file_is_read_again_once_the_old_one_is_refused(environment, tmp_path):
    token = tmp_path / "token"
    token.write_text("expired")
    path = kubeconfig(tmp_path / "k", environment.url, environment.ca_file, tokenFile=str(token))
    client = connect(path)
    with pytest.raises(Unauthorized):
        client.get(NAMESPACES, "default")
    token.write_text(environment.admin_token)
    assert works(client)


def test_a_rotated_client_certificate_is_read_again_once_the_old_one_is_refused(
    environment, tmp_path
):
    path = kubeconfig(tmp_path / "k", environment.url, environment.ca_file, token="expired")
    client = connect(path)
    with pytest.raises(Unauthorized):
        client.get(NAMESPACES, "default")
    path.write_text(environment.user_kubeconfig("someone", ["system:masters"]).read_text())
    assert works(client)


def test_inline_credentials_of_a_kubeconfig_are_in_no_file_while_used(
    environment, monkeypatch, tmp_path
):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    path = environment.user_kubeconfig("someone", ["system:masters"])
    assert "client-key-data" in path.read_text()
    client = connect(path)
    assert works(client)
    assert list(tmp_path.iterdir()) == []


def test_a_plugins_token_is_used_and_the_plugin_run_once(plugin, plugged, environment):
    plugin.prints(environment.admin_token)
    client = connect(plugged)
    assert all(works(client) for _ in range(5))
    assert plugin.runs == 1


def test_a_refused_token_makes_the_plugin_run_again_for_the_next_request(
    plugin, plugged, environment
):
    plugin.prints("expired")
    client = connect(plugged)
    plugin.prints(environment.admin_token)
    with pytest.raises(Unauthorized):
        client.get(NAMESPACES, "default")
    assert works(client)
    assert plugin.runs == 2


def test_a_storm_of_refusals_runs_the_plugin_only_once_more(plugin, plugged):
    plugin.prints("expired")
    client = connect(plugged)

    def ask(_number):
        with pytest.raises(Unauthorized):
            client.get(NAMESPACES, "default")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(ask, range(40)))
    assert plugin.runs == 2


def test_a_token_of_short_life_does_not_cost_a_run_for_each_request(plugin, plugged, environment):
    plugin.prints(environment.admin_token, expirationTimestamp="2020-01-01T00:00:00Z")
    client = connect(plugged)
    assert all(works(client) for _ in range(10))
    assert plugin.runs == 2  # at connect, and because it is over already


def test_a_plugin_that_fails_later_is_reported_and_run_again(
    plugin, plugged, environment, monkeypatch
):
    monkeypatch.setattr("generic.kube.access._FRESH", 0.0)
    plugin.prints("expired")
    client = connect(plugged)
    plugin.fails("the identity provider is down")
    with pytest.raises(Unauthorized):
        client.get(NAMESPACES, "default")
    with pytest.raises(Unauthorized, match="the identity provider is down"):
        client.get(NAMESPACES, "default")
    plugin.prints(environment.admin_token)
    assert works(client)


def test_a_renewal_that_fails_early_leaves_the_old_token_in_use(
    plugin, plugged, environment, caplog
):
    plugin.prints(environment.admin_token, expirationTimestamp="2020-01-01T00:00:00Z")
    client = connect(plugged)
    plugin.fails("the identity provider is down")
    assert works(client)
    assert [record.message for record in caplog.records] == [
        "credential refresh failed, using the previous one"
    ]


@pytest.mark.parametrize("is_grandchild", [False, True])
def test_a_plugin_that_hangs_is_ended_with_its_children_and_named(
    is_grandchild, environment, monkeypatch, tmp_path
):
    monkeypatch.setattr("generic.kube.execplugin.PLUGIN_SECONDS", 0.5)
    program, alive = tmp_path / "hanging-login", tmp_path / "alive"
    os.mkfifo(alive)
    hangs = f"sleep 1000 9> {alive}" + ("; echo never" if is_grandchild else "")
    program.write_text(f"#!/bin/sh\n{hangs if is_grandchild else f'exec {hangs}'}\n")
    program.chmod(stat.S_IRWXU)
    user = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": str(program),
        "args": ["s3cret-arg"],
        "env": [{"name": "X", "value": "s3cret-value"}],
    }
    path = kubeconfig(tmp_path / "k", environment.url, environment.ca_file, exec=user)
    with os.fdopen(os.open(alive, os.O_RDONLY | os.O_NONBLOCK), "rb", buffering=0) as pipe:
        with pytest.raises(ConfigurationError) as caught:
            connect(path)
        eventually(lambda: pipe.read() == b"", 10)  # None while a process could write
    message = f"context x: no credentials: exec: {program} did not return within 0 s"
    assert message in caught.value.message
    assert "s3cret" not in str(caught.value) + repr(caught.value.__cause__)


def test_a_plugin_gets_the_cluster_it_asks_for(plugin, environment, tmp_path):
    plugin.prints(environment.admin_token)
    spec = tmp_path / "spec"
    plugin.script.write_text(
        f'#!/bin/sh\nprintf %s "$KUBERNETES_EXEC_INFO" > {spec}; cat {plugin.says}\n'
    )
    user = plugin.user | {"provideClusterInfo": True}
    assert works(
        connect(kubeconfig(tmp_path / "k", environment.url, environment.ca_file, exec=user))
    )
    info = json.loads(spec.read_text())["spec"]
    assert (info["interactive"], info["cluster"]["server"]) == (False, environment.url)
    ca = base64.b64decode(info["cluster"]["certificate-authority-data"])
    assert ca == environment.ca_file.read_bytes()


def test_no_token_is_ever_in_a_log_or_an_error(plugin, plugged, caplog):
    caplog.set_level(logging.DEBUG)
    plugin.prints("a-secret-token")
    client = connect(plugged)
    with pytest.raises(Unauthorized) as caught:
        client.get(NAMESPACES, "default")
    texts = [caplog.text, repr(caught.value), str(vars(caught.value)), str(vars(client))]
    assert "a-secret-token" not in " ".join(texts)
    assert logging.getLogger().filters == []


class RotatingServer:
    """The API server behind a TLS server that asks for no client certificate; its CA can change."""

    def __init__(self, proxy, folder, token):
        self.proxy = proxy
        self.url = proxy.url
        self.folder = folder
        self.token = token
        self.ca_file = folder / "ca.crt"
        proxy._context.verify_mode = ssl.CERT_NONE
        self.publish(self.rotate())

    def rotate(self) -> bytes:
        """Serve with a certificate of a new CA, which is returned; open connections end."""
        authority = LocalAuthority.new("rotated")
        self.serve(authority)
        return authority.key_pair.certificate

    def serve(self, authority: LocalAuthority) -> None:
        certificate = self.folder / "tls.crt"
        key = self.folder / "tls.key"
        key.unlink(missing_ok=True)
        authority.serving(["127.0.0.1"]).save(certificate, key)
        self.proxy._context.load_cert_chain(certificate, key)
        self.proxy.go_down()
        self.proxy.come_back()

    def publish(self, ca: bytes) -> None:
        """Replace the CA file in one step, as kubelet does."""
        fresh = self.folder / "fresh.crt"
        fresh.write_bytes(ca)
        fresh.replace(self.ca_file)


@pytest.fixture
def rotating(environment, tmp_path, monkeypatch):
    monkeypatch.setattr("generic.kube.access._FRESH", 0.2)
    (tmp_path / "server").mkdir()
    with FaultProxy(environment.kubeconfig, tmp_path) as proxy:
        yield RotatingServer(proxy, tmp_path / "server", environment.admin_token)


def works_again(client, seconds=30.0) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            return works(client)
        except Unavailable:
            time.sleep(0.05)
    return False


def as_a_file(rotating, pod, folder, monkeypatch):
    return connect(kubeconfig(folder / "k", rotating.url, rotating.ca_file, token=rotating.token))


def as_data(rotating, pod, folder, monkeypatch):
    """The CA is in the kubeconfig itself, which is written anew with it."""
    path = folder / "k"
    publish = rotating.publish

    def write(ca):
        kubeconfig(path, rotating.url, token=rotating.token)
        config = json.loads(path.read_text())
        data = base64.b64encode(ca).decode()
        config["clusters"][0]["cluster"]["certificate-authority-data"] = data
        path.write_text(json.dumps(config))
        publish(ca)

    write(rotating.ca_file.read_bytes())
    monkeypatch.setattr(rotating, "publish", write)
    return connect(path)


def as_the_pods(rotating, pod, folder, monkeypatch):
    ca = pod.with_name("ca.crt")
    ca.unlink()
    ca.symlink_to(rotating.ca_file)
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(urlsplit(rotating.url).port))
    return connect()


@pytest.mark.parametrize("way", [as_a_file, as_data, as_the_pods])
def test_a_rotated_ca_is_used_soon_after_it_is_on_disk(rotating, pod, tmp_path, monkeypatch, way):
    client = way(rotating, pod, tmp_path, monkeypatch)
    assert works(client)
    ca = rotating.rotate()
    for _ in range(3):
        with pytest.raises(Unavailable, match="CERTIFICATE_VERIFY_FAILED"):
            client.get(NAMESPACES, "default")
    rotating.publish(ca)
    assert works_again(client)


def test_a_manager_serves_again_after_the_ca_was_rotated(rotating, seed, script, tmp_path):
    seed.create(infrastructure(seed.namespace, seed.namespace, "before"))
    path = kubeconfig(tmp_path / "k", rotating.url, rotating.ca_file, token=rotating.token)
    options = Options(
        kubeconfig=path,
        metrics_bind_address="0",
        health_bind_address="0",
        leader_election_namespace=seed.namespace,
        shutdown_timeout=5.0,
    )
    manager = Manager(options)
    manager.add(script, type=seed.namespace)
    manager.start()
    try:
        eventually(lambda: seed.is_ready("before"))
        ca = rotating.rotate()
        seed.create(infrastructure(seed.namespace, seed.namespace, "after"))
        time.sleep(2.0)
        assert not seed.is_ready("after")
        rotating.publish(ca)
        eventually(lambda: seed.is_ready("after"))
    finally:
        manager.stop()


def test_a_new_ca_on_disk_is_used_before_the_server_changes(rotating, tmp_path, monkeypatch):
    """The bundle with both CAs comes first: no request fails during the rotation."""
    client = as_a_file(rotating, None, tmp_path, monkeypatch)
    assert works(client)
    before = rotating.ca_file.read_bytes()
    authority = LocalAuthority.new("next")
    rotating.publish(before + authority.key_pair.certificate)
    time.sleep(0.3)
    assert works(client)
    rotating.serve(authority)
    assert works(client)


def test_a_tls_failure_has_the_configuration_read_again_though_no_file_changed(
    rotating, tmp_path, monkeypatch
):
    """For instance where the file changed between its reading and the look at its age."""
    client = as_a_file(rotating, None, tmp_path, monkeypatch)
    monkeypatch.setattr("generic.kube.access._versions", lambda _files: [])
    client._access._versions = []
    rotating.publish(rotating.rotate())
    assert works_again(client)


def test_a_storm_of_tls_failures_reads_the_configuration_once(rotating, tmp_path, monkeypatch):
    client = as_a_file(rotating, None, tmp_path, monkeypatch)
    loads = []
    monkeypatch.setattr("generic.kube.access._FRESH", 60.0)
    load = client._access._load

    def counted():
        loads.append(1)
        return load()

    monkeypatch.setattr(client._access, "_load", counted)
    rotating.rotate()

    def ask(_number):
        with pytest.raises(Unavailable):
            client.get(NAMESPACES, "default")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(ask, range(40)))
    assert len(loads) == 1


def test_a_kubeconfig_that_became_unusable_is_logged_once_and_the_old_one_stays(
    environment, tmp_path, monkeypatch, caplog
):
    monkeypatch.setattr("generic.kube.access._FRESH", 0.0)
    token = environment.admin_token
    path = kubeconfig(tmp_path / "k", environment.url, environment.ca_file, token=token)
    client = connect(path)
    content = path.read_text()
    path.write_text("a: [")
    assert all(works(client) for _ in range(5))
    assert [record.message for record in caplog.records] == [
        "kubeconfig reload failed, using the previous one"
    ]
    path.write_text(content)
    assert works(client)
    path.unlink()
    assert works(client)
    assert len(caplog.records) == 2


def test_a_kubeconfig_that_names_another_server_later_does_not_move_the_client(
    environment, tmp_path, monkeypatch, caplog
):
    monkeypatch.setattr("generic.kube.access._FRESH", 0.0)
    token = environment.admin_token
    path = kubeconfig(tmp_path / "k", environment.url, environment.ca_file, token=token)
    client = connect(path)
    kubeconfig(path, "https://another.example", environment.ca_file, token=token)
    assert works(client)
    assert "restart" in caplog.records[0].fields["error"]


PROXY = "http://proxy.example:3128"


@pytest.mark.parametrize(
    ("server", "variables", "proxied"),
    [
        ("https://a.example:6443", {"https_proxy": PROXY}, True),
        ("https://a.example:6443", {"all_proxy": PROXY}, True),
        ("https://a.example:6443", {"https_proxy": PROXY, "no_proxy": "a.example"}, False),
        ("https://a.example:6443", {"https_proxy": PROXY, "no_proxy": "a.example:6443"}, False),
        ("https://a.example:6443", {"https_proxy": PROXY, "no_proxy": "localhost,*"}, False),
        ("https://10.1.2.3:6443", {"https_proxy": PROXY, "no_proxy": "10.0.0.0/8"}, False),
        ("https://[fd00::1]:6443", {"https_proxy": PROXY, "no_proxy": "fd00::/8"}, False),
        ("https://a.example:6443", {}, False),
    ],
)
@pytest.mark.parametrize("is_inline", [False, True])
def test_proxies_are_used_as_the_official_package_uses_them(
    server, variables, proxied, is_inline, environment, monkeypatch
):
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    path = environment.user_kubeconfig("someone")
    given = read_kubeconfig(path.read_bytes()) if is_inline else path
    transport = find_access(given, None, 1, server).transport
    assert (transport._route.proxy is not None) is proxied


@pytest.mark.parametrize("from_file", [False, True])
def test_a_proxy_gets_the_credentials_in_its_url(environment, monkeypatch, tmp_path, from_file):
    router = Router(lambda _host: None)
    router.start(tmp_path / "unused")
    router.replace("kube-system", {"api": {None: [urlsplit(environment.url).port or 0]}})
    proxy, server = router.proxy_url("a namespace"), "https://api.kube-system.svc"
    path = kubeconfig(tmp_path / "k", server, environment.ca_file, token=environment.admin_token)
    document = json.loads(path.read_text())
    document["clusters"][0]["cluster"] |= {"tls-server-name": "localhost"}
    if from_file:
        document["clusters"][0]["cluster"]["proxy-url"] = proxy
    else:
        monkeypatch.setenv("https_proxy", proxy)
    path.write_text(json.dumps(document))
    try:
        assert connect(path).get(NAMESPACES, "default")
    finally:
        router.stop()


LOADED = """
import sys
from pathlib import Path
from generic.kube.client import connect
connect(Path(sys.argv[1]))
print("kubernetes" in sys.modules)
"""


def test_only_a_proxy_needs_the_official_package(plugin, plugged, environment, tmp_path):
    """Its import takes longer than all of ours."""
    plugin.prints("a-token")

    def loads(path):
        command = [sys.executable, "-c", LOADED, str(path)]
        return subprocess.run(command, capture_output=True, check=True, text=True).stdout.strip()

    ca = environment.ca_file
    token = tmp_path / "token"
    token.write_text("a-token")
    files = kubeconfig(tmp_path / "files", environment.url, ca, tokenFile=str(token))
    password = kubeconfig(tmp_path / "basic", environment.url, ca, username="a", password="b")
    paths = environment.kubeconfig, files, password, plugged
    assert [loads(path) for path in paths] == ["False"] * 4


CREDENTIALS = {
    "token": {"token": "a-secret-token"},
    "basic": {"username": "a", "password": "a-secret-password"},
    "exec": "plugin",
}


@pytest.mark.parametrize("server", ["http://127.0.0.1:1", "http://a.example", "HTTP://a"])
@pytest.mark.parametrize("user", CREDENTIALS.values(), ids=CREDENTIALS)
def test_no_credential_is_sent_to_a_server_without_tls(server, user, plugin, tmp_path):
    plugin.prints("a-secret-token")
    user = {"exec": plugin.user} if user == "plugin" else user
    with pytest.raises(ConfigurationError, match="without TLS; set an https:// server") as no:
        connect(kubeconfig(tmp_path / "k", server, **user))
    assert "a-secret" not in no.value.message
    good = kubeconfig(tmp_path / "good", "https://b.example", **user)
    with pytest.raises(ConfigurationError, match="without TLS"):
        connect(good, server=server)


def test_a_client_certificate_is_not_combined_with_a_server_without_tls(environment):
    with pytest.raises(ConfigurationError, match="without TLS"):
        connect(environment.user_kubeconfig("someone"), server="http://127.0.0.1:1")
    inline = read_kubeconfig(environment.user_kubeconfig("someone").read_bytes())
    with pytest.raises(ConfigurationError, match="without TLS"):
        connect(inline, server="http://127.0.0.1:1")


def test_the_pods_token_is_not_sent_to_a_server_without_tls(pod):
    with pytest.raises(ConfigurationError, match=r"service account.*without TLS"):
        connect(server="http://127.0.0.1:1")


def test_a_server_without_tls_is_fine_without_credentials(tmp_path):
    """As `kubectl proxy` is one."""
    assert connect(kubeconfig(tmp_path / "k", "http://127.0.0.1:1")).host == "127.0.0.1:1"
