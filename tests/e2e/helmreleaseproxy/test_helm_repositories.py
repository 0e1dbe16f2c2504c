"""Charts from a real registry and an HTTP repository; refusals before and after the download."""

from __future__ import annotations

import base64
import json
import os
import resource
import socket
import ssl
import subprocess
import threading
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer, SimpleHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
import yaml

from actuator import ErrorCode
from extensions.helmreleaseproxy import CHARTS
from extensions.helmreleaseproxy.charts import chart_problems
from extensions.helmreleaseproxy.helm import AT_ONCE, MEMORY, Helm
from extensions.helmreleaseproxy.kinds import HelmChartProxySpec
from extensions.helmreleaseproxy.repositories import registry_config
from generic.library.charts import helm_environment
from generic.testing.envtest.certificates import LocalAuthority
from generic.testing.envtest.servers import free_port
from generic.testing.polling import polling
from generic.tools import packaging
from tests.support.cluster.harness import eventually
from tests.support.landscape.go_programs import build_registry
from tests.support.samples.helm import CHARTS as CHART_PROXIES
from tests.support.samples.helm import RELEASES, SECRETS

USER = "puller"
PASSWORD = "s3cr3t-password"
BCRYPT = "$2b$05$0h59gDNXfTZstwZKQgwCB.Sbog95DyHjBxAQ7F/pkz7T8xfxjgpq2"


class Files(SimpleHTTPRequestHandler):
    """Serves a folder, silently."""

    def log_message(self, *_):
        """Nothing."""


class Endless(BaseHTTPRequestHandler):
    """Answers without end."""

    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        try:
            while True:
                self.wfile.write(b"#" * (1 << 20))
        except OSError:
            return

    def log_message(self, *_):
        """Nothing."""


@contextmanager
def serving(handler, context=None):
    """The port of a server with this handler, with TLS if there is a context."""
    with HTTPServer(("127.0.0.1", 0), handler) as server:
        if context is not None:
            server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


