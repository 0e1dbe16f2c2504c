"""A garden is a real one: Gardener's own programs reconcile, default and refuse."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

from actuator import Resource
from actuator.errors import ApiError, NotFound
from generic.kube.clusters import NAMESPACES
from generic.library.programs.errors import EnvtestError
from generic.library.programs.processes import Processes
from generic.testing.landscape.garden import SHOOTS, running_garden
from generic.testing.landscape.gardenobjects import CORE, project
from generic.testing.landscape.programs import find_gardener, gardener_version
from tests.support.cluster.harness import eventually
from tests.support.objects.garden import VERSION, shoot

PROJECTS = Resource(CORE, "projects", namespaced=False)
CLOUD_PROFILES = Resource(CORE, "cloudprofiles", namespaced=False)


def test_gardener_serves_its_apis_in_the_version_that_go_mod_pins(garden):
    assert garden.client.list(SHOOTS) == []
    served = json.loads(garden.client.send("GET", "/apis"))["groups"]
    assert {"core.gardener.cloud", "operations.gardener.cloud"} <= {item["name"] for item in served}
    asked = [find_gardener(print), "gardener-apiserver", "--version"]
    answer = subprocess.run(
        [*map(str, asked)], capture_output=True, check=True, text=True, timeout=60
    )
    assert answer.stdout.split()[-1] == gardener_version()


def test_a_project_becomes_ready_and_gets_its_namespace(garden):
    garden.apply([project("reconciled")])
    eventually(lambda: garden.client.get(PROJECTS, "reconciled")["status"]["phase"] == "Ready")
    labels = garden.client.get(NAMESPACES, "garden-reconciled")["metadata"]["labels"]
    assert labels["project.gardener.cloud/name"] == "reconciled"


def test_a_deleted_project_takes_its_namespace_with_it(garden):
    garden.apply([project("leaving")])
    eventually(lambda: garden.client.get(PROJECTS, "leaving")["status"]["phase"] == "Ready")
    confirmed = {"confirmation.gardener.cloud/deletion": "true"}
    garden.client.patch(PROJECTS, "leaving", "", {"metadata": {"annotations": confirmed}})
    garden.client.delete(PROJECTS, "leaving")
    eventually(lambda: is_gone(garden, PROJECTS, "leaving"), 60)
    assert is_gone(garden, NAMESPACES, "garden-leaving")


def is_gone(garden, resource, name):
    try:
        garden.client.get(resource, name)
    except NotFound:
        return True
    return False


@pytest.mark.usefixtures("offered")
def test_a_cloud_profile_is_stored_with_gardeners_defaults(garden):
    (version,) = garden.client.get(CLOUD_PROFILES, "local")["spec"]["kubernetes"]["versions"]
    assert version["version"] == VERSION
    (image,) = garden.client.get(CLOUD_PROFILES, "local")["spec"]["machineImages"]
    assert image["updateStrategy"] == "major"


@pytest.mark.usefixtures("offered")
@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"region": "elsewhere"}, 'spec.region: Unsupported value: "elsewhere"'),
        ({"kubernetes": {"version": "1.2.3"}}, "spec.kubernetes.version"),
        ({"networking": {"type": "local-net", "nodes": "x"}}, "spec.networking.nodes"),
    ],
)
def test_an_invalid_shoot_is_refused_in_gardeners_words(garden, change, said):
    with pytest.raises(ApiError) as caught:
        garden.client.create(SHOOTS, shoot(**change))
    assert said in str(caught.value)


@pytest.mark.usefixtures("offered")
def test_the_scheduler_reports_why_a_valid_shoot_has_no_seed(garden):
    garden.client.create(SHOOTS, shoot())
    looking = "mine", "garden-dev"
    operation = eventually(lambda: garden.client.get(SHOOTS, *looking)["status"]["lastOperation"])
    assert (operation["type"], operation["state"]) == ("Create", "Pending")
    assert operation["description"].startswith("Failed to schedule Shoot: ")
    confirmed = {"confirmation.gardener.cloud/deletion": "true"}
    garden.client.patch(SHOOTS, *looking, {"metadata": {"annotations": confirmed}})
    garden.client.delete(SHOOTS, *looking)


def test_files_with_credentials_are_the_users_alone(garden):
    folders = garden.processes.directory, garden.cluster.directory
    assert [oct(folder.stat().st_mode & 0o777) for folder in folders] == ["0o700", "0o700"]
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    private = [path for path in files if is_credential(path)]
    assert len(private) >= 8
    assert [path for path in private if path.stat().st_mode & 0o077] == []


def is_credential(path):
    if path.suffix == ".log" or path.stat().st_size > 100_000:
        return False
    names = ("PRIVATE KEY", "client-key-data", "system:masters", "token:")
    return any(name in path.read_text(errors="replace") for name in names)


def test_a_second_garden_runs_beside_and_leaves_nothing(garden, processes_of):
    with closing(Processes(Path(tempfile.mkdtemp(prefix="actuator-landscape-")))) as processes:
        with running_garden(processes, print) as second:
            folders = processes.directory, second.cluster.directory
            assert second.client.list(SHOOTS) == []
            assert len(processes.alive()) == 4
        assert processes.alive() == []
    assert garden.client.list(SHOOTS) == []
    assert [processes_of(folder) for folder in folders] == [[], []]
    assert not any(folder.exists() for folder in folders)


def test_a_program_that_ends_is_named_with_the_end_of_its_log(tmp_path, monkeypatch, processes_of):
    program = tmp_path / "gardener"
    program.write_text("#!/bin/sh\necho no such flag\nexit 1\n")
    program.chmod(0o700)
    monkeypatch.setattr("generic.testing.landscape.garden.find_gardener", lambda _: program)
    folder = Path(tempfile.mkdtemp(prefix="actuator-landscape-"))
    with (
        closing(Processes(folder)) as processes,
        pytest.raises(EnvtestError) as caught,
        running_garden(processes, print),
    ):
        pass
    assert str(caught.value).startswith("gardener-apiserver ended with status 1; logs are in ")
    assert str(caught.value).endswith("\nno such flag")
    assert processes_of(folder) == []
    shutil.rmtree(f"{folder}-logs")
