"""The table of images: the command line of a pod's container, and refusals."""

import json
import sys
from pathlib import Path

import attrs
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from generic.testing.landscape.containers import (
    Image,
    Launch,
    PlannedContainer,
    arguments_of,
    check_paths,
)
from generic.testing.landscape.images import (
    extension_image,
    kubeconfig,
    landscape_images,
    resource_manager_config,
)
from generic.testing.landscape.pods import Missing, PodRefused
from generic.testing.landscape.volumes import rewriter

ROOT = Path("/run/pods/u")
MOUNTS = {"/etc/config": ROOT / "volumes" / "config", "/var/shoot": ROOT / "volumes" / "shoot"}
PROGRAMS = {name: Path("/bin") / name for name in ("kube-apiserver", "kube-controller-manager")}
IMAGES = landscape_images(
    PROGRAMS, Path("/bin/gardener"), lambda namespace: Path("/etcd", namespace)
)
EXTENSION = extension_image(
    (sys.executable, "run"), "extensions.aws:extension", {"AWS_URL": "x"}, Path("/work")
)


def container(*arguments: str, **changes) -> PlannedContainer:
    local = rewriter(MOUNTS)
    made = PlannedContainer(
        namespace="shoot--a--b",
        arguments=[local(argument) for argument in arguments],
        root=ROOT,
        folder=ROOT / "main",
        local=local,
        port=lambda port: 20_000 + port,
        proxy_url="http://shoot--a--b:secret@127.0.0.1:1",
        kubeconfig=ROOT / "main" / "account.kubeconfig",
    )
    return attrs.evolve(made, **changes)


def words(launch: Launch) -> list[str]:
    return [str(word) for word in [*launch.program, *launch.arguments]]


def test_a_kube_apiserver_of_a_shoot_keeps_the_flags_that_a_local_process_can_honour():
    launch = IMAGES["kube-apiserver"].launch(
        container(
            "--secure-port=443",
            "--etcd-servers=https://etcd-main-client:2379",
            "--egress-selector-config-file=/etc/config/egress",
            "--audit-log-path=/home/me/.bashrc",
            "--admission-control-config-file=/etc/config/admission",
            "--client-ca-file=/etc/config/ca.crt",
            "--tls-sni-cert-key=/etc/config/a,/etc/config/b:x",
            "--service-account-issuer=https://api.example.com/etc/config",
            "--feature-gates=A=true",
            "word",
        )
    )
    config = MOUNTS["/etc/config"]
    assert words(launch) == [
        "/bin/kube-apiserver",
        "--etcd-servers=unix://clients:1",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        "--secure-port=20443",
        "--authorization-mode=Node,RBAC",
        "--endpoint-reconciler-type=none",
        f"--client-ca-file={config}/ca.crt",
        f"--tls-sni-cert-key={config}/a,{config}/b:x",
        "--service-account-issuer=https://api.example.com/etc/config",
        "--feature-gates=A=true",
    ]
    check_paths(launch.arguments, ROOT)
    assert launch.cwd == Path("/etcd/shoot--a--b")
    assert launch.environ["HTTPS_PROXY"] == "http://shoot--a--b:secret@127.0.0.1:1"


def test_a_kube_controller_manager_gets_a_rebuilt_kubeconfig_and_does_not_listen():
    launch = IMAGES["kube-controller-manager"].launch(
        container(
            "--kubeconfig=/var/shoot/kubeconfig",
            "--authentication-kubeconfig=/var/shoot/kubeconfig",
            "--secure-port=10257",
            "--flex-volume-plugin-dir=/tmp",
            "--controllers=*,bootstrapsigner",
            "--root-ca-file=/etc/config/ca.crt",
            "--leader-elect=true",
        )
    )
    assert words(launch) == [
        "/bin/kube-controller-manager",
        f"--kubeconfig={ROOT}/main/kubeconfig",
        "--secure-port=0",
        "--controllers=*,bootstrapsigner",
        f"--root-ca-file={MOUNTS['/etc/config']}/ca.crt",
        "--leader-elect=true",
    ]
    (derived,) = launch.derived
    assert derived.source == MOUNTS["/var/shoot"] / "kubeconfig"
    assert derived.target == ROOT / "main" / "kubeconfig"


def test_a_resource_manager_reads_a_rebuilt_configuration(tmp_path):
    (tmp_path / "config.yaml").write_text(
        "targetClientConnection: {kubeconfig: /var/shoot/kubeconfig}\n"
        "server: {webhooks: {port: 10250}}\n"
    )
    local = rewriter({"/etc/config": tmp_path, "/var/shoot": tmp_path / "shoot"})
    made = container(root=tmp_path, local=local, arguments=[f"--config={tmp_path}/config.yaml"])
    launch = IMAGES["gardener-resource-manager"].launch(made)
    config = ROOT / "main" / "config.json"
    assert words(launch) == ["/bin/gardener", "gardener-resource-manager", f"--config={config}"]
    assert "TARGET_KUBECONFIG" not in launch.environ
    assert [(item.source, item.target) for item in launch.derived] == [
        (tmp_path / "config.yaml", config),
        (tmp_path / "shoot" / "kubeconfig", ROOT / "main" / "targetClientConnection.kubeconfig"),
    ]


