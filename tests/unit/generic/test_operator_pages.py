"""The shell scripts of the pages for operators, with a program in the place of `actuator`."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.support.pages.documented import ROOT

STUB = """#!/bin/sh
echo "$@" >> arguments
printenv ACME_KEY >> environment
"""


@pytest.fixture
def shell(tmp_path: Path) -> Path:
    """A folder with the program."""
    program = tmp_path / "actuator"
    program.write_text(STUB)
    program.chmod(0o755)
    return tmp_path


def run(script: str, folder: Path, given: str = "") -> None:
    path = f"{folder}:{os.environ['PATH']}"
    subprocess.run(
        ["sh", "-c", script],
        cwd=folder,
        input=given,
        text=True,
        check=True,
        timeout=60,
        env={"PATH": path},
    )


def test_credentials_for_verify_are_in_the_environment_and_in_no_argument(shell: Path) -> None:
    page = (ROOT / "docs" / "orphans.md").read_text()
    (line,) = re.findall(r"^kubectl exec --stdin .*", page, re.MULTILINE)
    words = shlex.split(line.partition(" < ")[0])
    program, option, script = words[words.index("--") + 1 :]
    assert (program, option) == ("sh", "-c")
    run(script, shell, "ACME_KEY=s3cret\n")
    assert (shell / "environment").read_text() == "s3cret\n"
    assert (shell / "arguments").read_text() == "orphans verify EXTENSION\n"
