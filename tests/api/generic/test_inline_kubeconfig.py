"""Kubeconfigs of tenants: accepted ones, their remaining fields, and the refusal of each other."""

import base64
import json
import stat
import tempfile
import time
import tracemalloc
from contextlib import suppress
from typing import Any

import attrs
import pytest
import yaml
from cryptography.hazmat.primitives import serialization

import generic.kube.access
from actuator import Resource
from actuator.errors import ConfigurationError, Unauthorized
from generic.kube import kubeconfig
from generic.kube.client import connect
from generic.kube.kubeconfig import InlineKubeconfig, read_kubeconfig
from generic.testing.envtest.certificates import LocalAuthority

NAMESPACES = Resource("v1", "namespaces", namespaced=False)
PEM = base64.b64encode(b"-----BEGIN CERTIFICATE-----\n").decode()
SECRET = "a-secret-of-the-tenant"
EXEC = "{apiVersion: client.authentication.k8s.io/v1, command: sh}"

GARDENER = f"""\
apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: {PEM}
    server: https://kube-apiserver.shoot--a--b.svc:443
  name: shoot--a--b
contexts:
- context:
    cluster: shoot--a--b
    user: shoot--a--b
    namespace: default
  name: shoot--a--b
current-context: shoot--a--b
kind: Config
preferences: {{}}
users:
- name: shoot--a--b
  user:
    token: {SECRET}
"""
"""As gardenlet writes them."""


@pytest.fixture(params=["libyaml", "python"], autouse=True)
def either_parser(request, monkeypatch):
    """PyYAML with libyaml, and as it is where libyaml is missing."""
    if request.param == "python":
        monkeypatch.setattr(kubeconfig, "_LOADER", "Loader")


def test_gardeners_kubeconfig_is_accepted():
    found = read_kubeconfig(GARDENER.encode())
    assert found.server == "https://kube-apiserver.shoot--a--b.svc:443"
    assert found.token == SECRET
    assert found.ca == b"-----BEGIN CERTIFICATE-----\n"
    assert SECRET not in repr(found)


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "\ufeff" + text,
        lambda text: f"---\n{text}...\n",
        lambda text: json.dumps(yaml.safe_load(text)),
        lambda text: text.replace(PEM, f"|\n      {PEM[:20]}\n      {PEM[20:]}"),
        lambda text: text.replace("preferences: {}", "preferences: null\nextensions: [{name: a}]"),
        lambda text: text.replace(
            "- name: shoot--a--b\n", "- name: b\n  user:\n- name: shoot--a--b\n"
        ),
    ],
)
def test_the_same_kubeconfig_in_another_form_is_accepted(change):
    assert read_kubeconfig(change(GARDENER).encode()) == read_kubeconfig(GARDENER.encode())


def test_the_rebuilt_kubeconfig_reads_as_the_same_one():
    pair = {"certificate": b"-----BEGIN A-----", "key": b"-----BEGIN PRIVATE KEY-----"}
    for credential in ({"token": SECRET}, pair):
        one = InlineKubeconfig(
            "https://[::1]:6443/k8s/", b"-----BEGIN C-----", tls_server_name="a.b", **credential
        )
        assert read_kubeconfig(one.encoded()) == one
        assert read_kubeconfig(one.encoded("another-name")) == one


def user(line):
    return GARDENER + f"    {line}\n"


def cluster(line):
    return GARDENER.replace("    server:", f"    {line}\n    server:")


def server(url):
    return GARDENER.replace("https://kube-apiserver.shoot--a--b.svc:443", url)