@pytest.fixture(scope="module")
def tls(tmp_path_factory):
    """Files: the CA, a certificate for 127.0.0.1, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    authority = LocalAuthority.new("repositories")
    pair = authority.serving(["127.0.0.1"])
    names = {"ca": authority.key_pair.certificate, "cert": pair.certificate, "key": pair.key}
    for name, content in names.items():
        (folder / name).write_bytes(content)
    return folder


def with_tls(tls):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tls / "cert", tls / "key")
    return context


@pytest.fixture(scope="module")
def packages(helm, tmp_path_factory):
    """A folder with the chart `note`, packed in two versions, and their index."""
    folder = tmp_path_factory.mktemp("packages")
    for version in ("1.0.0", "1.1.0"):
        pack = [helm, "package", CHARTS / "note", "--version", version, "--destination", folder]
        subprocess.run(pack, check=True, capture_output=True)
    subprocess.run([helm, "repo", "index", folder], check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def repository(tls, packages):
    """The URL of an HTTP repository with TLS."""
    with serving(partial(Files, directory=packages), with_tls(tls)) as port:
        yield f"https://127.0.0.1:{port}"


@pytest.fixture(scope="module")
def registry(tls, packages, helm, tmp_path_factory):
    """The URL of a real registry with TLS and a password, with the chart in its first version."""
    folder = tmp_path_factory.mktemp("registry")
    port = free_port()
    (folder / "htpasswd").write_text(f"{USER}:{BCRYPT}\n")
    config = {
        "version": 0.1,
        "log": {"level": "error", "accesslog": {"disabled": True}},
        "storage": {"filesystem": {"rootdirectory": str(folder / "data")}},
        "auth": {"htpasswd": {"realm": "test", "path": str(folder / "htpasswd")}},
        "http": {
            "addr": f"127.0.0.1:{port}",
            "secret": "test",
            "tls": {"certificate": str(tls / "cert"), "key": str(tls / "key")},
        },
    }
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    program = build_registry(print)
    with ExitStack() as stack:
        process = stack.enter_context(
            subprocess.Popen([program, "serve", folder / "config.yaml"], stderr=subprocess.DEVNULL)
        )
        stack.callback(process.terminate)
        eventually(lambda: answers(port))
        push(helm, tls, packages / "note-1.0.0.tgz", f"127.0.0.1:{port}", folder)
        yield f"oci://127.0.0.1:{port}/charts"


def answers(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def docker_config(host, password=PASSWORD):
    auth = base64.b64encode(f"{USER}:{password}".encode()).decode()
    return json.dumps({"auths": {host: {"auth": auth}}, "credsStore": "runs-a-program"}).encode()


def push(helm, tls, package, host, folder):
    (folder / "auth.json").write_bytes(registry_config(docker_config(host), host))
    environment = helm_environment(folder) | {"HELM_REGISTRY_CONFIG": str(folder / "auth.json")}
    command = [helm, "push", package, f"oci://{host}/charts", "--ca-file", tls / "ca"]
    subprocess.run(command, check=True, capture_output=True, env=environment)


def remote(url, version="1.0.0", **spec):
    return {"chart": "", "repoURL": url, "chartName": "note", "version": version, **spec}


def test_a_chart_of_an_http_repository_is_installed_and_upgraded_to_another_version(
    near, way, serve, namespace, helm, tls, repository
):
    serve(program=Helm(helm, {"SSL_CERT_FILE": str(tls / "ca")}))
    near.target()
    near.chart(**remote(repository), values={"text": "from a repository"})
    eventually(lambda: near.is_ready(CHART_PROXIES, "note"))
    assert way.text(namespace, "note") == "from a repository"
    near.patch(CHART_PROXIES, "note", {"spec": {"version": "9.9.9"}})
    missing = ("ChartNotFound", "note 9.9.9", repository, "spec.version")
    eventually(lambda: near.says(RELEASES, "note-t", *missing))
    assert near.get(RELEASES, "note-t")["spec"]["version"] == "9.9.9"
    assert codes(near, "note-t") == [ErrorCode.ERR_CONFIGURATION_PROBLEM]
    near.patch(CHART_PROXIES, "note", {"spec": {"version": "1.1.0"}})
    eventually(lambda: near.is_ready(CHART_PROXIES, "note"))
    assert way.revisions(namespace, "note") == ["superseded", "deployed"]
    near.patch(CHART_PROXIES, "note", {"spec": {**dict.fromkeys(remote(""), ""), "chart": "note"}})
    eventually(lambda: near.get(RELEASES, "note-t")["spec"].get("repoURL") is None)
    eventually(lambda: near.is_ready(CHART_PROXIES, "note"))


def test_a_chart_of_a_registry_is_pulled_with_credentials_that_are_in_no_argument(
    near, way, serve, namespace, helm, tls, registry, tmp_path
):
    noted = tmp_path / "noted"
    wrapper = tmp_path / "helm"
    wrapper.write_text(
        f'#!/bin/sh\necho "$(/usr/bin/stat -c %a "$HELM_REGISTRY_CONFIG") $*" >> {noted}\n'
        f'cat "$HELM_REGISTRY_CONFIG" >> {noted}.config 2> /dev/null\nexec {helm} "$@"\n'
    )
    wrapper.chmod(0o755)
    host = registry.removeprefix("oci://").removesuffix("/charts")
    secret(near, "registry", docker_config(host))
    secret(near, "wrong", docker_config(host, "another"))
    secret(near, "elsewhere", docker_config("elsewhere.example.org"))
    serve(program=Helm(wrapper, {"SSL_CERT_FILE": str(tls / "ca")}))
    near.target()
    near.release("none", **remote(registry))
    near.release("wrong", **remote(registry), credentials={"secret": {"name": "wrong"}})
    near.release("missing", **remote(registry), credentials={"secret": {"name": "missing"}})
    near.release("elsewhere", **remote(registry), credentials={"secret": {"name": "elsewhere"}})
    good: dict[str, Any] = {"secret": {"name": "registry"}}
    near.release("alone", **remote(registry), credentials=good)
    near.release("later", **remote(registry, "1.0.1"), credentials=good)
    eventually(lambda: near.is_ready(RELEASES, "alone"), 120)
    assert way.text(namespace, "alone") == "Hello"
    for name in ("none", "wrong"):
        eventually(lambda name=name: near.says(RELEASES, name, "RegistryRefuses", "credentials"))
        assert codes(near, name) == [ErrorCode.ERR_INFRA_UNAUTHENTICATED]
    eventually(lambda: near.says(RELEASES, "missing", "Secret", "missing", "create it"))
    eventually(lambda: near.says(RELEASES, "elsewhere", "Secret", "`auths`", host))
    eventually(lambda: near.says(RELEASES, "later", "ChartNotFound", "note 1.0.1", "spec.version"))
    pulls = [line for line in noted.read_text().splitlines() if line.split()[1:2] == ["pull"]]
    assert "600" in {line.split()[0] for line in pulls}
    assert PASSWORD not in noted.read_text()
    assert USER not in noted.read_text()
    given = Path(f"{noted}.config").read_text()
    assert "runs-a-program" not in given
    assert PASSWORD not in str(near.admin.list(RELEASES, namespace))


def test_a_tenant_sees_no_difference_between_repositories_that_do_not_authenticate_themselves(
    near, serve, helm, repository, packages
):
    with (
        serving(partial(Files, directory=packages)) as plain,
        socket.create_server(("127.0.0.1", 0)) as closed,
    ):
        port = closed.getsockname()[1]
        closed.close()
        urls = {
            "closed": f"https://127.0.0.1:{port}/x",
            "oci": f"oci://127.0.0.1:{port}/x",
            "nowhere": "https://nowhere.invalid",
            "plain": f"https://127.0.0.1:{plain}",
            "untrusted": repository,
        }
        serve(program=Helm(helm))
        near.target()
        for name, url in urls.items():
            near.release(name, **remote(url))
        told = set()
        for name, url in urls.items():
            eventually(lambda name=name: near.says(RELEASES, name, "RegistryNoAnswer"), 120)
            assert codes(near, name) == [ErrorCode.ERR_INFRA_DEPENDENCIES]
            told.add(near.condition(RELEASES, name)[2].replace(url, "URL"))
        assert len(told) == 1, told
        assert "spec.repoURL" in told.pop()


def test_an_index_without_end_is_not_read_to_its_end(near, serve, helm, tls):
    with serving(Endless, with_tls(tls)) as port:
        serve(program=Helm(helm, {"SSL_CERT_FILE": str(tls / "ca")}))
        near.target()
        near.release(**remote(f"https://127.0.0.1:{port}"))
        eventually(lambda: near.says(RELEASES, "alone", "sends too much"), 90)


def test_many_indexes_without_end_share_one_budget(near, serve, helm, tls):
    counts = [0]
    memory = [0]

    def look():
        running = [folder for folder in Path("/proc").iterdir() if _runs(folder, helm)]
        counts.append(len(running))
        memory.append(sum(_resident(folder) for folder in running))

    with serving(Endless, with_tls(tls)) as port, polling(look, "helm", every=0.05):
        serve(program=Helm(helm, {"SSL_CERT_FILE": str(tls / "ca")}))
        near.target()
        names = [f"endless-{number}" for number in range(5)]
        for name in names:
            near.release(name, **remote(f"https://127.0.0.1:{port}"))
        for name in names:
            eventually(lambda name=name: near.says(RELEASES, name, "sends too much"), 90)
    assert max(counts) == AT_ONCE
    assert max(memory) <= AT_ONCE * MEMORY


def _runs(folder: Path, helm: Path) -> bool:
    """Whether it is the folder of a process of this helm that the test has started."""
    try:
        if not folder.name.isdigit() or (folder / "exe").resolve() != helm.resolve():
            return False
        after_name = (folder / "stat").read_text().rpartition(")")[2].split()
        return int(after_name[1]) == os.getpid()
    except OSError:  # it has ended
        return False


def _resident(folder: Path) -> int:
    with suppress(OSError, IndexError):
        return int((folder / "statm").read_text().split()[1]) * resource.getpagesize()
    return 0


def test_the_memory_of_all_helms_fits_into_the_pod_of_the_chart():
    """A manager needs some 120 MiB for 10,000 objects."""
    values = Path(packaging.__file__).with_name("files") / "values.yaml"
    assert "limits:\n    memory: 1Gi\n" in values.read_text()
    assert AT_ONCE * MEMORY + (192 << 20) <= 1 << 30


def test_plain_http_is_not_followed_from_an_index(near, serve, helm, tls, packages, tmp_path):
    """0.0.0.0 is this machine, and no loopback address for Go: another host without TLS."""
    index = (packages / "index.yaml").read_text()
    trusting = Helm(helm, {"SSL_CERT_FILE": str(tls / "ca")})
    with serving(partial(Files, directory=packages)) as plain:
        changed = index.replace("- note-", f"- http://0.0.0.0:{plain}/note-")
        assert changed != index
        (tmp_path / "index.yaml").write_text(changed)
        with serving(partial(Files, directory=tmp_path), with_tls(tls)) as port:
            serve(program=trusting)
            near.target()
            near.release(**remote(f"https://127.0.0.1:{port}"))
            eventually(lambda: near.says(RELEASES, "alone", "RegistryNoAnswer"), 90)


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"repo_url": "oci://example.org/charts", "chart_name": "note"}, "version"),
        ({"version": ">=1.0.0"}, "version"),
        ({"version": "1"}, "version"),
        ({"chart_name": "--post-renderer"}, "chartName"),
        ({"chart_name": ""}, "chartName"),
        ({"chart": "note"}, "chart"),
        ({"repo_url": "http://example.org"}, "repoURL"),
        ({"repo_url": "http://127.0.0.1:80"}, "repoURL"),
        ({"repo_url": "https://user:secret@example.org"}, "repoURL"),
        ({"repo_url": "https://example.org/?token=secret"}, "repoURL"),
        ({"repo_url": "file:///etc"}, "repoURL"),
        ({"repo_url": "--repo"}, "repoURL"),
        ({"repo_url": "https://example.org/" + "x" * 600}, "repoURL"),
    ],
)
def test_a_spec_that_helm_must_not_see_is_a_problem_of_its_field(spec, field):
    good: dict[str, Any] = {
        "repo_url": "https://example.org",
        "chart_name": "note",
        "version": "1.0.0",
    }
    if "repo_url" in spec and "chart_name" in spec:
        good.pop("version")
    problems = list(chart_problems(CHARTS, HelmChartProxySpec(**good | spec), "note"))
    assert [problem.field for problem in problems] == [f"spec.{field}"]
    assert "secret" not in str(problems)


def test_a_good_spec_has_no_problems():
    good: dict[str, Any] = {"chart_name": "note", "version": "v1.0.0-rc.1+build"}
    for url in ("https://example.org/charts/", "oci://ghcr.io/org/charts", "https://[::1]:5000/x"):
        spec = HelmChartProxySpec(repo_url=url, **good)
        assert list(chart_problems(CHARTS, spec, "note")) == []


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b'{"auths": {"h": {}}}',
        b'{"auths": {"h": {"auth": "no base64"}}}',
        b'{"auths": {"h": {"auth": 1}}}',
        b'{"credHelpers": {"h": "program"}}',
        b"[" * 100_000,
    ],
)
def test_a_registry_config_without_a_plain_credential_is_refused(content):
    errors = (KeyError, TypeError, ValueError, RecursionError)
    with pytest.raises(errors):
        registry_config(content, "h")


def codes(near, name):
    conditions = near.get(RELEASES, name)["status"]["conditions"]
    return next(condition.get("codes") for condition in conditions if condition["type"] == "Ready")


def secret(near, name, content):
    data = {"config.json": base64.b64encode(content).decode()}
    meta = {"name": name, "namespace": near.namespace}
    raw = {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": data}
    near.admin.create(SECRETS, raw)
