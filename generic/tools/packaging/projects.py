"""Projects of extensions, from the template in `project`, which has a folder for each version.

Jinja renders a version; git merges. An update is the change from the project's version to the
newest one, applied like a commit: each line of the author is kept, or in a conflict. (copier
deletes files that the author changed and the new version no longer has.) A released version never
changes: copy it to a new folder, and change that.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from functools import partial
from importlib.machinery import PathFinder
from keyword import kwlist
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

import actuator
from actuator import v1alpha1
from actuator.errors import ConfigurationError
from actuator.suggestions import did_you_mean
from generic.library.webhooks.places import IN_SHOOT

TEMPLATE = Path(__file__).with_name("project")
ANSWERS = ".actuator-new.yaml"
_NAME = re.compile(r"(?=.{1,30}$)[a-z][a-z0-9]*(-[a-z0-9]+)*")
_KIND = re.compile(r"[A-Z][A-Za-z0-9]{1,29}")
_FOLDERS = {"build", "chart", "conftest", "dist", "tests", "venv"}
_TAKEN = {*_FOLDERS, *kwlist, *sys.stdlib_module_names}
_IMPORTED = {
    *("Annotated", "Path", "RecordingContext", "Schema", "Container", "Deployment", "Situation"),
    *("ExternalResourceActuator", "RecordedStatus", "CLUSTER", "OBJECT", "SECRET", "SHOOT"),
}
"""The names that a module with an own kind, and the module with tests, import or define."""
_RESERVED = {*_IMPORTED, *vars(actuator)["__all__"], *kwlist}
_STARTED = "actuator-update"
"""The file in the git directory that remembers an update for `abort`."""
_WHERE = ("rev-parse", "--absolute-git-dir", "--show-prefix", "HEAD")
_IDENTITY = ("-c", "user.name=actuator", "-c", "user.email=actuator@localhost")
_INSTALLATION = """
from sys import argv
from generic.tools.cli.chart import chart, image
from generic.tools.cli.statuses import reported
name, package, *admission = argv[1:]
common = f"--image=registry.example.org/{name}", "--output=chart"
with reported():
    served = f"{package}:extension"
    image([served, "--output=."], standalone_mode=False)
    chart([served, f"--name={name}", *common], standalone_mode=False)
    if admission:
        served = f"{package}.admission:admission"
        chart([served, f"--name={name}-admission", *admission, *common], standalone_mode=False)
