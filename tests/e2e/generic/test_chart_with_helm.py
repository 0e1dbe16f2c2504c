"""Charts of several extensions, installed by helm on one cluster: they share a definition."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from actuator.errors import NotFound
from actuator.meta import Raw
from generic.kube.client import HttpClient, connect
from generic.library.charts import find_helm
from generic.reconciler.orphans import ORPHANS, RECORD_KINDS
from generic.testing.envtest import Environment
from generic.testing.seed import CRDS, install_crds
from tests.support.cluster.harness import eventually
from tests.support.landscape.chart import definitions, remove_definition

NAME = str(ORPHANS)
NETWORK_FILTER = "extensions.networkfilter:extension"


@pytest.fixture(scope="module")
def bare() -> Iterator[Environment]:
    """A cluster without any CRD."""
    with Environment() as environment:
        yield environment


@pytest.fixture
def admin(bare) -> Iterator[HttpClient]:
    """Its administrator; the definition of Orphan is gone after each test."""
    client = connect(bare.kubeconfig)
    yield client
    try:
        remove_definition(client, NAME)
    except NotFound:
        return
    eventually(lambda: NAME not in definitions(client))


@pytest.fixture
def helm(bare, command, tmp_path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs helm for the release of an extension, in a namespace of the same name."""
    for name in ("one", "two"):
        command("chart", NETWORK_FILTER, "--name", name, "--output", tmp_path)

    def run(verb: str, release: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        given: list[str | Path] = [find_helm(print), verb, release, *arguments]
        if verb != "uninstall":
            given.insert(3, tmp_path / release)
        given += ["--namespace", release, "--kubeconfig", bare.kubeconfig]
        return subprocess.run(given, capture_output=True, text=True, timeout=120, check=False)

    return run


@pytest.fixture
def succeeds(helm) -> Iterator[Callable[..., None]]:
    """Runs helm, which has to succeed; releases are gone afterwards."""

    def run(verb: str, release: str, *arguments: str) -> None:
        done = helm(verb, release, *arguments)
        assert done.returncode == 0, done.stderr

    yield run
    for release in ("one", "two"):
        helm("uninstall", release, "--no-hooks", "--ignore-not-found")


def owner(admin: HttpClient) -> str | None:
    annotations: Raw = admin.get(CRDS, NAME)["metadata"].get("annotations") or {}
    return annotations.get("meta.helm.sh/release-name")


def change(admin: HttpClient) -> None:
    """The definition is an older one."""
    admin.patch(CRDS, NAME, "", {"spec": {"names": {"shortNames": ["old"]}}})


def is_old(admin: HttpClient) -> bool:
    names: Raw = admin.get(CRDS, NAME)["spec"]["names"]
    return names.get("shortNames") == ["old"]


def test_the_first_release_owns_the_definition_and_updates_it_and_no_other_does(admin, succeeds):
    succeeds("install", "one", "--create-namespace")
    succeeds("install", "two", "--create-namespace")
    assert owner(admin) == "one"
    change(admin)
    succeeds("upgrade", "two")
    assert is_old(admin)
    succeeds("upgrade", "one")
    assert not is_old(admin)


def test_a_definition_outlives_the_release_that_owns_it_and_a_new_install_takes_it_back(
    admin, succeeds
):
    succeeds("install", "one", "--create-namespace")
    succeeds("install", "two", "--create-namespace")
    succeeds("uninstall", "one", "--no-hooks")
    assert NAME in definitions(admin)
    succeeds("upgrade", "two")
    succeeds("install", "one")
    change(admin)
    succeeds("upgrade", "one")
    assert not is_old(admin)


def test_a_definition_that_kubectl_or_gardener_applied_is_left_to_them(admin, succeeds):
    install_crds(admin, [*RECORD_KINDS])
    change(admin)
    succeeds("install", "one", "--create-namespace")
    assert owner(admin) is None
    assert is_old(admin)


def test_a_value_makes_a_release_take_the_definition_over_or_leave_it_out(admin, helm, succeeds):
    succeeds("install", "one", "--create-namespace", "--set", "crds=never")
    assert NAME not in definitions(admin)
    succeeds("upgrade", "one", "--set", "crds=auto")
    always = ("--create-namespace", "--set", "crds=always")
    refused = helm("install", "two", *always)
    assert "cannot be imported into the current release" in refused.stderr
    succeeds("install", "two", *always, "--take-ownership")
    assert owner(admin) == "two"
    succeeds("upgrade", "one")
    assert owner(admin) == "two"
    assert NAME in definitions(admin), "kept, although it is no longer part of release one"


def test_another_value_is_refused_by_name(helm, admin):
    done: Any = helm("install", "one", "--create-namespace", "--set", "crds=sometimes")
    assert done.returncode != 0
    assert "crds: expected auto, always or never, got sometimes" in done.stderr