REFUSED = {
    "exec": (user(f"exec: {EXEC}"), "has the key exec in user; remove it"),
    "escaped-exec": (user(f'"\\x65xec": {EXEC}'), "has the key exec in user; remove it"),
    "auth-provider": (user("auth-provider: {name: oidc}"), "has the key auth-provider in user"),
    "token-file": (user("tokenFile: /etc/passwd"), "has the key tokenFile in user"),
    "certificate-file": (
        user("client-certificate: /etc/passwd"),
        "has the key client-certificate in user",
    ),
    "key-file": (user("client-key: /etc/passwd"), "has the key client-key in user"),
    "basic": (user(f"username: a\n    password: {SECRET}"), "has the key password in user"),
    "impersonation": (user("as: system:admin"), "has the key as in user"),
    "two-credentials": (user(f"client-certificate-data: {PEM}"), "needs server"),
    "no-key": (
        GARDENER.replace(f"token: {SECRET}", f"client-certificate-data: {PEM}"),
        "either token or client-certificate-data with client-key-data",
    ),
    "ca-file": (
        cluster("certificate-authority: /etc/passwd"),
        "has the key certificate-authority in",
    ),
    "insecure": (
        cluster("insecure-skip-tls-verify: true"),
        "has the key insecure-skip-tls-verify in",
    ),
    "proxy": (cluster("proxy-url: http://a"), "has the key proxy-url in cluster"),
    "unknown": (user(f"{SECRET}: 1"), "has an unknown key in user"),
    "case": (user(f"Exec: {EXEC}"), "has an unknown key in user"),
    "anchor": (GARDENER.replace("token: ", "token: &a "), "anchors, aliases or tags"),
    "alias": (user("a: *a"), "anchors, aliases or tags"),
    "binary-key": (user(f"!!binary ZXhlYw==: {EXEC}"), "anchors, aliases or tags"),
    "tag": (GARDENER.replace("token: ", "token: !!str "), "anchors, aliases or tags"),
    "merge": (user(f"<<: {{exec: {EXEC}}}"), "a merge key"),
    "duplicate": (user("token: b"), "a duplicate key"),
    "mapping-key": (user("? {a: b}\n    : c"), "a key that is not a string"),
    "control": (user('extensions: "\\e[31m"'), "control character"),
    "documents": (GARDENER + "---\na: b\n", "one YAML document"),
    "empty": ("", "one YAML document"),
    "not-yaml": (f"{{a: '{SECRET}", "one YAML document"),
    "escape": (GARDENER + '"\\UFFFFFFFF": a\n', "one YAML document"),
    "utf-16": (GARDENER.encode("utf-16"), "one YAML document in UTF-8"),
    "large": (GARDENER + "# " + "x" * 2**18, "at most 256 KiB"),
    "deep": (user(f"extensions: {'[' * 13}{']' * 13}"), "12 levels"),
    "wide": (user(f"extensions: [{'a,' * 5000}]"), "5000 nodes"),
    "a-list": ("[a]", "has an invalid value in the top level"),
    "http": (server("http://a"), "has an invalid value in server; set server (https://)"),
    "userinfo": (server("https://a:b@c"), "has an invalid value in server"),
    "query": (server("https://a?b"), "has an invalid value in server"),
    "port": (server("https://a:65536"), "needs server"),
    "address": (server("https://[::::]"), "needs server"),
    "no-ca": (GARDENER.replace(f"certificate-authority-data: {PEM}", "extensions: []"), "needs"),
    "base64": (
        GARDENER.replace(PEM, f"{PEM}="),
        "has an invalid certificate-authority-data",
    ),
    "pem": (GARDENER.replace(PEM, "YQ=="), "set PEM in base64"),
    "token-newline": (
        GARDENER.replace(SECRET, f"|\n      {SECRET}"),
        "has an invalid value in token",
    ),
    "no-context": (GARDENER.replace("current-context: shoot--a--b", ""), "has 0 contexts"),
    "two-users": (GARDENER + "- name: shoot--a--b\n  user: {token: b}\n", "has 2 users"),
    "long-key": (
        GARDENER.replace(
            f"token: {SECRET}", f"client-certificate-data: {PEM}\n    client-key-data: {PEM * 600}"
        ).replace("\n\n", "\n"),
        "client-key-data",
    ),
}


@pytest.mark.parametrize(("content", "clue"), REFUSED.values(), ids=REFUSED)
def test_a_kubeconfig_outside_the_allow_list_is_refused_without_its_content(content, clue):
    with pytest.raises(ConfigurationError) as refused:
        read_kubeconfig(content if isinstance(content, bytes) else content.encode())
    error = refused.value
    assert error.message.startswith("the kubeconfig ")
    assert clue in error.message
    assert SECRET not in error.message
    assert error.__context__ is None, "an error of the parser quotes the kubeconfig"
    assert len(error.message) < 300


def merges(levels):
    """Each level merges the one before it nine times; PyYAML reads ten of them for minutes."""
    lines = ["a: &a {x: 1}"]
    names = "abcdefghijklmnopqrstuvwxyz"
    for level in range(1, levels):
        before = ",".join([f"*{names[level - 1]}"] * 9)
        lines.append(f"{names[level]}: &{names[level]} {{<<: [{before}]}}")
    return "\n".join(lines).encode()