"""
_GENERIC = {"Worker": "worker", "ControlPlane": "controlplane", "BackupEntry": "backupentry"}
_IN_SHOOT = {"ContainerRuntime", "Extension", "Network"}
"""The kinds whose objects can consist of manifests for the shoot."""
_WITHOUT_CLOUD = {"controlplane", "shoot"}
_ADMITTED = {place.kind for place in IN_SHOOT}


class Started(msgspec.Struct, frozen=True):
    """An update that is not committed: the commit before it, and the files that it changed."""

    head: str
    prefix: str
    files: tuple[str, ...]


class Project(msgspec.Struct, frozen=True, omit_defaults=True):
    """The answers that a project is rendered from, and keeps in a file."""

    version: int
    name: str
    kinds: tuple[str, ...]
    own_kinds: tuple[str, ...]
    webhooks: bool = False
    in_shoot: bool = False
    admission: bool = False

    @property
    def package(self) -> str:
        """The name of the Python package."""
        return self.name.replace("-", "_")

    @property
    def forms(self) -> dict[str, str]:
        """The template of each kind's module, by kind."""
        in_shoot = _IN_SHOOT if self.in_shoot else ()
        gardener = {
            kind: "shoot" if kind in in_shoot else _GENERIC.get(kind, "cloud")
            for kind in self.kinds
        }
        return gardener | dict.fromkeys(self.own_kinds, "cloud")

    def completed(self) -> "Project":
        """Return the project with at least one kind, and one in the shoot if it is `in_shoot`."""
        if self.in_shoot and not _IN_SHOOT & {*self.kinds}:
            return msgspec.structs.replace(self, kinds=(*self.kinds, "Extension"))
        if not (self.kinds or self.own_kinds):
            return msgspec.structs.replace(self, kinds=("Infrastructure",))
        return self

    def problem(self) -> str:
        """Return why no project can have this name and these kinds, or ""."""
        if not _NAME.fullmatch(self.name) or self.package in _TAKEN:
            expected = "at most 30 lower-case letters, digits and hyphens, and no reserved name"
            return f"invalid name {self.name!r}: expected {expected}; try {self._valid_name()!r}"
        gardener = [cls.KIND.name for cls in v1alpha1.KINDS]
        for kind in self.kinds:
            if kind not in gardener:
                hint = did_you_mean(kind, gardener) or "; define it with --own-kind"
                return f"Gardener has no kind {kind!r}{hint}"
        for kind in self.own_kinds:
            if kind in gardener:
                return f"{kind} is a kind of Gardener; set it with --kind"
            if not _KIND.fullmatch(kind) or {kind, kind.lower()} & _RESERVED:
                return f"invalid kind {kind!r}: expected a name such as Peering, none of Python's"
        if self.admission and not _ADMITTED & {*self.kinds}:
            known = ", ".join(sorted(_ADMITTED))
            return f"--admission: no kind has a configuration in Shoots; add --kind with {known}"
        modules = [kind.lower() for kind in (*self.kinds, *self.own_kinds)]
        modules += ["admission", "cloud", "rehearsal", "webhooks"]
        twice = [module for module in modules if modules.count(module) > 1]
        return f"two modules would be called {twice[0]!r}; rename a kind" if twice else ""

    def _valid_name(self) -> str:
        """Return the name that is most similar and valid."""
        name = re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")
        if not name[:1].isalpha() or name.replace("-", "_") in _TAKEN:
            name = f"provider-{name}"
        return name[:30].strip("-")

    def render(self, folder: Path) -> None:
        """Write the files of the template. Raises OSError."""
        from jinja2 import Environment, FileSystemLoader, StrictUndefined

        template = Environment(
            loader=FileSystemLoader(TEMPLATE / str(self.version)),
            undefined=StrictUndefined,
            autoescape=False,  # noqa: S701 - not HTML
            keep_trailing_newline=True,
            trim_blocks=True,
        )
        names = self._names()
        for source in template.list_templates(filter_func=lambda path: path[0] != "_"):
            for kind in self.forms if "{kind}" in source else ("",):
                path = folder / source.removesuffix(".jinja").format(**names, kind=kind.lower())
                text = template.get_template(source).render(names, kind=kind)
                if text.strip():
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_text(text, encoding="utf-8", newline="\n")
        (folder / ANSWERS).write_bytes(msgspec.yaml.encode(self))
        for command in (("check", "--fix-only"), ("format",)):  # names have any length
            _run(folder, sys.executable, "-m", "ruff", *command, "--quiet", "--no-cache", ".")

    def _names(self) -> dict[str, Any]:
        """Return the variables of the template."""
        forms = self.forms
        return msgspec.structs.asdict(self) | {
            "package": self.package,
            "title": "".join(part.capitalize() for part in self.name.split("-")),
            "forms": forms,
            "clouded": [kind for kind, form in forms.items() if form not in _WITHOUT_CLOUD],
            "programs": [kind for kind, form in forms.items() if form in _WITHOUT_CLOUD],
            "admitted": [k for k in self.kinds if k in _ADMITTED] if self.admission else [],
        }


def newest() -> int:
    """Return the newest version of the template."""
    return max(int(folder.name) for folder in TEMPLATE.iterdir())


def create(folder: Path, project: Project) -> None:
    """Write a project, its Dockerfile and its chart. Raises ConfigurationError.

    A folder that did not exist is removed again if that fails.
    """
    if (found := PathFinder.find_spec(project.package)) and found.origin:
        raise ConfigurationError(f"{project.package} is an installed package; choose another name")
    existed = folder.exists()
    with ExitStack() as undo:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if any(path.name != ".git" for path in folder.iterdir()):
                raise ConfigurationError(f"{folder} is not empty; set another folder with --output")
            if not existed:
                undo.callback(shutil.rmtree, folder, ignore_errors=True)
            project.render(folder)
        except OSError as error:
            raise ConfigurationError(f"cannot write {folder}: {error.strerror}") from error
        _write_installation(folder, project)
        undo.pop_all()


def update(
    folder: Path,
    kinds: Sequence[str] = (),
    own_kinds: Sequence[str] = (),
    features: Collection[str] = (),
) -> int:
    """Merge the newest version of the template into a project; return that version.

    The project also gets further kinds and features (fields of `Project`); then Dockerfile and
    charts are written again, unless there are conflicts. Raises ConfigurationError for a project
    that git does not track or that has uncommitted changes, and for conflicts, which remain in the
    files.
    """
    project = _read(folder)
    git = partial(_run, folder, "git")
    git_dir, prefix, *_ = git(*_WHERE).split("\n")
    changed = git("status", "--porcelain", "--untracked-files=normal", ".")
    if changed or not git("ls-files", ANSWERS):
        raise ConfigurationError(f"{folder} has uncommitted changes; commit them, then update")
    nested = git("ls-files", "-z", f"*/{ANSWERS}").split("\0")[:-1]
    others = [str(Path(prefix, item).parent) for item in nested]
    commit = partial(_commit, git_dir, git("write-tree").strip(), prefix, others)
    newer = msgspec.structs.replace(
        project,
        version=newest(),
        kinds=(*project.kinds, *kinds),
        own_kinds=(*project.own_kinds, *own_kinds),
        **dict.fromkeys(features, True),
    ).completed()
    if problem := newer.problem():
        raise ConfigurationError(problem)
    base = commit(project)
    change = commit(newer, "-p", base)
    compared = ("diff-tree", "-r", "--name-only", "--relative", "--diff-filter=A", base, change)
    ignored = git("ls-files", "--others", "--ignored", "--exclude-standard").splitlines()
    for path in {*git(*compared).splitlines()} & {*ignored}:  # git would overwrite it
        raise ConfigurationError(f"{folder}: git ignores {path}, which the template has; move it")
    git("cherry-pick", "--no-commit", "--strategy-option=ignore-cr-at-eol", change, ok=(0, 1))
    for state in git("status", "--porcelain", "-z").split("\0"):
        if state.startswith("DU "):  # deleted by the author, changed in the template
            git("rm", "--quiet", f":/{state[3:]}")
    _remember(folder)
    if unmerged := git("diff", "--name-only", "--relative", "--diff-filter=U").splitlines():
        names = ", ".join(unmerged)
        raise ConfigurationError(f"conflicts in {names}: edit and commit these files, or --abort")
    if kinds or own_kinds or features:
        _write_installation(folder, newer)
        git("add", "--all", "--", "chart", "Dockerfile*")
        _remember(folder)
    return newer.version


