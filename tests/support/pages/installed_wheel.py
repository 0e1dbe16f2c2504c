"""A virtual environment with our wheel and the distributions that it requires, and no others.

No index is asked: the distributions are links to those that run the tests.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
import venv
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def requirements_of(*extras: str) -> list[str]:
    """Ours with these extras, in the words of pyproject.toml: an installed clone may be older."""
    found = list(PROJECT["dependencies"])
    waiting = [text for extra in extras for text in PROJECT["optional-dependencies"][extra]]
    while waiting:
        one = Requirement(waiting.pop())
        if one.name == PROJECT["name"]:
            waiting += [t for extra in one.extras for t in PROJECT["optional-dependencies"][extra]]
        else:
            found.append(str(one))
    return found


def required(name: str, *extras: str) -> Iterator[str]:
    """The requirements of an installed distribution that apply here, as they are written."""
    for text in metadata.requires(name) or ():
        marker = Requirement(text).marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            yield text


def closure(requirements: list[str]) -> set[str]:
    """The names of the distributions of these requirements, and of all that they require."""
    found: set[tuple[str, str]] = set()
    waiting = [Requirement(text) for text in requirements]
    while waiting:
        one = waiting.pop()
        for extra in ("", *one.extras):
            key = (one.name.lower().replace("_", "-"), extra)
            if key not in found:
                found.add(key)
                waiting += [Requirement(text) for text in required(one.name, extra)]
    return {name for name, _ in found}


def environment(folder: Path, wheel: Path, requirements: list[str]) -> Path:
    """Make one; returns the folder of its programs."""
    venv.create(folder, symlinks=True)
    link(folder / "bin", requirements)
    python = str(folder / "bin" / "python")
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet"]
    offline = ["--no-index", "--no-deps", "--no-compile", "--disable-pip-version-check"]
    subprocess.run([*pip, *offline, str(wheel)], check=True, timeout=120)
    return folder / "bin"


def link(programs: Path, requirements: list[str]) -> None:
    """Add the distributions of these requirements to the environment with these programs."""
    (packages,) = programs.parent.glob("lib/python*/site-packages")
    for name in closure(requirements):
        found = metadata.distribution(name)
        for top in {file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}:
            if not (packages / top).exists():
                (packages / top).symlink_to(str(found.locate_file(top)))


def run(program: Path, *arguments: str, code: int = 0) -> str:
    """Run it outside the clone with an empty environment; return both streams."""
    env = {"PATH": os.defpath, "HOME": str(program.parent), "COLUMNS": "160"}
    done = subprocess.run(
        [program, *arguments],
        cwd=program.parent,
        env=env,
        capture_output=True,
        check=False,
        text=True,
        timeout=120,
    )
    text = done.stdout + done.stderr
    assert done.returncode == code, text
    return text
