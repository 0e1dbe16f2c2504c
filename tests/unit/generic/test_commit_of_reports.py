"""The commit in reports: equal names mean equal code, so that resumed drills can be trusted."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from generic.tools.cli.versions import current_commit


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with one commit, whose folder `below` is the current one."""
    (tmp_path / "below").mkdir()
    for name in ("code.py", "values.yaml", ".gitignore", "below/kept"):
        (tmp_path / name).write_text("ignored.py\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    user = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    for command in (["init", "-q"], ["add", "."], [*user, "commit", "-qm", "a"]):
        subprocess.run(["git", *command], check=True, timeout=60)
    monkeypatch.chdir(tmp_path / "below")
    return tmp_path


def write(name: str, text: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_text(text)


CHANGES = {
    "one change": write("code.py", "a = 1"),
    "another": write("code.py", "a = 2"),
    "another file": write("values.yaml", "a = 1"),
    "binary": write("values.yaml", "\0\1"),
    "other binary": write("values.yaml", "\0\2"),
    "deleted": lambda folder: (folder / "code.py").unlink(),
    "new module": write("new.py", "a = 1"),
    "changed module": write("new.py", "a = 2"),
    "renamed module": write("below/other.py", "a = 1"),
}


def test_each_state_of_the_code_has_its_own_name_which_repeats(folder: Path) -> None:
    clean = current_commit()
    names = {clean}
    for change in CHANGES.values():
        change(folder)
        found = current_commit()
        assert found == current_commit()
        assert found.startswith(f"{clean}-dirty-")
        names.add(found)
        for command in (["reset", "-q", "--hard"], ["clean", "-fdq", "."]):
            subprocess.run(["git", *command], cwd=folder, check=True, timeout=60)
    assert len(names) == len(CHANGES) + 1


def test_reports_and_ignored_files_are_no_change(folder: Path) -> None:
    clean = current_commit()
    for name in ("below/report.html", "index.json", "ignored.py"):
        write(name, "a")(folder)
    assert current_commit() == clean
    assert "dirty" not in clean


def test_a_state_that_cannot_be_read_equals_no_other(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails() -> bytes:
        raise subprocess.TimeoutExpired("git", 1)

    monkeypatch.setattr("generic.tools.cli.versions._changes", fails)
    assert current_commit() != current_commit()


def test_a_folder_outside_a_repository_has_no_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert current_commit() == ""
