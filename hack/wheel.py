"""Build the sdist and the wheel into `dist/` and check their content: `make wheel`.

The wheel is built from the sdist, which is complete then. The same commit gives the same bytes.
"""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
DIST = ROOT / "dist"
PACKAGES = {"actuator", "generic", "extensions"}
SBOM = "sbom.cdx.json"
BESIDE = {
    SBOM,
    *(".gitignore", "CHANGELOG.md", "LICENSE", "PKG-INFO", "README.md", "pyproject.toml"),
}
ENTRY_POINTS = ("actuator = generic.tools.cli.main:main",)


def main() -> None:
    """Exit with status 1 if a file lacks content or has content that is not for users."""
    shutil.rmtree(DIST, ignore_errors=True)
    sdist, wheel = build()
    found = [(wheel, fault) for fault in look_into(wheel)]
    found += [(sdist, f"must not have {name}") for name in strangers_of_sdist(sdist)]
    for path, fault in found:
        print(f"{path.name}: {fault}", file=sys.stderr)
    print(sdist.relative_to(ROOT), wheel.relative_to(ROOT), sep="\n")
    sys.exit(bool(found))


def build(root: Path = ROOT, dist: Path = DIST) -> tuple[Path, Path]:
    """Build without isolation: the build tools are locked like all dependencies."""
    command = [sys.executable, "-m", "build", "--no-isolation", f"--outdir={dist}", str(root)]
    git = ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"]
    time = subprocess.run(git, capture_output=True, check=False, text=True).stdout.strip()
    env = {"SOURCE_DATE_EPOCH": time or "1580601600", **os.environ}
    building = subprocess.run(command, env=env, capture_output=True, check=False, text=True)
    if building.returncode:
        sys.exit(building.stdout + building.stderr)
    (sdist,) = dist.glob("*.tar.gz")
    (wheel,) = dist.glob("*.whl")
    return sdist, wheel


def look_into(path: Path) -> Iterator[str]:
    """Yield the faults of the wheel, one phrase each."""
    with zipfile.ZipFile(path) as wheel:
        names = wheel.namelist()
        (declared,) = (name for name in names if name.endswith("/entry_points.txt"))
        entry_points = wheel.read(declared).decode()
    wanted = set(sources())
    yield from (f"lacks {name}" for name in sorted(wanted.difference(names)))
    yield from (
        f"lacks the entry point {line}" for line in ENTRY_POINTS if line not in entry_points
    )
    if not any(name.endswith(f".dist-info/sboms/{SBOM}") for name in names):
        yield f"lacks {SBOM}"
    ours = {name for name in names if ".dist-info/" not in name}
    yield from (f"must not have {name}" for name in sorted(ours - wanted))


def sources() -> Iterator[str]:
    """Yield every file of our packages: code, templates, and other data."""
    for package in sorted(PACKAGES):
        for path in sorted((ROOT / package).rglob("*")):
            if path.is_file() and path.suffix != ".pyc":
                yield str(path.relative_to(ROOT))


def strangers_of_sdist(path: Path) -> list[str]:
    """Return the files of the sdist that neither users nor the build of the wheel need."""
    with tarfile.open(path) as sdist:
        names = [name.partition("/")[2] for name in sdist.getnames()]
    return [name for name in names if name.partition("/")[0] not in PACKAGES | BESIDE]


if __name__ == "__main__":
    main()
