"""`actuator image`: the Dockerfile, and that its files are enough to run an extension."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import yaml

from actuator.interface import Resource
from actuator.v1alpha1 import Extension
from extensions.networkfilter.actuator import NetworkFilter
from generic.library.charts import find_helm
from generic.library.charts.helm import helm_module
from generic.library.programs.golang import find_go
from hack.lock import requirements
from tests.support.cluster.harness import PATIENCE, eventually
from tests.support.cluster.shoot_extension import Extended, shoot_managers
from tests.support.landscape.chart import GARDENLET, rendered
from tests.support.objects.present import present
from tests.support.pages.commands import run_command
from tests.support.pages.dockerfile import Builder, BuildError, Image

ROOT = Path(__file__).parents[3]
UNPRIVILEGED = 65532
PROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "mine"
version = "1.0"
dependencies = ["gardener-actuator"]
[project.optional-dependencies]
aws = ["botocore"]
[tool.hatch.build.targets.wheel]
packages = ["mine"]
"""
MODULE = """
from actuator import Actuator
from actuator.v1alpha1 import Infrastructure
import botocore

class Network(Actuator[Infrastructure]):
    def reconcile(self, ctx, infrastructure, cluster): ...
    def delete(self, ctx, infrastructure, cluster): ...

def extension(manager):
    manager.add(Network(), type="mine")
"""


def wheel(project: Path, into: Path) -> Path:
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", f"--outdir={into}"]
    subprocess.run([*build, project], check=True, capture_output=True, timeout=300)
    return max(into.glob("*.whl"), key=lambda path: path.stat().st_mtime_ns)


@pytest.fixture(scope="module")
def work():
    """A folder that others may look into, as they may into an image."""
    with tempfile.TemporaryDirectory(prefix="image-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture(scope="module")
def framework(work) -> Path:
    return wheel(ROOT, work / "wheels")


def as_unprivileged() -> dict:
    """The arguments that start a process as the image's user, where this one may do that."""
    return (
        {"user": UNPRIVILEGED, "group": UNPRIVILEGED, "extra_groups": []}
        if os.geteuid() == 0
        else {}
    )


@pytest.fixture(scope="module")
def bases(work) -> dict[str, Image]:
    """In place of the base images: a Python that the image's user may run, and Go."""
    base = Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}"
    tried = [str(base), "/usr/bin/python3"]
    for python in tried:
        try:
            subprocess.run(
                [python, "-c", "import venv"], check=True, timeout=60, **as_unprivileged()
            )
            break
        except (OSError, subprocess.CalledProcessError):
            continue
    else:
        pytest.fail(f"user {UNPRIVILEGED} may run none of {tried}")
    programs = work / "base" / "bin"
    programs.mkdir(parents=True)
    for name, program in (("python", python), ("pip", f"{sys.executable} -m pip")):
        (programs / name).write_text(f'#!/bin/sh\nexec {program} "$@"\n')
        (programs / name).chmod(0o755)
    (work / "base" / "go" / "usr" / "local").mkdir(parents=True)
    goroot = find_go(helm_module().go_version).resolve().parents[1]
    (work / "base" / "go" / "usr" / "local" / "go").symlink_to(goroot)
    (work / "base" / "empty").mkdir()
    env = {"PATH": f"{programs}:{os.defpath}"}
    return {"base": Image(work / "base" / "empty", env), "go": Image(work / "base" / "go", env)}


def project(folder: Path, *wheels: Path, requirements: str) -> Path:
    (folder / "dist").mkdir(parents=True)
    for path in wheels:
        shutil.copy(path, folder / "dist")
    (folder / "requirements.txt").write_text(requirements)
    return folder


LOCK = requirements()


def write(folder: Path, *arguments: str, status: int = 0) -> str:
    """Run `actuator image`; return its stderr."""
    return run_command("image", *arguments, "--output", folder, status=status).stderr