def abort(folder: Path) -> None:
    """Restore the files that an uncommitted update changed; others stay.

    Raises ConfigurationError for a project without such an update.
    """
    git = partial(_run, folder, "git", "--literal-pathspecs")
    git_dir, prefix, head, *_ = git(*_WHERE).split("\n")
    path = Path(git_dir, _STARTED)
    try:
        started = msgspec.json.decode(path.read_bytes(), type=Started)
    except (OSError, msgspec.MsgspecError):
        started = None
    if started is None or (started.head, started.prefix) != (head, prefix):
        raise ConfigurationError(f"{folder} has no uncommitted update; nothing was restored")
    git("restore", "--source=HEAD", "--staged", "--worktree", "--", *started.files)
    path.unlink()


def _remember(folder: Path) -> None:
    """Write for `abort` which files of the project differ from the last commit in the index."""
    git = partial(_run, folder, "git")
    git_dir, prefix, head, *_ = git(*_WHERE).split("\n")
    options = ("--cached", "--name-only", "--no-renames", "--relative", "-z")
    files = git("diff", *options, "HEAD").split("\0")[:-1]
    if files:
        started = Started(head, prefix, (*files,))
        Path(git_dir, _STARTED).write_bytes(msgspec.json.encode(started))


def _write_installation(folder: Path, project: Project) -> None:
    """Write the Dockerfile and the charts."""
    admission = ["--admission"] * project.admission
    _run(folder, sys.executable, "-Bc", _INSTALLATION, project.name, project.package, *admission)


def _read(folder: Path) -> Project:
    try:
        project = msgspec.yaml.decode((folder / ANSWERS).read_bytes(), type=Project)
    except (OSError, msgspec.MsgspecError):
        raise ConfigurationError(
            f"{folder}: no readable {ANSWERS}: run --update in a project of actuator new"
        ) from None
    if problem := project.problem():
        raise ConfigurationError(f"{folder / ANSWERS}: {problem}")
    if not 1 <= project.version <= newest():
        raise ConfigurationError(
            f"{folder} has version {project.version} of the template, this package only "
            f"{newest()}: install a newer gardener-actuator"
        )
    return project


def _commit(
    git_dir: str, rest: str, prefix: str, others: Sequence[str], project: Project, *options: str
) -> str:
    """Write the rendered template as a commit that no branch has; return its hash.

    It has everything else of the tree `rest`, also the projects in the folders `others`: else git
    would take their files for renamed ones of this project, and merge into them.
    """
    with TemporaryDirectory() as index, TemporaryDirectory() as tree:
        project.render(Path(tree) / prefix)
        run = partial(_run, GIT_DIR=git_dir, GIT_WORK_TREE=tree, GIT_INDEX_FILE=f"{index}/index")
        git = partial(run, Path(tree), "git")
        git("read-tree", rest)
        kept = [f":(exclude,literal){other}" for other in others]
        git("add", "--all", "--force", "--", f":(top,literal){prefix}", *kept)
        message = f"Version {project.version} of the template"
        commit = ("commit-tree", git("write-tree").strip(), "-m", message, *options)
        return git(*_IDENTITY, *commit).strip()


def _run(folder: Path, *command: str, ok: Sequence[int] = (0,), **env: str) -> str:
    """Return the output of a program. Raises ConfigurationError if it is missing or fails."""
    try:
        done = subprocess.run(
            command, cwd=folder, env=os.environ | env, capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        raise ConfigurationError(f"{command[0]} not found; install it") from None
    if done.returncode not in ok:
        raise ConfigurationError(f"{folder}: {command[0]}: {done.stderr.strip()}")
    return done.stdout