def test_a_resource_manager_of_the_seed_serves_the_seed(tmp_path):
    (tmp_path / "config.yaml").write_text("targetClientConnection: {namespaces: [garden]}\n")
    made = container(root=tmp_path, arguments=[f"--config={tmp_path}/config.yaml"])
    launch = IMAGES["resource-manager"].launch(made)
    assert launch.environ["KUBECONFIG"] == launch.environ["TARGET_KUBECONFIG"]
    assert launch.environ["KUBECONFIG"] == str(ROOT / "main" / "account.kubeconfig")


def test_a_resource_manager_waits_for_its_configuration():
    with pytest.raises(Missing, match=r"'config.yaml' does not exist yet"):
        IMAGES["resource-manager"].launch(container("--config=/etc/config/config.yaml"))


def test_the_configuration_of_a_resource_manager_has_local_ports_and_paths():
    config = {
        "server": {"healthProbes": {"port": 8081}, "webhooks": {"port": 10250, "tls": {
            "serverCertDir": "/etc/config"}}},
        "sourceClientConnection": {"kubeconfig": "/var/shoot/kubeconfig"},
        "targetClientConnection": None,
    }  # fmt: skip
    written = json.loads(resource_manager_config(container(), yaml.safe_dump(config).encode()))
    assert written == {
        "server": {
            "healthProbes": {"port": 28081, "bindAddress": "127.0.0.1"},
            "metrics": {"port": 20000, "bindAddress": "127.0.0.1"},
            "webhooks": {
                "port": 30250,
                "bindAddress": "127.0.0.1",
                "tls": {"serverCertDir": str(MOUNTS["/etc/config"])},
            },
        },
        "sourceClientConnection": {
            "kubeconfig": str(ROOT / "main" / "sourceClientConnection.kubeconfig")
        },
        "targetClientConnection": None,
    }


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b"{", b"server: 1", b"server: {webhooks: x}", b"\xff", b"&a [*a]", b"[" * 5000,
     b"server: {webhooks: {tls: {serverCertDir: /home/me}}}"],
)  # fmt: skip
def test_a_configuration_that_cannot_be_read_is_refused(content):
    with pytest.raises(PodRefused):
        resource_manager_config(container(), content)


def written_kubeconfig(user=None, cluster=None, **changes):
    cluster = {"server": "https://kube-apiserver", **(cluster or {})}
    config = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "cl", "user": "u", "namespace": "n"}}],
        "clusters": [{"name": "cl", "cluster": cluster}],
        "users": [{"name": "other", "user": {}}, {"name": "u", "user": user or {}}],
    }
    return yaml.safe_dump(config | changes).encode()


def test_a_kubeconfig_is_rebuilt_with_local_paths():
    user = {"tokenFile": "/var/shoot/token", "as": "someone"}
    cluster = {"certificate-authority-data": "eA==", "proxy-url": "http://elsewhere"}
    rebuilt = json.loads(kubeconfig(container(), written_kubeconfig(user, cluster)))
    assert rebuilt["users"][0]["user"] == {"tokenFile": str(MOUNTS["/var/shoot"] / "token")}
    assert rebuilt["clusters"][0]["cluster"] == {
        "server": "https://kube-apiserver",
        "certificate-authority-data": "eA==",
    }


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (written_kubeconfig({"exec": {"command": "/bin/sh"}}), "'exec', which would run"),
        (written_kubeconfig({"auth-provider": {"name": "gcp"}}), "'auth-provider', which would"),
        (written_kubeconfig({"tokenFile": "/home/me/token"}), "in no volume"),
        (written_kubeconfig({"client-key": "/var/shoot/../../x"}), "in no volume"),
        (written_kubeconfig({"tokenFile": "token"}), "in no volume"),
        (written_kubeconfig(cluster={"certificate-authority": "/etc/shadow"}), "in no volume"),
        (written_kubeconfig({"tokenFile": "/var/shoot/x", "token": ["exec"]}, users={}), "cannot"),
        (b"a: &a [x]\nb: &b [*a, *a]\nc: [*b, *b]\n" + written_kubeconfig(), "cannot be read"),
        (written_kubeconfig(users=[]), "cannot be read"),
        (written_kubeconfig(contexts="x"), "cannot be read"),
        (b"- 1", "cannot be read"),
        (b"\xff", "cannot be read"),
        (b"{", "cannot be read"),
    ],
)
def test_a_kubeconfig_that_names_programs_or_files_is_refused(content, sentence):
    with pytest.raises(PodRefused, match=sentence):
        kubeconfig(container(), content)