def start(image: Image, *arguments: str, **env: str) -> subprocess.Popen[str]:
    """Start it as the kubelet does: the image's variables, its user, nothing else."""
    names = [image.entrypoint[0], *image.entrypoint[1:], *(arguments or image.command)]
    return subprocess.Popen(
        names,
        cwd=f"{image.files}{image.directory}",
        env={**image.env, **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        **as_unprivileged(),
    )


def output_of(image: Image, *arguments: str) -> str:
    process = start(image, *arguments)
    output, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, output
    return output


def programs_of(image: Image) -> set[str]:
    """Programs that a container could run, beside those of the base image."""
    found = {path.name for path in image.files.rglob("bin/*")}
    assert not found & {"go", "gcc", "cc", "ld", "make", "pip", "pip3"}
    assert not (image.files / "src").exists()
    return found


@pytest.fixture(scope="module")
def image(work, framework, bases) -> Image:
    """An author's project, which depends on the framework's wheel; the lock has its hash."""
    source = work / "source"
    (source / "mine").mkdir(parents=True)
    (source / "pyproject.toml").write_text(PROJECT)
    (source / "mine" / "__init__.py").write_text(MODULE)
    digest = hashlib.sha256(framework.read_bytes()).hexdigest()
    lock = f"{LOCK}\ngardener-actuator==0.1.0 --hash=sha256:{digest}\n"
    context = project(work / "author", wheel(source, work / "own"), framework, requirements=lock)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(source)
        write(context, "mine:extension", "--extra", "aws", "--helm")
        patch.setenv("ACTUATOR_HELM", str(find_helm(print)))  # to build it takes minutes
        return Builder(context, work / "stages", bases).build()


@pytest.mark.long
def test_an_image_has_the_project_the_samples_and_the_extra_of_both_wheels(image):
    assert programs_of(image) >= {"actuator", "helm"}
    assert image.command == ["run", "mine:extension"]
    assert "--leader-election" in output_of(image, *image.command, "--help")
    for module in ("mine", "extensions.aws"):
        assert "infrastructures" in output_of(image, "rbac", f"{module}:extension")


@pytest.mark.long
def test_an_image_has_helm_where_it_is_asked_for(image):
    code = "from generic.library.charts import find_helm; print(find_helm(print))"
    found = subprocess.run(
        [image.files / "opt/extension/bin/python", "-c", code],
        env={**image.env, "PATH": f"{image.files}/usr/local/bin:{image.env['PATH']}"},
        check=True,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        **as_unprivileged(),
    )
    assert found.stdout.strip() == f"{image.files}/usr/local/bin/helm"


@pytest.mark.long
def test_an_image_runs_a_manager_and_nothing_is_written_into_it(
    work, image, admin, seed, environment, namespace
):
    """As the chart's user, on files of root; the kubeconfig stands for the account of a pod."""
    before = files_of(image)
    if os.geteuid():  # then these files are ours
        for path in [image.files, *image.files.rglob("*")]:
            if not path.is_symlink():
                path.chmod(path.stat().st_mode & ~0o222)
    kubeconfig, images = mounted(work / "mounted", environment.kubeconfig)
    arguments = ["run", "extensions.networkfilter:extension", "--kubeconfig", str(kubeconfig)]
    ports = ["--metrics-bind-address=:0", "--health-bind-address=:0"]
    process = start(image, *arguments, *ports, IMAGEVECTOR_OVERWRITE=str(images))
    try:
        with shoot_managers(admin, namespace) as shoots:
            extended = Extended(seed, shoots, Extension)
            extended.deploy("reconcile", type="networking-filter")

            def ready():
                assert process.poll() is None, present(process.stdout).read()
                return extended.is_ready()

            eventually(ready)
            [secret] = extended.managed(NetworkFilter.managed_name)["spec"]["secretRefs"]
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
    finally:
        process.kill()
        process.communicate()
    data = extended.client.get(Resource("v1", "secrets"), secret["name"], namespace)["data"]
    assert b"mirror/filter:2" in b"".join(base64.b64decode(item) for item in data.values())
    assert files_of(image) == before


def mounted(folder: Path, source: Path) -> tuple[Path, Path]:
    """A kubeconfig and an image vector, as volumes for the image's user."""
    folder.mkdir(mode=0o755)
    kubeconfig = folder / "kubeconfig"
    images = folder / "images.yaml"
    kubeconfig.touch(mode=0o600)
    kubeconfig.write_bytes(source.read_bytes())
    if not os.geteuid():
        os.chown(kubeconfig, UNPRIVILEGED, UNPRIVILEGED)
    entry = {"name": "network-filter", "ref": "mirror/filter:2"}
    images.write_text(yaml.dump({"images": [entry]}))
    return kubeconfig, images


def files_of(image: Image) -> dict[str, int]:
    return {str(path): path.lstat().st_mtime_ns for path in image.files.rglob("*")}


@pytest.fixture
def build(work, framework, bases, tmp_path):
    """Builds the AWS sample's image with this lock."""

    def make(requirements: str, *extras: str) -> Image:
        context = project(tmp_path / "context", framework, requirements=requirements)
        write(context, "extensions.aws:extension", *(f"--extra={extra}" for extra in extras))
        return Builder(context, tmp_path / "stages", bases).build()

    return make


def of_lock(name: str) -> str:
    [found] = re.findall(rf"^{name}==(?:.+\\\n)*.+\n", LOCK, re.MULTILINE)
    return found


@pytest.mark.parametrize("extras", [(), ("aws",), ("aws", "database")])
def test_a_dependency_that_the_lock_lacks_ends_the_build(extras, build):
    with pytest.raises(BuildError, match=r"No matching distribution found for (?!gardener)"):
        build(of_lock("attrs"), *extras)


def test_a_dependency_with_another_hash_ends_the_build(build):
    wrong = re.sub("sha256:[0-9a-f]{8}", "sha256:00000000", of_lock("attrs"))
    with pytest.raises(BuildError, match="DO NOT MATCH THE HASHES"):
        build(wrong)


def test_two_versions_of_a_wheel_end_the_build(work, bases, tmp_path):
    source = tmp_path / "source"
    (source / "mine").mkdir(parents=True)
    (source / "mine" / "__init__.py").touch()
    wheels = []
    for version in ("9.0", "10.0"):
        text = PROJECT.replace("1.0", version).replace('"gardener-actuator"', "")
        (source / "pyproject.toml").write_text(text)
        wheels.append(wheel(source, tmp_path / "wheels"))
    context = project(tmp_path / "context", *wheels, requirements=of_lock("attrs"))
    write(context, "extensions.aws:extension")
    with pytest.raises(BuildError, match=r"Cannot install mine 10\.0.* and mine 9\.0"):
        Builder(context, work / "two-versions", bases).build()


@pytest.fixture
def written(tmp_path) -> str:
    """The Dockerfile of the default."""
    write(tmp_path, "extensions.aws:extension")
    return (tmp_path / "Dockerfile").read_text()


def test_the_image_has_the_user_and_the_program_that_the_chart_expects(written, tmp_path):
    flags = ("--output", tmp_path, "--name", "mine")
    run_command("chart", "extensions.aws:extension", *flags)
    objects = rendered(tmp_path / "mine", "default", GARDENLET)
    [pod] = [
        object_["spec"]["template"]["spec"]
        for object_ in objects
        if object_["kind"] == "Deployment"
    ]
    security = pod["securityContext"]
    assert f"\nUSER {security['runAsUser']}:{security['runAsGroup']}\n" in written
    program, _ = pod["containers"][0]["command"]
    assert f'\nENTRYPOINT ["{program}"]\n' in written
    [mount] = [
        volume_mount
        for volume_mount in pod["containers"][0]["volumeMounts"]
        if volume_mount["name"] == "tmp"
    ]
    assert f" HOME={mount['mountPath']} " in written


def test_the_base_images_are_new_enough_and_where_tools_find_them(written):
    """Dependabot reads FROM lines, not the arguments that they refer to."""
    bases = re.findall(r"^FROM (\S+:\S+) AS (base|go)$", written, re.MULTILINE)
    (python, _), (go, _) = [(re.findall(r"\d+", image), stage) for image, stage in bases]
    assert tuple(map(int, python)) >= (3, 11)
    assert tuple(map(int, go)) >= helm_module().go_version[:2]
    others = re.findall(r"^FROM ([^\s:]+)(?: AS .*)?$", written, re.MULTILINE)
    assert others == ["base", "build", "base", "base", "with-helm-${HELM}"]
    assert "\nARG HELM=no\n" in written
    assert "\nFROM base AS with-helm-no\n\nFROM" in written  # nothing is added


def pinned(folder: Path, **digests: str) -> None:
    """Give these base images a digest, as Dependabot does."""
    text = (folder / "Dockerfile").read_text()
    for stage, digest in digests.items():
        text = re.sub(rf"\n(FROM .+) AS {stage}\n", rf"\n\1{digest} AS {stage}\n", text)
    (folder / "Dockerfile").write_text(text)


DIGEST = "@sha256:" + "0123456789abcdef" * 4


@pytest.mark.parametrize(
    ("helm", "digests", "stage"),
    [
        ((), {}, "base"),
        ((), {"base": "@sha256:abc"}, "base"),
        ((), {"base": DIGEST.upper()}, "base"),
        ((), {"go": DIGEST}, "base"),
        (("--helm",), {"base": DIGEST}, "go"),
        ((), {"base": DIGEST}, ""),
        (("--helm",), {"base": DIGEST, "go": DIGEST}, ""),
    ],
)
def test_each_base_image_that_is_used_needs_a_digest(written, tmp_path, helm, digests, stage):
    pinned(tmp_path, **digests)
    flags = (*helm, "--require-digests")
    error = write(tmp_path, "extensions.aws:extension", *flags, status=1 if stage else 0)
    assert not stage or f" AS {stage}: no digest; append @sha256:DIGEST, which `docker" in error


def test_base_images_are_kept_and_everything_else_is_written_again(written, tmp_path):
    pinned(tmp_path, base=DIGEST)
    mirrored = (tmp_path / "Dockerfile").read_text().replace("golang:1.26", "mirror:5000/go:2")
    (tmp_path / "Dockerfile").write_text(mirrored + "# an edit\n")
    write(tmp_path, "extensions.aws:extension")
    assert (tmp_path / "Dockerfile").read_text() == mirrored


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["no_such_module:extension"], 1, "no_such_module"),
        (["json:dumps"], 1, "json:dumps: TypeError: Object of type Manager"),
        (["extensions.aws:__doc__"], 1, "expected an Actuator or a function of a Manager, got str"),
        (["extensions.aws:extension", "--extra", 'sec rets"'], 2, "expected an extra"),
    ],
)
def test_invalid_arguments_write_no_dockerfile(arguments, status, words, tmp_path):
    assert words in write(tmp_path, *arguments, status=status)
    assert list(tmp_path.iterdir()) == []


def test_an_actuator_without_types_gets_a_dockerfile(tmp_path):
    write(tmp_path, "extensions.networkfilter:NetworkFilter")
    assert '"extensions.networkfilter:NetworkFilter"' in (tmp_path / "Dockerfile").read_text()


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    error = write(tmp_path / "file" / "x", "extensions.aws:extension", status=1)
    assert "cannot write" in error


def test_the_command_lists_the_files_it_wrote(command, tmp_path):
    done = command("image", "extensions.aws:extension", "--output", tmp_path / "new")
    written = {Path(line) for line in done.stdout.splitlines()}
    assert written == set((tmp_path / "new").iterdir())
    assert {path.name for path in written} == {"Dockerfile", "Dockerfile.dockerignore"}
    assert not any("@" in path.read_text().replace("@sha256", "") for path in written)
