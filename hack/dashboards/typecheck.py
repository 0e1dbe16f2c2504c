"""The dashboards against Grafana's own types: @grafana/schema and TypeScript, from npm.

No Grafana has loaded them; this is what notices a wrong word in an option before one does.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import attrs

__all__ = ["NpmFailed", "Types", "installed"]

_SCHEMA = Path(__file__).parent / "schema"
_SECONDS = 300.0
_OPTIONS = (
    *("--noEmit", "--strict", "--skipLibCheck", "--pretty", "false"),
    *("--target", "es2022", "--module", "preserve", "--moduleResolution", "bundler"),
)


class NpmFailed(Exception):
    """npm is missing, did not install what is locked, or does not end; the text says so."""


@attrs.frozen
class Types:
    """A folder with the compiler and the types."""

    folder: Path

    def problems(self, dashboards: Mapping[str, str]) -> list[str]:
        """What is wrong with dashboards, JSON by name: a line each. Raises NpmFailed."""
        sources = []
        for name, text in dashboards.items():
            source = self.folder / f"{name}.ts"
            head = 'import type { Checked } from "./dashboard";\nexport const checked: Checked ='
            source.write_text(f"{head}{text};\n")
            sources.append(source.name)
        command = [str(self.folder / "node_modules" / ".bin" / "tsc"), *_OPTIONS, *sources]
        done = _run(command, self.folder)
        said = (done.stdout + done.stderr).splitlines()
        return said or ([f"tsc ended with {done.returncode}"] if done.returncode else [])


@contextmanager
def installed() -> Iterator[Types]:
    """In a folder of its own, for as long as the `with` block lasts. Raises NpmFailed."""
    npm = shutil.which("npm")
    if npm is None:
        raise NpmFailed("no npm on PATH: install Node.js")
    with tempfile.TemporaryDirectory(prefix="dashboard-types-") as directory:
        folder = Path(directory, "schema")
        shutil.copytree(_SCHEMA, folder)
        command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
        done = _run(command, folder)
        if done.returncode != 0:
            raise NpmFailed(f"npm ci failed: {done.stderr.strip()[-500:]}")
        yield Types(folder)


def _run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=False, timeout=_SECONDS
        )
    except subprocess.TimeoutExpired as error:
        raise NpmFailed(f"{command[0]} did not end within {_SECONDS:.0f} s") from error