def test_an_extension_listens_on_local_ports():
    launch = EXTENSION.launch(
        container(
            "extensions.aws:extension",
            "--metrics-bind-address=:8080",
            "--health-bind-address=:8081",
            "--webhook-config-server-host=",
            "--webhook-config-server-port=10250",
            "--leader-election",
            "--log-level=info",
        )
    )
    assert words(launch) == [
        sys.executable,
        "run",
        "extensions.aws:extension",
        "--metrics-bind-address=127.0.0.1:28080",
        "--health-bind-address=127.0.0.1:28081",
        "--webhook-config-server-host=127.0.0.1",
        "--webhook-config-server-port=30250",
        "--leader-election",
        "--log-level=info",
    ]
    assert launch.cwd == Path("/work")
    assert launch.environ["AWS_URL"] == "x"
    assert launch.environ["KUBECONFIG"] == str(ROOT / "main" / "account.kubeconfig")


def test_a_disabled_address_stays_disabled():
    launch = EXTENSION.launch(container("extensions.aws:extension", "--metrics-bind-address=0"))
    assert launch.arguments == ["--metrics-bind-address=0"]


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("os:system",),
        ("extensions.aws:extension", "os:system"),
        ("--log-level=info", "extensions.aws:extension"),
        ("extensions.aws:extension", "--kubeconfig=/etc/config/x"),
        ("extensions.aws:extension", "--config-file=/etc/config/x"),
        ("extensions.aws:extension", "--kubeconfig", "/etc/config/x"),
        ("extensions.aws:extension", "-h"),
    ],
)
def test_an_extension_is_the_one_of_its_image_and_of_its_service_account(arguments):
    with pytest.raises(PodRefused):
        EXTENSION.launch(container(*arguments))


IMAGE = Image(("actuator", "run"), lambda _container: Launch(()))


@pytest.mark.parametrize(
    ("spec", "arguments"),
    [
        ({}, []),
        ({"args": ["a", "$(A)"]}, ["a", "1"]),
        ({"command": ["actuator", "run"], "args": ["a"]}, ["a"]),
        ({"command": ["/usr/local/bin/actuator", "run", "--x"], "args": ["a"]}, ["--x", "a"]),
    ],
)
def test_the_command_may_be_the_program_of_the_image(spec, arguments):
    assert arguments_of(spec, IMAGE, {"A": "1"}) == arguments


@pytest.mark.parametrize(
    "command",
    [["/bin/sh", "-c", "id"], ["actuator"], ["actuator", "explore"], ["$(A)", "run"], ["/"]],
)
def test_any_other_command_is_refused(command):
    with pytest.raises(PodRefused, match="the program of the image"):
        arguments_of({"command": command}, IMAGE, {"A": "sh"})


@pytest.mark.parametrize(
    "text",
    [
        "/etc/passwd",
        "--x=/etc/passwd",
        "--x=//etc/passwd",
        "--x=a,/etc/passwd",
        "--x=a:/etc/passwd",
        "--x=a@/etc/passwd",
        "--x=[/etc/passwd]",
        "--x='/etc/passwd'",
        "--x=file:///etc/passwd",
        "--x=/run/pods/u/../v/secret",
        "--x=/run/pods/u2/secret",
        "--x=../secret",
        "--x=a/../../b",
        "..",
        "--x=a\0b",
    ],
)
def test_a_path_outside_the_pod_is_refused(text):
    with pytest.raises(PodRefused, match=r"path|NUL"):
        check_paths([text], ROOT)


@pytest.mark.parametrize(
    "text",
    [
        "--x=/run/pods/u/volumes/v/file",
        "--x=https://example.com/a/b",
        "--x=https://example.com:443/a",
        "--x=10.0.0.0/24",
        "--x=10.0.0.0/24,10.1.0.0/16",
        "--x=registry.example/a/b:v1",
        "--x=eA+/y==",
        "--x=a..b",
        "--x=*",
        "",
    ],
)
def test_other_values_are_accepted(text):
    assert is_accepted(text)


def is_accepted(text):
    try:
        check_paths([text], ROOT)
    except PodRefused:
        return False
    return True


PIECES = st.sampled_from(
    ["/", "//", "..", ".", "etc", "run/pods/u", ":", "=", ",", "--x", " ", "'"]
)


@given(text=st.lists(PIECES, max_size=8).map("".join))
def test_law_an_accepted_text_has_no_absolute_path_outside(text):
    """As a program would split it: at the characters between which values stand."""
    if not is_accepted(text):
        assert set(text) & set("/.")
        return
    for part in text.replace("=", " ").replace(",", " ").replace("'", " ").split():
        if part.startswith("/"):
            assert Path(part.partition(":")[0]).is_relative_to(ROOT), text
        assert ".." not in part.split("/"), text
