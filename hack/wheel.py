"""Build the wheel into `dist/` and check its content: `make wheel`."""

import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
DIST = ROOT / "dist"
PACKAGES = {"actuator", "generic", "extensions"}
ENTRY_POINTS = ("actuator = generic.tools.cli.main:main",)


def main() -> None:
    """Exit with status 1 if the wheel lacks a file or has one that is not for users."""
    shutil.rmtree(DIST, ignore_errors=True)
    wheel = build()
    faults = list(look_into(wheel))
    for fault in faults:
        print(f"{wheel.name}: {fault}", file=sys.stderr)
    print(wheel.relative_to(ROOT))
    sys.exit(bool(faults))


def build() -> Path:
    """Build without isolation: the build tools are locked like all dependencies."""
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", f"--outdir={DIST}", ROOT]
    building = subprocess.run(command, capture_output=True, check=False, text=True)
    if building.returncode:
        sys.exit(building.stdout + building.stderr)
    (wheel,) = DIST.glob("*.whl")
    return wheel


def look_into(path: Path) -> Iterator[str]:
    """Yield the faults of the wheel, one phrase each."""
    with zipfile.ZipFile(path) as wheel:
        names = wheel.namelist()
        (declared,) = (name for name in names if name.endswith("/entry_points.txt"))
        entry_points = wheel.read(declared).decode()
    yield from (f"lacks {name}" for name in sources() if name not in names)
    yield from (
        f"lacks the entry point {line}" for line in ENTRY_POINTS if line not in entry_points
    )
    yield from (f"must not have {name}" for name in strangers(names))


def sources() -> Iterator[str]:
    """Yield every file of our packages: code, templates, and other data."""
    for package in sorted(PACKAGES):
        for path in sorted((ROOT / package).rglob("*")):
            if path.is_file() and path.suffix != ".pyc":
                yield str(path.relative_to(ROOT))


def strangers(names: Sequence[str]) -> list[str]:
    """Return the files that belong neither to our packages nor to the wheel's metadata."""
    tops = {name: name.partition("/")[0] for name in names}
    return [
        name for name, top in tops.items() if top not in PACKAGES and not top.endswith(".dist-info")
    ]


if __name__ == "__main__":
    main()
