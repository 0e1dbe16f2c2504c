"""Kubeconfig files of the user of a command: their keys, and their merge."""

import base64
import json

import pytest

from actuator.errors import ConfigurationError
from generic.kube.access import find_access
from generic.kube.kubeconfig import (
    _ALLOWED,
    _ALLOWED_IN_FILES,
    _IMPERSONATION,
    read_files,
    read_kubeconfig,
)

SECRET = "a-secret-of-the-user"
CA = b"-----BEGIN CERTIFICATE-----\n"
PEM = base64.b64encode(CA).decode()
CLUSTER = {"server": "https://a.example", "certificate-authority-data": PEM}


def written(path, user=None, cluster=None, **changes):
    config = {
        "clusters": [{"name": "c", "cluster": CLUSTER | (cluster or {})}],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(config | changes))
    return path


def read(*paths, context=None):
    return read_files("kubeconfig k", paths, context)


VALUES = {
    "certificate-authority": "ca.crt",
    "proxy-url": f"http://user:{SECRET}@proxy.example",
    "insecure-skip-tls-verify": False,
    "client-certificate": "ca.crt",
    "client-key": "ca.crt",
    "tokenFile": "token",
    "username": "me",
    "password": SECRET,
    "exec": {"apiVersion": "v1", "command": "x", "env": [{"name": "a", "value": SECRET}]},
    "auth-provider": {"name": "oidc", "config": {"id-token": SECRET, "client-secret": SECRET}},
    **dict.fromkeys(_IMPERSONATION),
}
KEYS = [(part, key) for part in ("cluster", "user") for key in _ALLOWED_IN_FILES[part]]


@pytest.mark.parametrize(("part", "key"), KEYS)
def test_each_key_for_files_is_read_from_a_file_and_refused_in_a_secret(part, key, tmp_path):
    (tmp_path / "ca.crt").write_bytes(CA)
    (tmp_path / "token").write_text(f"{SECRET}\n")
    path = written(tmp_path / "k", **{part: {key: VALUES[key]}})
    assert SECRET not in repr(read(path))
    with pytest.raises(ConfigurationError, match=f"has the key {key} in {part}; remove it") as no:
        read_kubeconfig(path.read_bytes())
    assert SECRET not in no.value.message


def test_no_key_is_allowed_in_secrets_and_listed_for_files_too():
    for part, keys in _ALLOWED_IN_FILES.items():
        assert not keys.keys() & _ALLOWED.get(part, {}).keys()


@pytest.mark.parametrize(
    ("user", "authorization"),
    [
        ({}, ""),
        ({"token": "t", "tokenFile": "token", "username": "a", "password": "b"}, "Bearer t"),
        ({"tokenFile": "token", "exec": VALUES["exec"]}, f"Bearer {SECRET}"),
        ({"username": "a", "password": "ü"}, f"Basic {base64.b64encode('a:ü'.encode()).decode()}"),
        ({"username": "a"}, ""),
        ({"auth-provider": VALUES["auth-provider"], "token": "t"}, f"Bearer {SECRET}"),
        ({"auth-provider": {"config": {"access-token": "a"}}}, "Bearer a"),
        ({"auth-provider": {"name": "azure"}, "token": "t"}, "Bearer t"),
    ],
)
def test_the_credential_of_a_user_is_sent(user, authorization, tmp_path):
    (tmp_path / "token").write_text(f"{SECRET}\n")
    assert read(written(tmp_path / "k", user)).authorization == authorization


@pytest.mark.parametrize(
    "user",
    [{"as": "a"}, {"as-uid": "1"}, {"as-groups": ["g"]}, {"as-user-extra": {"scopes": ["s"]}}],
)
def test_impersonation_is_refused_and_not_ignored(user, tmp_path):
    """Without it, a command would have the permissions of the other user."""
    path = written(tmp_path / "k", {"token": SECRET, **user})
    with pytest.raises(ValueError, match=r"impersonation \(as\) is not supported") as no:
        read(path)
    assert SECRET not in str(no.value)


