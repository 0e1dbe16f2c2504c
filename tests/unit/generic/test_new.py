"""`actuator new`: projects are clean, tools find mistakes in them, updates keep changes.

`tests/e2e/generic/test_new_projects.py` runs the tests of a project."""

import ast
import hashlib
import json
import os
import shutil
import subprocess
import sys
import zipfile
from importlib import import_module
from pathlib import Path

import pytest
import yaml

from actuator.v1alpha1 import KINDS
from generic.manager.manager import Manager
from generic.manager.options import Options
from generic.tools.packaging import projects
from tests.support.pages.commands import run_command
from tests.support.suite.isolation import isolated

KINDS_OF_PROJECT = ("--kind", "Infrastructure", "--kind", "Worker", "--own-kind", "Peering")
WITH_WEBHOOKS = (*KINDS_OF_PROJECT, "--webhooks")
CACHE = Path(__file__).parents[3] / ".mypy_cache" / "projects"
EVERYTHING = [kind.KIND.name for kind in KINDS]


def new(*arguments):
    """Run the command; return its output."""
    done = run_command("new", *arguments)
    return done.stdout + done.stderr


def refused(*arguments):
    """Return the error with which the command exits."""
    return run_command("new", *arguments, status=1).stderr.strip().removeprefix("Error: ")


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A project with kinds of Gardener and of its own, and a webhook."""
    folder = tmp_path_factory.mktemp("projects") / "multi-cloud"
    new("multi-cloud", *WITH_WEBHOOKS, "--output", folder)
    return folder


# Each mistake in the actuator of a project: a text, its replacement, and the tools that find it.
PARAMETERS = "(self, ctx: Context, obj: Infrastructure, cluster: Cluster)"
FOUND = PARAMETERS.replace("cluster: Cluster", "found: ExternalResource")
SIGNATURE = f"def delete_resource{FOUND} -> None:"
MISSPELT = f"    def migrat{PARAMETERS} -> None: ...\n\n    {SIGNATURE}"
REQUEST = "        self.cloud.put"
MISTAKES = {
    "misspelt_override": (f"    {SIGNATURE}", MISSPELT, {"add"}),
    "missing_delete": ("def delete_resource", "def remove", {"mypy", "pyright", "add"}),
    "wrong_parameter": (
        SIGNATURE,
        SIGNATURE.replace("obj: Infrastructure", "obj: Worker"),
        {"mypy", "pyright"},
    ),
    "wrong_return": (SIGNATURE, SIGNATURE.replace("None", "bool"), {"mypy", "pyright"}),
    "async_method": (SIGNATURE, f"async {SIGNATURE}", {"mypy", "pyright", "add"}),
    "unknown_status_field": (
        REQUEST,
        f"        obj.status.vpc = id\n{REQUEST}",
        {"mypy", "pyright"},
    ),
    "written_spec": (REQUEST, f'        obj.spec.region = "here"\n{REQUEST}', {"mypy", "pyright"}),
    "missing_type": (', type="multi-cloud")', ")", {"add"}),
    "unknown_code": (
        REQUEST,
        f"        ctx.log.info(ErrorCode.ERR_INFRA_UNAUTHENTICATD)\n{REQUEST}",
        {"mypy", "pyright"},
    ),
}
ADDED = """

def extension(manager: Manager) -> None:
    manager.add(InfrastructureActuator(Cloud(Path())), type="multi-cloud")
"""
IMPORTS = """from pathlib import Path

