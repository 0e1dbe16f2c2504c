"""Commands in odd surroundings: a folder with files that hide modules, and no standard error."""

from __future__ import annotations

import os
import subprocess
import sys
from operator import itemgetter

import pytest

MAIN = "from generic.tools.cli.main import main; main()"
LISTING = """
import atexit, sys
atexit.register(lambda: print(*{name.partition(".")[0] for name in sys.modules}, file=sys.stderr))
"""
EXTENSION = """
from extensions.own import TYPE
from extensions.local import extension as sample

def extension(manager):
    assert TYPE == "own"
    sample(manager)
"""
PLANTED = """
from pathlib import Path
Path(__file__).with_name("ran").write_text("x")
raise SystemExit("a planted module ran")
"""


@pytest.fixture
def project(tmp_path):
    """A folder with an extension, whose package has the name of the samples."""
    (tmp_path / "extensions").mkdir()
    (tmp_path / "extensions" / "__init__.py").write_text("")
    (tmp_path / "extensions" / "own.py").write_text('TYPE = "own"\n')
    (tmp_path / "mine.py").write_text(EXTENSION)
    return tmp_path


def run_in(folder, *arguments, before=""):
    """Run a command; it does not begin with the folder on its path."""
    return subprocess.run(
        [sys.executable, "-P", "-c", f"{before}{MAIN}", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ("rbac", "mine:extension"),
        ("chart", "mine:extension", "--output", "chart"),
        ("run", "mine:extension", "--help"),
    ],
    ids=itemgetter(0),
)
def test_a_file_of_the_current_folder_replaces_no_module(project, arguments):
    """A file for each module that the command imports, at any time."""
    imported = run_in(project, *arguments, before=LISTING).stderr.splitlines()[-1].split()
    assert "mine" in imported or "run" in arguments
    for name in {*imported} - {"mine", "extensions"}:
        (project / f"{name}.py").write_text(PLANTED)
    run_in(project, *arguments)
    assert not (project / "ran").exists()


def test_logs_are_dropped_if_standard_error_is_closed():
    text = (
        "import logging; from generic.serving.logs import configure\n"
        "for form in ('text', 'json'): configure('info', form); logging.error('x')\n"
        "print('alive')"
    )
    done = subprocess.run(
        [sys.executable, "-c", text],
        stdout=subprocess.PIPE,
        timeout=60,
        check=True,
        preexec_fn=lambda: os.close(2),
    )
    assert done.stdout == b"alive\n"
