"""Projects of extensions, from the template in `project`, which has a folder for each version.

copier renders a version; git merges. An update is the change from the project's version to the
newest one, applied like a commit: each line of the author is kept, or in a conflict. (An update by
copier deletes files that the author changed and the new version no longer has.) A released version
never changes: copy it to a new folder, and change that.
"""

import keyword
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from actuator.errors import ConfigurationError

TEMPLATE = Path(__file__).with_name("project")
ANSWERS = ".copier-answers.yml"
_NAME = re.compile(r"(?=.{1,30}$)[a-z][a-z0-9]*(-[a-z0-9]+)*")
_KIND = re.compile(r"[A-Z][A-Za-z0-9]{1,29}")
_TAKEN = {"actuator", "extensions", "generic", "tests", *sys.stdlib_module_names, *keyword.kwlist}
_MODULES = {"Cloud", "Rehearsal"}
_MAIN = "from generic.tools.cli.main import main; main()"
_IDENTITY = ("-c", "user.name=actuator", "-c", "user.email=actuator@localhost")


def is_valid_name(name: str) -> bool:
    """Return whether a project can have this name: a chart's, and a package's with underscores."""
    return bool(_NAME.fullmatch(name)) and name.replace("-", "_") not in _TAKEN


def is_valid_kind(kind: str) -> bool:
    """Return whether a kind of a project can have this name."""
    return bool(_KIND.fullmatch(kind)) and kind not in _MODULES


def create(project: Path, name: str, kinds: Sequence[str], own_kinds: Sequence[str]) -> None:
    """Write a project, its Dockerfile and its chart. Raises ConfigurationError."""
    answers = {"name": name, "kinds": [*kinds], "own_kinds": [*own_kinds]}
    _render(project, _newest(), answers)
    extension = f"{name.replace('-', '_')}:extension"
    run = partial(_run, project, sys.executable, "-Bc", _MAIN)
    run("image", extension, "--output", ".")
    run("chart", extension, "--name", name, "--output", "chart")


def update(project: Path) -> int:
    """Merge the newest version of the template into a project; return that version.

    Raises ConfigurationError for a project that git does not track or that has uncommitted changes,
    and for conflicts, which remain in the files.
    """
    git = partial(_run, project, "git")
    newest, (version, answers) = _newest(), _answers(project)
    if version > newest:
        raise ConfigurationError(
            f"{project} has version {version} of the template, this package only {newest}: "
            "install a newer gardener-actuator"
        )
    git_dir, prefix, *_ = git("rev-parse", "--absolute-git-dir", "--show-prefix").split("\n")
    if git("status", "--porcelain", "."):
        raise ConfigurationError(f"{project} has uncommitted changes; commit them, then update")
    base = _commit(git_dir, version, answers)
    change = _commit(git_dir, newest, answers, "-p", base)
    added = git("diff-tree", "-r", "--name-only", "--diff-filter=A", base, change).splitlines()
    ignored = git("ls-files", "--others", "--ignored", "--exclude-standard").splitlines()
    for path in {*added} & {*ignored}:  # git would overwrite it
        raise ConfigurationError(f"{project}: git ignores {path}, which the template has; move it")
    git("cherry-pick", "--no-commit", f"--strategy-option=subtree={prefix}", change, ok=(0, 1))
    for state in git("status", "--porcelain", "-z").split("\0"):
        if state.startswith("DU "):  # deleted by the author, changed in the template
            git("rm", "--quiet", f":/{state[3:]}")
    if files := git("diff", "--name-only", "--relative", "--diff-filter=U").splitlines():
        raise ConfigurationError(f"conflicts in {', '.join(files)}: edit and commit these files")
    return newest


def _answers(project: Path) -> tuple[int, dict[str, Any]]:
    try:
        answers = yaml.safe_load((project / ANSWERS).read_text(encoding="utf-8"))
        return int(answers.pop("version")), answers
    except (OSError, ValueError, KeyError, AttributeError, yaml.YAMLError):
        raise ConfigurationError(
            f"{project}: no readable {ANSWERS}: run --update in a project of actuator new"
        ) from None


def _newest() -> int:
    return max(int(folder.name) for folder in TEMPLATE.iterdir())


def _render(project: Path, version: int, answers: dict[str, Any]) -> None:
    import copier

    name = answers["name"]
    title = "".join(part.capitalize() for part in name.split("-"))
    names = {"package": name.replace("-", "_"), "title": title, "version": version}
    template = str(TEMPLATE / str(version))
    copier.run_copy(template, project, answers | names, defaults=True, overwrite=True, quiet=True)
    for command in (("check", "--fix-only"), ("format",)):  # names have any length
        _run(project, sys.executable, "-m", "ruff", *command, "--quiet", "--no-cache")


def _commit(git_dir: str, version: int, answers: dict[str, Any], *options: str) -> str:
    """Write the rendered template as a commit that no branch has; return its hash."""
    with TemporaryDirectory() as index, TemporaryDirectory() as folder:
        _render(Path(folder), version, answers)
        env = {"GIT_DIR": git_dir, "GIT_WORK_TREE": folder, "GIT_INDEX_FILE": f"{index}/index"}
        git = partial(_run, Path(folder), "git", *_IDENTITY, env=env)
        git("add", "--all", "--force")
        tree, message = git("write-tree").strip(), f"Version {version} of the template"
        return git("commit-tree", tree, "-m", message, *options).strip()


def _run(
    folder: Path, *command: str, ok: Sequence[int] = (0,), env: dict[str, str] | None = None
) -> str:
    """Return the output of a program. Raises ConfigurationError if it is missing or fails."""
    environment = os.environ | (env or {})
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        raise ConfigurationError(f"{command[0]} not found; install it") from None
    if done.returncode not in ok:
        raise ConfigurationError(f"{folder}: {command[0]}: {done.stderr.strip()}")
    return done.stdout
