"""`actuator new`: each variant (kind, in the shoot, admission) is clean, and its unit tests pass.

`tests/e2e/generic/test_new_projects.py` runs the drills of some variants.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from actuator.v1alpha1 import KINDS
from generic.library import ExternalResourceActuator, GenericBackupEntry
from generic.library.controlplane import GenericControlPlane
from generic.library.managedresources import ManagedResourceActuator
from generic.library.webhooks import ConfigAdmission
from generic.library.webhooks.places import IN_SHOOT
from generic.library.worker import GenericWorker
from generic.manager.manager import Manager
from generic.manager.options import Options
from generic.tools.packaging.projects import Project
from tests.support.suite.isolation import isolated

CACHE = Path(__file__).parents[3] / ".mypy_cache" / "projects"
EVERYTHING = tuple(kind.KIND.name for kind in KINDS)
PLACES = {place.kind for place in IN_SHOOT}
MANIFESTS = {"ContainerRuntime", "Extension", "Network"}
ALWAYS = {
    "BackupEntry": GenericBackupEntry,
    "ControlPlane": GenericControlPlane,
    "Worker": GenericWorker,
}


def variants() -> Iterator[Project]:
    for kind in EVERYTHING:
        for in_shoot in sorted({False, kind in MANIFESTS}):
            for admission in sorted({False, kind in PLACES}):
                name = f"p-{kind.lower()}{'-shoot' * in_shoot}{'-adm' * admission}"
                yield Project(1, name, (kind,), (), in_shoot=in_shoot, admission=admission)
    yield Project(1, "p-own", (), ("Peering",))
    yield Project(1, "p-own-in-shoot", (), ("Peering",), in_shoot=True).completed()
    yield Project(1, "p-all", EVERYTHING, ("Peering", "Route"))
    features = {"webhooks": True, "in_shoot": True, "admission": True}
    yield Project(1, "p-all-features", EVERYTHING, ("Peering",), **features)


VARIANTS = {project.name: project for project in variants()}


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> dict[str, Path]:
    """The project of each variant, by its name."""
    root = tmp_path_factory.mktemp("variants")
    for name, project in VARIANTS.items():
        assert project.problem() == ""
        (root / name).mkdir()
        project.render(root / name)
    return {name: root / name for name in VARIANTS}


def run(folder: Path, *command: str, **env: str) -> str:
    """Run a Python module; return its output if it fails."""
    line = [sys.executable, "-Bm", *command]
    done = subprocess.run(
        line, cwd=folder, env=os.environ | env, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr if done.returncode else ""


def test_each_variant_passes_lint(folders):
    root = folders["p-own"].parent
    assert run(root, "ruff", "check", "--no-cache") == ""
    assert run(root, "ruff", "format", "--check", "--no-cache") == ""


def test_each_variant_passes_strict_type_checks(folders):
    files = [str(path) for folder in folders.values() for path in folder.rglob("*.py")]
    assert len(files) > 5 * len(folders)
    assert run(folders["p-own"].parent, "mypy", "--strict", f"--cache-dir={CACHE}", *files) == ""


def test_the_unit_tests_of_each_variant_pass(folders):
    tests = [str(folder / "tests") for folder in folders.values()]
    paths = os.pathsep.join(map(str, folders.values()))
    options = ("-q", "-p", "no:cacheprovider", "-k", "not force_deletion")
    assert run(folders["p-own"].parent, "pytest", *options, *tests, PYTHONPATH=paths) == ""


def expected(project: Project, kind: str) -> type:
    """The base class of the actuator of a kind."""
    in_shoot = ManagedResourceActuator if project.in_shoot and kind in MANIFESTS else None
    return in_shoot or ALWAYS.get(kind, ExternalResourceActuator)


@pytest.mark.parametrize("name", VARIANTS)
def test_actuators_derive_from_the_generic_ones_and_admissions_have_all_configurations(
    folders, monkeypatch, name
):
    project = VARIANTS[name]
    with isolated():
        monkeypatch.syspath_prepend(folders[name])
        package = import_module(project.package)
        manager = Manager(Options())
        package.extension(manager)
        kinds = {*project.kinds, *project.own_kinds}
        assert {item.kind.name for item in manager.registrations} == kinds
        for kind in kinds:
            module = import_module(f"{project.package}.{kind.lower()}")
            actuator = getattr(module, f"{kind}Actuator")
            assert issubclass(actuator, expected(project, kind)), kind
        if not project.admission:
            assert not (folders[name] / project.package / "admission.py").exists()
            return
        garden = Manager(Options())
        import_module(f"{project.package}.admission").admission(garden)
        admitted = {item.kind.KIND.name for item in garden.admissions}
        assert all(isinstance(item, ConfigAdmission) for item in garden.admissions)
        assert admitted == PLACES & {*project.kinds}


@pytest.mark.parametrize("name", ["p-infrastructure", "p-all-features"])
def test_another_process_uses_the_cloud_of_a_rehearsal(folders, monkeypatch, tmp_path, name):
    """As the scenario migration and crash tests do."""
    project = VARIANTS[name]
    with isolated():
        monkeypatch.syspath_prepend(folders[name])
        cloud = import_module(f"{project.package}.cloud")
        found = vars(import_module(f"{project.package}.rehearsal"))
        [rehearsal] = [found[key] for key in found if re.match("P.*Rehearsal$", key)]
        first, second = rehearsal(), rehearsal()
        first.start(tmp_path)
        second.attach(json.loads(json.dumps(first.share())))
        second.cloud.put(cloud.VALID_KEY, "Network.shoot--a--b.x")
        assert [item.id for item in first.remaining_resources()] == ["Network.shoot--a--b.x"]


def test_a_project_without_a_cloud_or_programs_has_no_module_for_them(folders):
    def files(name: str) -> set[str]:
        return {path.name for path in (folders[name] / VARIANTS[name].package).iterdir()}

    either = {"cloud.py", "images.yaml"}
    assert files("p-worker") & either == {"cloud.py"}
    for name in ("p-extension-shoot", "p-controlplane"):
        assert files(name) & either == {"images.yaml"}
