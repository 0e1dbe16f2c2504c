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
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from importlib.machinery import PathFinder
from keyword import kwlist
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

import actuator
from actuator import v1alpha1
from actuator.errors import ConfigurationError
from actuator.suggestions import did_you_mean

TEMPLATE = Path(__file__).with_name("project")
ANSWERS = ".actuator-new.yaml"
_NAME = re.compile(r"(?=.{1,30}$)[a-z][a-z0-9]*(-[a-z0-9]+)*")
_KIND = re.compile(r"[A-Z][A-Za-z0-9]{1,29}")
_FOLDERS = {"build", "chart", "conftest", "dist", "tests", "venv"}
_TAKEN = {*_FOLDERS, *kwlist, *sys.stdlib_module_names}
_IMPORTED = {"Annotated", "ClassVar", "Iterable", "Path", "RecordingContext", "Schema"}
_RESERVED = {*_IMPORTED, *dir(actuator), *kwlist}
_IDENTITY = ("-c", "user.name=actuator", "-c", "user.email=actuator@localhost")
_INSTALLATION = """
from sys import argv
from generic.tools.cli.chart import chart, image
image([argv[2], "--output=."], standalone_mode=False)
chart([argv[2], f"--name={argv[1]}", "--output=chart"], standalone_mode=False)
"""


class Project(msgspec.Struct, frozen=True, omit_defaults=True):
    """The answers that a project is rendered from, and keeps in a file."""

    version: int
    name: str
    kinds: tuple[str, ...]
    own_kinds: tuple[str, ...]
    webhooks: bool = False

    @property
    def package(self) -> str:
        """The name of the Python package."""
        return self.name.replace("-", "_")

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
        modules = [kind.lower() for kind in (*self.kinds, *self.own_kinds)] + ["cloud", "rehearsal"]
        modules += ["webhooks"] * self.webhooks
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
        title = "".join(part.capitalize() for part in self.name.split("-"))
        names = msgspec.structs.asdict(self) | {"package": self.package, "title": title}
        for source in template.list_templates():
            if "/webhooks." in source and not self.webhooks:
                continue
            for kind in (*self.kinds, *self.own_kinds) if "{kind}" in source else ("",):
                path = source.removesuffix(".jinja").format(**names, kind=kind.lower())
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                text = template.get_template(source).render(names, kind=kind)
                (folder / path).write_text(text, encoding="utf-8", newline="\n")
        (folder / ANSWERS).write_bytes(msgspec.yaml.encode(self))
        for command in (("check", "--fix-only"), ("format",)):  # names have any length
            _run(folder, sys.executable, "-m", "ruff", *command, "--quiet", "--no-cache", ".")


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
        extension = f"{project.package}:extension"
        _run(folder, sys.executable, "-Bc", _INSTALLATION, project.name, extension)
        undo.pop_all()


def update(folder: Path) -> int:
    """Merge the newest version of the template into a project; return that version.

    Raises ConfigurationError for a project that git does not track or that has uncommitted changes,
    and for conflicts, which remain in the files.
    """
    project, git = _read(folder), partial(_run, folder, "git")
    git_dir, prefix, *_ = git("rev-parse", "--absolute-git-dir", "--show-prefix").split("\n")
    changed = git("status", "--porcelain", "--untracked-files=normal", ".")
    if changed or not git("ls-files", ANSWERS):
        raise ConfigurationError(f"{folder} has uncommitted changes; commit them, then update")
    nested = git("ls-files", "-z", f"*/{ANSWERS}").split("\0")[:-1]
    others = [str(Path(prefix, one).parent) for one in nested]
    commit = partial(_commit, git_dir, git("write-tree").strip(), prefix, others)
    newer = msgspec.structs.replace(project, version=newest())
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
    if files := git("diff", "--name-only", "--relative", "--diff-filter=U").splitlines():
        raise ConfigurationError(f"conflicts in {', '.join(files)}: edit and commit these files")
    return newer.version


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
