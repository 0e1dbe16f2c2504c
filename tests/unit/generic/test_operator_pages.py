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
while [ $# -gt 0 ]; do
  if [ "$1" = --output ]; then
    [ ! -e "fails-$(basename "$2")" ] || exit 3
    mkdir -p "$2" && touch "$2/report.json"
  fi
  shift
done
"""


@pytest.fixture
def shell(tmp_path: Path) -> Path:
    """A folder with the program, which cannot run in a context if the file fails-CONTEXT exists."""
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


def contexts(folder: Path) -> list[str]:
    """The contexts of the drills that ran, in their order."""
    log = folder / "arguments"
    found = re.findall(r"--context (\S+)", log.read_text()) if log.exists() else []
    log.unlink(missing_ok=True)
    return found


def test_the_loop_over_seeds_resumes_with_those_that_have_no_report(shell: Path) -> None:
    page = (ROOT / "docs" / "drills.md").read_text()
    (loop,) = re.findall(r"^```sh\n(for .*?)```", page, re.DOTALL | re.MULTILINE)
    (shell / "fails-aws-eu1").touch()
    run(loop, shell)
    assert contexts(shell) == ["aws-eu1", "aws-us1"]
    (shell / "fails-aws-eu1").unlink()
    run(loop, shell)
    assert contexts(shell) == ["aws-eu1"]
    run(loop, shell)
    assert contexts(shell) == []


def test_credentials_for_verify_are_in_the_environment_and_in_no_argument(shell: Path) -> None:
    page = (ROOT / "docs" / "orphans.md").read_text()
    (line,) = re.findall(r"^kubectl exec --stdin .*", page, re.MULTILINE)
    words = shlex.split(line.partition(" < ")[0])
    program, option, script = words[words.index("--") + 1 :]
    assert (program, option) == ("sh", "-c")
    run(script, shell, "ACME_KEY=s3cret\n")
    assert (shell / "environment").read_text() == "s3cret\n"
    assert (shell / "arguments").read_text() == "orphans verify EXTENSION\n"