EXPENSIVE = {  # made by the tests, because all of them are 100 MB
    "merges": lambda: merges(10),
    "sequences": lambda: b"[" * 200_000,
    "mappings": lambda: b"{a: " * 60_000,
    "block": lambda: b"- " * 120_000,
    "wide": lambda: b"[" + b"a," * 120_000 + b"]",
    "long-text": lambda: GARDENER.replace(SECRET, "x" * 250_000).encode(),
    "long-key": lambda: b"? " + b"x" * 250_000,
    "escapes": lambda: b'a: "' + b"\\x41" * 60_000 + b'"',
    "comments": lambda: b"#a\n" * 80_000,
    "lines": lambda: b"a:\n" + b"\n" * 250_000 + b" b",
    "folded": lambda: b"a: >\n" + b" b\n\n" * 60_000,
    "huge": lambda: b"a: b\n" * 20_000_000,
}


@pytest.mark.parametrize("make", EXPENSIVE.values(), ids=EXPENSIVE)
def test_no_kubeconfig_takes_a_second_or_20_mib(make):
    content = make()
    started = time.thread_time()
    with suppress(ConfigurationError):
        read_kubeconfig(content)
    assert time.thread_time() - started < 1.0
    tracemalloc.start()  # separately, because it makes everything slow
    try:
        with suppress(ConfigurationError):
            read_kubeconfig(content)
        assert tracemalloc.get_traced_memory()[1] < 20 * 2**20
    finally:
        tracemalloc.stop()


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """The temporary directory, empty."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    return tmp_path / "temporary"


def test_a_tenants_credential_is_in_private_files_and_only_while_it_is_loaded(
    environment, monkeypatch, folder
):
    content = environment.user_kubeconfig("someone", ["system:masters"]).read_bytes()
    kubeconfig = read_kubeconfig(content)
    seen: list[Any] = []
    load = generic.kube.access._authenticate

    def look(*arguments):
        seen.extend(stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*"))
        return load(*arguments)

    monkeypatch.setattr(generic.kube.access, "_authenticate", look)
    client = connect(kubeconfig)
    assert client.get(NAMESPACES, "default")
    assert seen == [0o600, 0o600], "certificate and key"
    assert list(folder.iterdir()) == []


def test_a_refused_token_of_a_tenant_is_read_again_and_nothing_stays(environment, folder):
    content = environment.kubeconfig.read_bytes()
    client = connect(attrs.evolve(read_kubeconfig(content), token="expired"))
    for _ in range(3):
        with pytest.raises(Unauthorized):
            client.get(NAMESPACES, "default")
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("ca", [b"\xff", b"# none", b"-----BEGIN CERTIFICATE-----"])
def test_a_ca_that_cannot_be_read_is_refused_and_the_systems_are_not_trusted_instead(ca):
    with pytest.raises(ConfigurationError, match="cannot use its certificate-authority"):
        connect(InlineKubeconfig("https://a.example", ca, token="t"))


def test_comments_of_a_ca_may_have_any_characters(environment):
    found = read_kubeconfig(environment.kubeconfig.read_bytes())
    commented = attrs.evolve(found, ca="# Schlüssel\n".encode() + found.ca)
    assert connect(commented).get(NAMESPACES, "default")


def test_a_tls_server_name_is_the_one_that_is_verified(environment):
    found = read_kubeconfig(environment.kubeconfig.read_bytes())
    named = attrs.evolve(found, server=found.server, tls_server_name="kubernetes.default.svc")
    assert connect(named).get(NAMESPACES, "default")


def test_an_encrypted_private_key_is_an_error_and_no_question_on_the_terminal(folder):
    authority = LocalAuthority.new("a")
    key = serialization.load_pem_private_key(authority.key_pair.key, password=None)
    encrypted = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.BestAvailableEncryption(b"password"),
    )
    ca = authority.key_pair.certificate
    with pytest.raises(
        ConfigurationError, match="the kubeconfig: cannot use its client-certificate"
    ):
        connect(InlineKubeconfig("https://a.example", ca, certificate=ca, key=encrypted))
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("label", ["ENCRYPTED PRIVATE KEY", "PKCS7", "RSA PRIVATE KEY ENCRYPTED"])
def test_a_key_that_has_to_be_decrypted_is_refused(label):
    """Decrypting costs as much CPU as the key asks for."""
    one = InlineKubeconfig(
        "https://[::1]:6443",
        b"-----BEGIN C-----",
        certificate=b"-----BEGIN A-----",
        key=f"-----BEGIN {label}-----".encode(),
    )
    with pytest.raises(ConfigurationError, match="client-key-data encrypted"):
        read_kubeconfig(one.encoded())
