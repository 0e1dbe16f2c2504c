"""Programs from the packages of the machine's distribution, without root and without installing.

apt uses its own sources, with lists and archives in the framework's cache: apt downloads the
missing parts of a package and of its dependencies, and dpkg-deb unpacks them. Works on Debian and
its derivatives.
"""

import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from extensions.externaldatabase.servers.daemon import ServerError
from generic.library.programs import cache_directory, locked

_SECONDS = 600.0
_STATUS = "/var/lib/dpkg/status"
"""The packages installed on the machine; all users may read it."""


def unpacked(package: str) -> Path:
    """Return the folder in the cache with the package unpacked; it contains `usr` and so on.

    Of several concurrent processes, one fetches and the others wait. Raises ServerError.
    """
    cache = cache_directory()
    folder = cache / f"{package}-{_system()}"
    if not folder.is_dir():
        with locked(cache / f"{folder.name}.lock", lambda _progress: None):
            if not folder.is_dir():
                _fetch(package, folder)
    return folder


def _system() -> str:
    """Return the system that packages are built for: "debian-12-x86_64"."""
    try:
        release = platform.freedesktop_os_release()
    except OSError:  # not Linux
        release = {}
    return f"{release.get('ID', 'unknown')}-{release.get('VERSION_ID', 'x')}-{platform.machine()}"


def _fetch(package: str, folder: Path) -> None:
    """Unpack beside the final folder, then rename, so that the folder is always complete."""
    prefix = f"{folder.name}.fetching-"
    for stale in folder.parent.glob(f"{prefix}*"):  # left by a killed process: we hold the lock
        shutil.rmtree(stale, ignore_errors=True)
    workspace = Path(tempfile.mkdtemp(prefix=prefix, dir=folder.parent))
    try:
        root = workspace / "root"
        root.mkdir()
        for archive in _download(package, workspace):
            _run(package, ["dpkg-deb", "--extract", archive, root])
        root.rename(folder)
    finally:
        shutil.rmtree(workspace, ignore_errors=True)


def _download(package: str, workspace: Path) -> list[Path]:
    """Return the archives of the package and of its missing dependencies."""
    options = _options(workspace)
    _run(package, ["apt-get", *options, "update"])
    only = ["--yes", "--download-only", "--no-install-recommends", "install", package]
    _run(package, ["apt-get", *options, *only])
    return sorted((workspace / "cache" / "archives").glob("*.deb"))


def _options(workspace: Path) -> list[str]:
    """Make apt write only into the workspace, as the user that runs it."""
    for folder in ("state/lists/partial", "cache/archives/partial"):
        (workspace / folder).mkdir(parents=True)
    settings = {
        "Dir::State": workspace / "state",
        "Dir::State::status": _STATUS,
        "Dir::Cache": workspace / "cache",
        "Debug::NoLocking": "1",
        "APT::Sandbox::User": "root",
        "Acquire::Retries": "3",
    }
    return ["--quiet", *(f"--option={name}={value}" for name, value in settings.items())]


def _run(package: str, command: Sequence[str | Path]) -> None:
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"},
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ServerError(f"{package} cannot be fetched: {error}; install it") from error
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()[-1:] or ["no output"]
        text = f"{command[0]} ended with status {done.returncode}: {said[0]}"
        raise ServerError(f"{package} cannot be fetched ({text}); install it")
