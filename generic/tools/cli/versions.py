"""The versions that reports name."""

import hashlib
import os
import subprocess
from pathlib import Path

import generic
from generic.serving.metrics import version

_GIT_SECONDS = 30.0


def product_version() -> str:
    """Return the installed version of this framework, or the folder that it is imported from."""
    if (found := version()) != "unknown":
        return found
    return f"not installed, imported from {Path(next(iter(generic.__path__))).parent}"


def current_commit() -> str:
    """Return the commit of the current folder, "" without one.

    Changes without a commit, new Python files included, add `-dirty-` and their hash. Other new
    files do not count: reports are some. Equal texts mean equal code; a state that cannot be read
    equals no other.
    """
    failures = (OSError, subprocess.SubprocessError)
    try:
        commit = _git("describe", "--always").decode().strip()
    except failures:
        return ""
    try:
        changes = _changes()
    except failures:
        changes = os.urandom(32)
    return f"{commit}-dirty-{hashlib.sha256(changes).hexdigest()[:12]}" if changes else commit


def _changes() -> bytes:
    """Return the difference to the commit. Raises OSError and SubprocessError."""
    root = Path(os.fsdecode(_git("rev-parse", "--show-toplevel").removesuffix(b"\n")))
    parts = [_git("diff", "--no-ext-diff", "--no-textconv", "--binary", "HEAD")]
    new = _git("ls-files", "--others", "--exclude-standard", "--full-name", "-z", "--", ":/*.py")
    for name in sorted(filter(None, new.split(b"\0"))):
        content = (root / os.fsdecode(name)).read_bytes()
        parts.append(name + b"\0" + hashlib.sha256(content).digest())
    return b"".join(parts)


def _git(*arguments: str) -> bytes:
    command = ["git", *arguments]
    return subprocess.run(command, capture_output=True, timeout=_GIT_SECONDS, check=True).stdout
