"""Any kubeconfig that a tenant may write: refused, or read alike by PyYAML and by client-go."""

import base64
import json
import random
from typing import Any
from urllib.parse import quote

import attrs
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from actuator.errors import ConfigurationError
from generic.kube import kubeconfig as product
from generic.kube.kubeconfig import InlineKubeconfig, read_kubeconfig
from tests.adversary.kubeconfigs import PARTS, SECRET, kubeconfig, problem, reader

INPUTS = 300


@pytest.fixture(scope="module")
def read():
    """As client-go reads."""
    with reader() as one:
        yield one


def by_hand(content):
    """The values of the current context, where PyYAML takes every scalar for text."""
    config = yaml.load(content.decode("utf-8-sig"), yaml.BaseLoader)

    def named(kind, name):
        [found] = [item[kind] for item in config[f"{kind}s"] if item["name"] == name]
        return found

    def text(fields, key):
        value = fields.get(key) or ""
        return "" if value in ("null", "~") else value

    context = named("context", config["current-context"])
    cluster = named("cluster", context["cluster"])
    user = named("user", context["user"])
    return {
        "server": cluster["server"],
        "ca": base64.b64decode(cluster["certificate-authority-data"]),
        "token": text(user, "token"),
        "certificate": base64.b64decode(text(user, "client-certificate-data")),
        "key": base64.b64decode(text(user, "client-key-data")),
        "tls_server_name": text(cluster, "tls-server-name"),
    }


@pytest.mark.parametrize("loader", ["CLoader", "Loader"])
def test_no_generated_kubeconfig_breaks_a_rule(read, loader, monkeypatch):
    monkeypatch.setattr(product, "_LOADER", loader)
    accepted = 0
    for seed in range(INPUTS):
        content = kubeconfig(random.Random(seed))
        assert problem(content, read) is None, f"input {seed}: {content[:500]!r}"
        try:
            found = read_kubeconfig(content)
        except ConfigurationError:
            continue
        accepted += 1
        assert attrs.asdict(found) == by_hand(content)
    assert accepted > INPUTS / 20, (
        "most inputs are refused; the rules about accepted ones need some"
    )


def test_the_generator_repeats_itself_for_a_seed():
    first, again = ([kubeconfig(random.Random(n)) for n in range(50)] for _ in range(2))
    assert first == again
    assert len(set(first)) > 40


PEM = st.binary(max_size=200).map(lambda data: b"-----BEGIN CERTIFICATE-----\n" + data)
KEY = (
    st.binary(max_size=200)
    .filter(lambda data: b"ENCRYPTED" not in data and b"-----BEGIN " not in data)  # are refused
    .map(lambda data: b"-----BEGIN PRIVATE KEY-----\n" + data)
)
LABEL = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?", fullmatch=True)
HOST = st.lists(LABEL, min_size=1, max_size=4).map(".".join)
VALUES = st.builds(
    lambda host, port, path, **rest: InlineKubeconfig(f"https://{host}{port}{path}", **rest),
    host=HOST | st.ip_addresses(v=6).map(lambda address: f"[{address}]"),
    port=st.just("") | st.integers(1, 65535).map(lambda port: f":{port}"),
    path=st.lists(LABEL, max_size=3).map(lambda parts: "".join(f"/{part}" for part in parts)),
    ca=PEM,
    tls_server_name=st.just("") | HOST,
)
TOKEN: st.SearchStrategy[dict[str, str]] = st.builds(
    dict, token=st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1)
)
PAIR: st.SearchStrategy[dict[str, bytes]] = st.builds(dict, certificate=PEM, key=KEY)
STYLES: st.SearchStrategy[dict[str, Any]] = st.builds(
    dict,
    default_style=st.sampled_from([None, "'", '"']),
    default_flow_style=st.booleans(),
    explicit_start=st.booleans(),
    width=st.sampled_from([20, 10_000]),
)


@given(value=VALUES, credential=TOKEN | PAIR, style=STYLES)
def test_an_allowed_kubeconfig_is_read_in_each_yaml_style(read, value, credential, style):
    value = attrs.evolve(value, **credential)
    config = json.loads(value.encoded())
    content = yaml.safe_dump(config, **style).encode()
    assert read_kubeconfig(content) == value
    assert problem(content, read) is None


@given(content=st.binary(max_size=2000) | st.text(max_size=2000).map(str.encode))
def test_no_bytes_at_all_break_a_rule(read, content):
    assert problem(content, read) is None


@attrs.frozen
class PassedOn(InlineKubeconfig):
    """The original bytes instead of rebuilt ones."""

    content: bytes = attrs.field(default=b"", repr=False)

    def encoded(self, name="inline"):
        return self.content


def old_reader(content):
    """As it was before: vetted with PyYAML, and the original bytes passed on."""
    try:
        config = yaml.safe_load(content)
        users = [entry.get("user") or {} for entry in config["users"]]
        clusters = [entry.get("cluster") or {} for entry in config["clusters"]]
        if any(user.keys() - product._ALLOWED["user"].keys() for user in users):
            raise ConfigurationError("the kubeconfig has a user with more")
        if any("certificate-authority" in cluster for cluster in clusters):
            raise ConfigurationError("the kubeconfig names a file")
        cluster = clusters[0]
        user = users[0]
        values = (cluster.get("certificate-authority-data", ""), *map(user.get, KEYS))
        ca, certificate, key = (base64.b64decode(value or "") for value in values)
        return PassedOn(
            cluster["server"],
            ca,
            content,
            token=user.get("token", ""),
            certificate=certificate,
            key=key,
            tls_server_name=cluster.get("tls-server-name", ""),
        )
    except (yaml.YAMLError, ValueError, AttributeError, KeyError, TypeError, RecursionError):
        pass
    raise ConfigurationError("not a valid kubeconfig")


KEYS = ("client-certificate-data", "client-key-data")


def test_the_adversary_finds_the_reader_that_passes_the_original_bytes_on(read, monkeypatch):
    monkeypatch.setattr(product, "read_kubeconfig", old_reader)
    found = []
    for seed in range(INPUTS):
        content = kubeconfig(random.Random(seed))
        if len(content) < 5000 and b"{<<: [*a" not in content:  # hours; see the next test
            found.append((problem(content, read), content))
    differing = [content for why, content in found if why and "client-go reads other" in why]
    executed = [content for content in differing if "exec" in read(content).get("other", "")]
    assert executed, "a program that PyYAML does not see, and that client-go runs"


def test_the_adversary_finds_the_reader_that_expands_merges(read, monkeypatch):
    monkeypatch.setattr(product, "read_kubeconfig", old_reader)
    start, part = next(bomb for bomb in PARTS["bombs"] if "<<" in bomb[1])
    levels = (part.replace("N", str(n)).replace("M", str(n - 1)) for n in range(1, 8))
    assert problem((start + "".join(levels)).encode(), read) == "it takes more than 1.0 s of CPU"


def test_the_adversary_finds_a_secret_in_an_error(read, monkeypatch):
    for text in (SECRET, SECRET[3:12], base64.b64encode(SECRET.encode()).decode(), quote(SECRET)):

        def reveal(_content, text=text):
            raise ConfigurationError(f"cannot read {text}")

        monkeypatch.setattr(product, "read_kubeconfig", reveal)
        assert problem(b"", read) == "a secret is in the text of an error or value"
