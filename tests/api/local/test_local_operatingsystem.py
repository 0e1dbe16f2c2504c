"""LocalOperatingSystem: user data for new machines, additions for machines that run."""

from __future__ import annotations

import pytest

from actuator.interface import Resource
from actuator.meta import Base64
from actuator.v1alpha1 import OperatingSystemConfig
from extensions.local.operatingsystem import LocalOperatingSystem
from tests.support.cluster.harness import eventually
from tests.support.samples.local import assert_configuration_problem, change, error, force

SECRETS = Resource("v1", "secrets")


@pytest.fixture(autouse=True)
def actuator(start) -> None:
    start(LocalOperatingSystem())


def file(path: str, **content: object) -> dict:
    return {"path": path, "content": content}


def inline(data: str, encoding: str = "") -> dict:
    return {"encoding": encoding, "data": data}


def user_data(looking_at) -> str:
    reference = looking_at.status()["cloudConfig"]["secretRef"]
    secret = looking_at.client.get(SECRETS, reference["name"], reference["namespace"])
    return Base64(secret["data"]["cloud_config"]).decode_bytes().decode()


def encoded(data: bytes) -> str:
    return str(Base64.encode_bytes(data))


def keep_secret(seed, **data: bytes) -> None:
    manifest = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "kept", "namespace": seed.namespace},
        "data": {key: encoded(value) for key, value in data.items()},
    }
    seed.client.create(SECRETS, manifest)


def test_a_purpose_that_is_not_supported_is_refused(deploy):
    config = deploy(OperatingSystemConfig, ready=False, purpose="rescue")
    assert_configuration_problem(config, "spec.purpose: 'rescue' is not supported")
    config.delete()
    eventually(config.is_gone)


def test_units_and_files_become_user_data(deploy, seed):
    keep_secret(seed, key=b"s3cret")
    files = [
        file("/etc/plain", inline=inline("plain")),
        file("/etc/coded", inline=inline(encoded(b"coded"), "b64")),
        file("/etc/kept", secretRef={"name": "kept", "dataKey": "key"}),
    ]
    config = deploy(OperatingSystemConfig, files=files, units=[{"name": "a.service"}])
    text = user_data(config)
    for path, data in {"plain": b"plain", "coded": b"coded", "kept": b"s3cret"}.items():
        assert f"echo {encoded(data)} | base64 -d > /etc/{path}\n" in text
    assert "systemctl enable a.service" in text
    written = str(config.get())
    assert "s3cret" not in written
    assert encoded(b"s3cret") not in written
    assert "extensionFiles" not in config.status()


def test_a_change_changes_the_user_data(deploy):
    config = deploy(OperatingSystemConfig, files=[file("/etc/a", inline=inline("1"))])
    before = user_data(config)
    change(config, files=[file("/etc/a", inline=inline("2"))])
    assert user_data(config) != before
    assert encoded(b"2") in user_data(config)


def test_a_machine_that_runs_gets_additions_in_the_status(deploy):
    cri = {"name": "containerd"}
    config = deploy(OperatingSystemConfig, purpose="reconcile", criConfig=cri)
    (unit,) = config.status()["extensionUnits"]
    assert unit["name"] == "containerd.service"
    assert [extension_file["path"] for extension_file in config.status()["extensionFiles"]] == [
        "/etc/local-os-release"
    ]
    assert "cloudConfig" not in config.status()


def test_a_secret_that_is_not_there_is_named_and_waited_for(deploy, seed):
    files = [file("/etc/kept", secretRef={"name": "kept", "dataKey": "key"})]
    config = deploy(OperatingSystemConfig, ready=False, files=files)
    assert f"Secret {seed.namespace}/kept" in error(config)["description"]
    keep_secret(seed, key=b"x")
    eventually(config.is_ready)
    assert encoded(b"x") in user_data(config)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (file("etc/a", inline=inline("")), ["spec.files[0].path", "'etc/a'"]),
        (file("/a", inline=inline("%", "b64")), ["spec.files[0].content.inline", "'b64'"]),
        (file("/a", inline=inline("", "zip")), ["spec.files[0].content.inline", "'zip'"]),
        (
            file("/a", imageRef={"image": "x", "filePathInImage": "y"}),
            ["spec.files[0].content", "image"],
        ),
    ],
)
def test_a_file_that_cannot_be_written_is_named(deploy, wrong, words):
    config = deploy(OperatingSystemConfig, ready=False, files=[wrong])
    assert_configuration_problem(config, *words)


def test_it_takes_no_configuration(deploy):
    config = deploy(OperatingSystemConfig, ready=False, providerConfig={"a": 1})
    assert_configuration_problem(config, "spec.providerConfig", "remove it")


@pytest.mark.parametrize("end", ["delete", "force"])
def test_nothing_stays_when_it_goes(deploy, end):
    config = deploy(OperatingSystemConfig)
    force(config) if end == "force" else config.delete()
    eventually(config.is_gone)