def test_a_program_is_returned_and_not_run(tmp_path):
    path = written(tmp_path / "k", {"exec": VALUES["exec"]}, {"extensions": [{"name": "e"}]})
    plugin, folder, cluster = read(path).plugin
    assert (plugin, folder) == (VALUES["exec"], str(tmp_path))
    assert cluster["extensions"] == [{"name": "e"}]
    assert read(written(tmp_path / "k", {"exec": VALUES["exec"], "token": "t"})).plugin is None


def test_files_are_relative_to_the_kubeconfig_that_names_them(tmp_path):
    entry = {"client-certificate": "mine.crt", "client-key": "../mine.key"}
    (tmp_path / "mine.key").write_bytes(b"a key")
    path = written(tmp_path / "folder" / "k", entry, {"certificate-authority-data": None})
    (tmp_path / "folder" / "mine.crt").write_bytes(b"a certificate")
    found = read(path)
    assert (found.inline.certificate, found.inline.key) == (b"a certificate", b"a key")
    assert found.inline.ca == b"", "the CAs of the system"
    assert len(found.files) == 3


def test_several_files_are_merged_as_kubectl_merges_them(tmp_path):
    """The first file that sets a value counts."""
    first = written(tmp_path / "1" / "k", {"tokenFile": "token"}, contexts=None)
    second = written(tmp_path / "2" / "k", {"token": "another"}, {"server": "https://b.example"})
    third = written(tmp_path / "3" / "k", contexts=[{"name": "y", "context": {"cluster": "c"}}])
    (tmp_path / "1" / "token").write_text("mine")
    found = read(tmp_path / "missing", first, second, third)
    assert (found.inline.server, found.authorization) == ("https://a.example", "Bearer mine")
    assert read(first, second, third, context="y").authorization == ""
    third.write_text(json.dumps({"current-context": "y"}))
    assert (
        read(
            third,
            written(tmp_path / "4" / "k", contexts=[{"name": "y", "context": {"cluster": "c"}}]),
        ).inline.server
        == "https://a.example"
    )


@pytest.mark.parametrize(
    ("content", "clue"),
    [
        (f"token: {SECRET}: {SECRET}", "mapping values are not allowed here in line 1"),
        (f"a: b\nc: '{SECRET}", "found unexpected end of stream in line 2"),
        (f"a: *{SECRET[:3]}b", "undefined alias"),
        ("[" * 100_000, "recursion"),
        ("{}", "the file is empty"),
        (json.dumps([SECRET]), "not a valid kubeconfig"),
        ({"users": {SECRET: 1}}, "has an invalid value in users"),
        ({"users": [SECRET]}, "has an invalid value in users"),
        ({"users": [{"name": "u", "user": {"token": 17}}]}, "has an invalid value in token"),
        ({"users": [{"name": "u", "user": {"auth-provider": [SECRET]}}]}, "in auth-provider"),
        ({"users": [{"name": "v"}]}, "has 0 users with the name in its current context"),
        ({"contexts": [{"name": "x", "context": {}}]}, "has 0 clusters"),
    ],
)
def test_an_unusable_file_is_one_sentence_that_quotes_no_value(content, clue, tmp_path):
    path = tmp_path / "k"
    if isinstance(content, dict):
        written(path, **content)
    else:
        path.write_text(content)
    with pytest.raises(ConfigurationError) as refused:
        find_access(path, None, 1)
    message = refused.value.message
    assert message.startswith(f"cannot load kubeconfig {path}: ")
    assert message.endswith("; correct the file")
    assert clue in message
    assert SECRET not in message


def test_anchors_and_merge_keys_of_a_file_are_read(tmp_path):
    (tmp_path / "k").write_text(
        f"base: &base {{certificate-authority-data: {PEM}}}\n"
        "clusters: [{name: c, cluster: {<<: *base, server: 'https://a.example'}}]\n"
        "contexts: [{name: x, context: {cluster: c}}]\n"
        "current-context: x\n"
    )
    assert read(tmp_path / "k").inline.ca == CA