from actuator import ErrorCode
from actuator.v1alpha1 import Worker
from generic import Manager
"""


@pytest.fixture(scope="module")
def planted(written, tmp_path_factory):
    """The project, and its actuator with each mistake."""
    root = tmp_path_factory.mktemp("planted") / "project"
    shutil.copytree(written, root)
    source = (root / "multi_cloud/infrastructure.py").read_text() + ADDED
    source = source.replace("from multi_cloud.cloud", f"{IMPORTS}\nfrom multi_cloud.cloud")

    (root / "mistakes").mkdir()
    for name, (text, other, _) in {**MISTAKES, "none": ("", "", set())}.items():
        assert text in source
        changed = source.replace(text, other) if text else source
        (root / "mistakes" / f"{name}.py").write_text(changed)
    (root / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}')
    return root


def mistaken(planted, reported):
    """The names of the planted files with errors; no other file may have one."""
    paths = {Path(path).relative_to(planted) for path in reported}
    assert {path.parts[0] for path in paths} <= {"mistakes"}, paths
    return {path.stem for path in paths}


def found_by(tool):
    return {name for name, (*_, tools) in MISTAKES.items() if tool in tools}


def run(folder, *command):
    line = [sys.executable, "-m", *command]
    return subprocess.run(line, cwd=folder, capture_output=True, text=True, check=False)


def test_projects_are_clean_and_mypy_finds_mistakes(planted):
    options = ("--strict", "--no-error-summary", f"--cache-dir={CACHE}")
    done = run(planted, "mypy", *options, "multi_cloud", "tests", "mistakes")
    errors = [line for line in done.stdout.splitlines() if ": error:" in line]
    assert mistaken(planted, [planted / line.partition(":")[0] for line in errors]) == found_by(
        "mypy"
    )


def test_projects_are_clean_and_pyright_finds_mistakes(planted):
    done = run(planted, "pyright", "--pythonpath", sys.executable, "--outputjson")
    found = json.loads(done.stdout)["generalDiagnostics"]
    files = [item["file"] for item in found if item["rule"] != "reportUnusedImport"]
    assert mistaken(planted, files) == found_by("pyright")


def test_projects_select_strict_checks_and_pass_lint(written):
    settings = (written / "pyproject.toml").read_text()
    assert "strict = true" in settings
    assert 'typeCheckingMode = "strict"' in settings
    assert run(written, "ruff", "check", "--no-cache").returncode == 0
    assert run(written, "ruff", "format", "--check", "--no-cache").returncode == 0


def test_manager_add_finds_mistakes(planted, monkeypatch):
    found = set()
    with isolated():
        monkeypatch.syspath_prepend(planted)
        for name in (*MISTAKES, "none"):
            module = import_module(f"mistakes.{name}")
            try:
                module.extension(Manager(Options()))
            except (TypeError, ValueError):
                found.add(name)
    assert found == found_by("add")


def test_each_mistake_is_found():
    assert all(tools for *_, tools in MISTAKES.values())


def test_projects_have_image_and_chart_with_permissions_and_own_kinds(written):
    chart = written / "chart/multi-cloud"
    assert "peerings.multi-cloud.example.org" in "".join(path.name for path in chart.rglob("crd-*"))
    assert (written / "Dockerfile").read_text().count("multi_cloud:extension") == 2
    registered = (written / "chart/controllerregistration.yaml").read_text()
    _, registration = yaml.safe_load_all(registered)
    kinds = [resource["kind"] for resource in registration["spec"]["resources"]]
    assert kinds == ["Infrastructure", "Worker"]
    assert "gardener-extension-multi-cloud" in (chart / "templates/service.yaml").read_text()


def test_a_project_without_webhooks_is_as_before_there_were_any(tmp_path):
    projects.Project(1, "acme", ("Infrastructure",), ()).render(tmp_path)
    texts = [path.read_text() for path in tmp_path.rglob("*") if path.is_file()]
    assert not any("webhook" in text for text in texts)


def test_no_file_names_the_machine(written):
    answers = yaml.safe_load((written / projects.ANSWERS).read_text())
    kinds = {"kinds": ["Infrastructure", "Worker"], "own_kinds": ["Peering"], "webhooks": True}
    assert answers == {"version": 1, "name": "multi-cloud", **kinds}
    files = [path for path in written.rglob("*") if path.is_file()]
    assert not [path for path in files if str(written) in path.read_text()]


def test_actions_have_the_digests_of_our_own_workflow(written):
    ours = "".join(path.read_text() for path in (CACHE.parents[1] / ".github/workflows").iterdir())
    lines = (written / ".github/workflows/ci.yml").read_text().splitlines()
    used = [line.strip() for line in lines if "uses:" in line]
    assert len(used) > 2
    assert [line for line in used if line not in ours] == []


def test_the_workflow_keeps_no_token_and_renews_its_cache_with_the_dependencies(written):
    workflow = yaml.safe_load((written / ".github/workflows/ci.yml").read_text())
    checkout, _, cache, *_ = workflow["jobs"]["check"]["steps"]
    assert checkout["with"] == {"persist-credentials": False}
    assert cache["with"]["key"] == "embedded-cluster-${{ hashFiles('requirements-dev.txt') }}"
    assert cache["with"]["key"].startswith(cache["with"]["restore-keys"])


def step(project, part, **env):
    """Run the one command of the project's workflow with this part, with this Python's programs."""
    steps = yaml.safe_load((project / ".github/workflows/ci.yml").read_text())["jobs"]["check"]
    [command] = [item["run"] for item in steps["steps"] if part in item.get("run", "")]
    programs = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    settings = {**os.environ, **env, "PATH": programs}
    shell = ["/bin/sh", "-c", command]
    done = subprocess.run(shell, cwd=project, env=settings, capture_output=True, check=False)
    return done.returncode, done.stderr.decode()


@pytest.fixture
def copied(written, tmp_path):
    return Path(shutil.copytree(written, tmp_path / "copy"))


def test_the_workflow_fails_until_the_base_image_has_a_digest(copied):
    status, error = step(copied, "actuator image")
    assert status == 1
    assert "Dockerfile: FROM python:3.13-slim AS base: no digest; append @sha256:DIGEST" in error
    assert "`docker buildx imagetools inspect python:3.13-slim` prints" in error
    edit(copied / "Dockerfile", (":3.13-slim AS", f":3.14-slim@sha256:{'0a' * 32} AS"))
    pinned = (copied / "Dockerfile").read_text()
    assert step(copied, "actuator image")[0] == 0
    assert (copied / "Dockerfile").read_text() == pinned


def write_wheel(path, name, version):
    """Write a wheel with nothing but its metadata."""
    folder = f"{name.replace('-', '_')}-{version}.dist-info"
    meta = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{folder}/METADATA", meta)
        archive.writestr(f"{folder}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(f"{folder}/RECORD", "")


def test_the_workflow_installs_only_packages_with_the_hash_of_the_lock(copied, tmp_path):
    wheel = tmp_path / "pinned-1.0-py3-none-any.whl"
    write_wheel(wheel, "pinned", "1.0")
    right = hashlib.sha256(wheel.read_bytes()).hexdigest()
    env = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path), "PIP_TARGET": str(tmp_path / "t")}
    assert (
        "No such file or directory: 'requirements-dev.txt'"
        in step(copied, "pip install --require", **env)[1]
    )
    for lock, problem in (
        (f"pinned==1.0 --hash=sha256:{right}", ""),
        (f"pinned==1.0 --hash=sha256:{'0' * 64}", "DO NOT MATCH THE HASHES"),
        ("pinned==1.0", "Hashes are required in --require-hashes mode"),
    ):
        (copied / "requirements-dev.txt").write_text(lock)
        status, error = step(copied, "require-hashes", **env)
        assert (status != 0, problem in error) == (bool(problem), True), error
    assert step(copied, "no-build-isolation", **env)[0] == 0, "without an index"


def test_the_workflow_uses_a_wheel_of_the_framework_that_is_not_on_an_index(copied, tmp_path):
    """`dist/` is in a clone of the project, but the wheels of the project are not."""
    (copied / "dist").mkdir()
    name = "gardener_actuator-9.0-py3-none-any.whl"
    write_wheel(copied / "dist" / name, "gardener-actuator", "9.0")
    digest = hashlib.sha256((copied / "dist" / name).read_bytes()).hexdigest()
    (copied / "requirements-dev.txt").write_text(f"gardener-actuator==9.0 --hash=sha256:{digest}")
    (copied / "dist" / "multi_cloud-1.0-py3-none-any.whl").touch()
    git(copied, "init", "--quiet")
    commit(copied)
    git(tmp_path, "clone", "--quiet", copied, tmp_path / "clone")
    assert [path.name for path in (tmp_path / "clone/dist").iterdir()] == [name]
    env = {"PIP_NO_INDEX": "1", "PIP_TARGET": str(tmp_path / "t")}
    assert step(tmp_path / "clone", "require-hashes", **env) == (0, "")


def test_one_command_locks_image_and_workflow_and_names_no_index(written):
    done = subprocess.run(
        ["make", "--dry-run", "lock"], cwd=written, capture_output=True, text=True, check=True
    )
    assert "://" not in done.stdout
    commands = [line.split() for line in done.stdout.splitlines() if line.startswith("uv ")]
    assert all({"--generate-hashes", "--no-emit-index-url"} <= {*command} for command in commands)
    written_to = [command[command.index("--output-file") + 1] for command in commands]
    assert written_to == ["requirements.txt", "requirements-dev.txt"]
    assert "--requirement=requirements.txt\n" in (written / "Dockerfile").read_text()


def test_dependabot_updates_digests_and_dependencies(written):
    updates = yaml.safe_load((written / ".github/dependabot.yml").read_text())["updates"]
    assert [update["package-ecosystem"] for update in updates] == [
        "docker",
        "github-actions",
        "pip",
    ]


def test_the_development_shoot_has_credentials_that_the_cloud_accepts(written):
    secret = yaml.safe_load((written / "shoot.yaml").read_text())
    assert secret["metadata"]["name"] == "cloudprovider"
    key = secret["stringData"]["apiKey"]
    assert f'VALID_KEY = "{key}"' in (written / "multi_cloud/cloud.py").read_text()


def test_git_ignores_the_states_of_shoots(written, tmp_path):
    git(tmp_path, "init", "--quiet")
    shutil.copy(written / ".gitignore", tmp_path)
    files = ["local.shootstate.json", "local.shootstate.new"]
    assert git(tmp_path, "check-ignore", *files).splitlines() == files


def test_names_that_modules_with_kinds_import_are_refused_as_kinds(tmp_path):
    features = {"webhooks": True, "in_shoot": True, "admission": True}
    project = projects.Project(1, "kindpackage", tuple(EVERYTHING), ("Package",), **features)
    project.render(tmp_path)
    modules = ("kindpackage/package.py", "tests/test_kindpackage.py")
    body = [node for name in modules for node in ast.parse((tmp_path / name).read_text()).body]
    names = {
        name.name
        for node in body
        if isinstance(node, ast.ImportFrom) and not str(node.module).startswith("kindpackage")
        for name in node.names
        if name.name[0].isupper()
    }
    names |= {ast.unparse(node.targets[0]) for node in body if isinstance(node, ast.Assign)}
    assert {"Path", "Cluster", "Schema", "Situation", "SHOOT"} < names
    for name in {*names, "Class", "CLOUD", "Rehearsal"}:
        assert projects.Project(1, "acme", (), (name,)).problem(), name


def test_a_folder_with_a_git_repository_is_accepted(tmp_path, monkeypatch):
    monkeypatch.setattr(projects, "_run", lambda *_, **__: "")
    (tmp_path / ".git").mkdir()
    new("acme", "--output", tmp_path)
    assert (tmp_path / "acme/infrastructure.py").exists()


def test_a_folder_that_cannot_be_written_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("acme").write_text("mine")
    assert refused("acme") == "cannot write acme: File exists"
    Path("gone").symlink_to("nowhere")
    assert refused("acme", "--output", "gone") == "cannot write gone: File exists"


@pytest.mark.parametrize("exists", [True, False])
def test_a_project_that_failed_can_be_written_again_if_its_folder_is_new(
    tmp_path, monkeypatch, exists
):
    folder = tmp_path / "acme"
    if exists:
        folder.mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(projects, "_INSTALLATION", "raise SystemExit('no chart')")
        failed = refused("acme", "--output", folder)
    assert failed.startswith(f"{folder}: ")
    assert "no chart" in failed
    assert folder.exists() == exists
    monkeypatch.setattr(projects, "_run", lambda *_, **__: "")
    again = refused("acme", "--output", folder) if exists else new("acme", "--output", folder)
    assert ("is not empty" in again) == exists


def test_a_name_of_an_installed_package_is_refused():
    assert "click is an installed package; choose another name" in refused("click")


# Updates.


def git(project, *arguments):
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *arguments]
    return subprocess.run(command, cwd=project, capture_output=True, text=True, check=True).stdout


def commit(project):
    git(project, "add", "--all")
    git(project, "commit", "--quiet", "--message", "x")


def edit(path, *pairs):
    text = path.read_text()
    for old, replacement in pairs:
        assert old in text, old
        text = text.replace(old, replacement)
    path.write_text(text)


@pytest.fixture
def versions(tmp_path, monkeypatch):
    """Write the next version of the template: the newest one with an edited cloud module."""
    monkeypatch.setattr(projects, "TEMPLATE", tmp_path / "template")
    shutil.copytree(Path(projects.__file__).with_name("project"), projects.TEMPLATE)

    def write(*pairs):
        newest = max(int(path.name) for path in projects.TEMPLATE.iterdir())
        folder = projects.TEMPLATE / str(newest + 1)
        shutil.copytree(projects.TEMPLATE / str(newest), folder)
        edit(folder / "{package}" / "cloud.py.jinja", *pairs)
        return folder

    return write


@pytest.fixture
def project(written, versions, tmp_path):
    """A project that git tracks, in a subfolder of a repository."""
    repository = tmp_path / "repository"
    shutil.copytree(written, repository / "acme")
    git(repository, "init", "--quiet")
    commit(repository)
    return repository / "acme"


NEAR = "        # near: quota of a shoot\n"
FAR = "# far: region of the cloud\n"
RENAMED = 'title = "{{ title }}"', 'title = "Our {{ title }}"'


@pytest.fixture
def changed(project):
    """The project, after its author edited, added, renamed and deleted files."""
    edit(
        project / "multi_cloud/cloud.py",
        ("        (self.folder / id).unlink(", f"{NEAR}        (self.folder / id).unlink("),
        ("class Cloud:", f"{FAR}class Cloud:"),
    )
    edit(project / "pyproject.toml", ('"0.1.0"', '"7.0.0"'))
    (project / "multi_cloud/quota.py").write_text("LIMIT = 3\n")
    (project / "README.md").unlink()
    git(project, "mv", "multi_cloud/rehearsal.py", "multi_cloud/exercise.py")
    commit(project)
    return project


def test_two_updates_keep_each_line_of_the_author(changed, versions):
    second = versions(("def resources(", "def all_resources("))
    (second / "SECURITY.md.jinja").write_text("# Security of {{ name }}\n")
    edit(second / "README.md.jinja", ("# {{ name }}", "# Extension {{ name }}"))
    edit(
        second / "{package}/rehearsal.py.jinja",
        RENAMED,
    )
    assert "has version 2" in new("--update", "--output", changed)
    commit(changed)
    third = versions(("Access to the resources.", "Client of the resources."))
    edit(third / "pyproject.toml.jinja", ("pytest>=8.3", "pytest>=9"))
    new("--update", "--output", changed)
    commit(changed)
    cloud = (changed / "multi_cloud/cloud.py").read_text()
    settings = (changed / "pyproject.toml").read_text()
    for part in (NEAR, FAR, "def all_resources(", "Client of the resources."):
        assert part in cloud
    assert "7.0.0" in settings
    assert "pytest>=9" in settings
    assert (changed / "multi_cloud/quota.py").read_text() == "LIMIT = 3\n"
    assert (changed / "SECURITY.md").read_text() == "# Security of multi-cloud\n"
    assert 'title = "Our MultiCloud"' in (changed / "multi_cloud/exercise.py").read_text()
    assert not (changed / "README.md").exists()
    assert yaml.safe_load((changed / projects.ANSWERS).read_text())["version"] == 3
    assert "version 3" in new("--update", "--output", changed)
    assert git(changed, "status", "--porcelain") == ""


def test_an_update_with_conflicts_is_aborted_and_other_work_stays(changed, versions):
    second = versions(("def resources(", "def all_resources("))
    (second / "SECURITY.md.jinja").write_text("# Security\n")
    edit(changed / "multi_cloud/cloud.py", ("def resources(", "def everything("))
    commit(changed)
    before = (changed / "multi_cloud/cloud.py").read_text()
    assert "or --abort" in refused("--update", "--output", changed)
    edit(changed / "multi_cloud/quota.py", ("3", "4"))
    (changed / "mine.txt").write_text("mine")
    git(changed, "add", "mine.txt")
    assert "as before the update" in new("--update", "--abort", "--output", changed)
    assert (changed / "multi_cloud/cloud.py").read_text() == before
    states = {*git(changed, "status", "--porcelain", ".").splitlines()}
    assert states == {" M acme/multi_cloud/quota.py", "A  acme/mine.txt"}
    assert "has no uncommitted update" in refused("--abort", "--output", changed)


def test_a_committed_update_is_not_aborted(project, versions):
    versions(("def resources(", "def all_resources("))
    new("--update", "--output", project)
    commit(project)
    assert "has no uncommitted update" in refused("--abort", "--output", project)
    assert "def all_resources(" in (project / "multi_cloud/cloud.py").read_text()


ADDED_KINDS = ("--add-kind", "ControlPlane", "--add-kind", "BackupEntry", "--add-own-kind", "Route")
ALL_KINDS = ("--kind", "ControlPlane", "--kind", "BackupEntry", "--own-kind", "Route")


@pytest.mark.parametrize(
    ("added", "options"),
    [
        (ADDED_KINDS, ALL_KINDS),
        (("--update", "--in-shoot", "--admission"), ("--in-shoot", "--admission")),
    ],
    ids=["kinds", "options"],
)
def test_kinds_are_added_as_if_the_project_had_them_from_the_beginning(
    project, tmp_path, added, options
):
    new(*added, "--output", project)
    whole = tmp_path / "whole"
    new("multi-cloud", *WITH_WEBHOOKS, *options, "--output", whole)
    files = {path.relative_to(whole) for path in whole.rglob("*") if path.is_file()}
    assert files == {path.relative_to(project) for path in project.rglob("*") if path.is_file()}
    for name in files:
        assert (whole / name).read_bytes() == (project / name).read_bytes(), name
    assert run(project, "ruff", "check", "--no-cache").returncode == 0
    new("--abort", "--output", project)
    assert git(project, "status", "--porcelain") == ""


def test_a_kind_that_the_project_has_is_not_added(project):
    for kind, problem in (("Worker", "two modules would be called"), ("Bucket", "has no kind")):
        assert problem in refused("--add-kind", kind, "--output", project)
    assert git(project, "status", "--porcelain") == ""


def test_a_file_that_the_author_changed_and_the_template_deletes_is_kept(changed, versions):
    (versions() / "{package}/cloud.py.jinja").unlink()
    assert "conflicts in multi_cloud/cloud.py" in refused("--update", "--output", changed)
    assert NEAR in (changed / "multi_cloud/cloud.py").read_text()


def test_an_ignored_file_is_not_overwritten(changed, versions):
    (changed / "report.html").write_text("mine")
    (versions() / "report.html.jinja").write_text("template")
    assert "git ignores report.html" in refused("--update", "--output", changed)
    assert (changed / "report.html").read_text() == "mine"


def test_changes_of_the_same_line_are_a_conflict(project, versions):
    edit(project / "multi_cloud/cloud.py", ("def resources(", "def everything("))
    commit(project)
    versions(("def resources(", "def all_resources("))
    assert "conflicts in multi_cloud/cloud.py" in refused("--update", "--output", project)
    text = (project / "multi_cloud/cloud.py").read_text()
    assert text.index("<<<<<<<") < text.index("def everything(") < text.index("=======")
    assert text.index("=======") < text.index("def all_resources(") < text.index(">>>>>>>")


def test_a_project_with_windows_line_endings_is_updated(project, versions):
    cloud = project / "multi_cloud/cloud.py"
    edit(cloud, ("class Cloud:", f"{FAR}class Cloud:"))
    cloud.write_bytes(cloud.read_bytes().replace(b"\n", b"\r\n"))
    commit(project)
    versions(("def resources(", "def all_resources("))
    new("--update", "--output", project)
    text = cloud.read_bytes()
    assert b"def all_resources(" in text
    assert FAR.encode().replace(b"\n", b"\r\n") in text


@pytest.mark.parametrize("place", [".", "first"])
def test_a_project_beside_or_above_a_similar_one_is_updated_alone(
    written, versions, tmp_path, place
):
    """git does not take the files of the other project for renamed ones of this project."""
    root = tmp_path / "root"
    project = tmp_path / "root" / place
    for folder in (project, root / "second"):
        shutil.copytree(written, folder)
    for path in (project / "multi_cloud").glob("[!c]*.py"):
        path.write_text("mine\n")
    (project / "multi_cloud/rehearsal.py").unlink()
    git(root, "init", "--quiet")
    commit(root)
    second = versions(("def resources(", "def all_resources("))
    edit(
        second / "{package}/rehearsal.py.jinja",
        RENAMED,
    )
    new("--update", "--output", project)
    changed = [".actuator-new.yaml", "multi_cloud/cloud.py"]
    found = git(root, "diff", "HEAD", "--name-only").splitlines()
    assert found == [str(Path(place, item)) for item in changed]


def test_a_symbolic_link_to_the_project_and_one_in_it_are_kept(project, versions, tmp_path):
    shared = project / "shared.py"
    cloud = project / "multi_cloud/cloud.py"
    cloud.rename(shared)
    cloud.symlink_to("../shared.py")
    commit(project)
    versions(("def resources(", "def all_resources("))
    (tmp_path / "link").symlink_to(project)
    assert "conflicts in multi_cloud/cloud.py" in refused("--update", "--output", tmp_path / "link")
    assert "def _authenticate(" in shared.read_text()
    assert "class Cloud" in "".join(path.read_text() for path in cloud.parent.glob("cloud*"))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda project: (project / "new.py").touch(), "has uncommitted changes; commit them"),
        (
            lambda project: (
                git(project, "config", "status.showUntrackedFiles", "no")
                + str((project / "new.py").touch())
            ),
            "has uncommitted changes",
        ),
        (
            lambda project: (
                (project.parent / ".gitignore").write_text("*\n")
                and git(project, "rm", "-r", "--quiet", "--cached", ".")
                + git(project, "commit", "--quiet", "--message", "x")
            ),
            "has uncommitted changes",
        ),
        (
            lambda project: edit(project / projects.ANSWERS, ("multi-cloud", "../cloud")),
            "/.actuator-new.yaml: invalid name '../cloud'",
        ),
        (
            lambda project: (project / projects.ANSWERS).write_text("- version\n"),
            "no readable .actuator-new.yaml",
        ),
        (lambda project: shutil.rmtree(project.parent / ".git"), "not a git repository"),
        (
            lambda project: edit(project / projects.ANSWERS, ("version: 1", "version: 4")),
            "has version 4 of the template, this package only 1: install a newer gardener-actuator",
        ),
    ],
)
def test_a_project_that_cannot_be_updated_is_refused(project, change, words):
    change(project)
    assert words in refused("--update", "--output", project)


def test_an_update_without_git_is_refused(project, monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert refused("--update", "--output", project) == "git not found; install it"
