"""Each import contract of pyproject.toml holds, and breaks when a violation is planted."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("actuator", "generic", "extensions")
LINT = "from importlinter.cli import lint_imports_command; lint_imports_command()"


@pytest.fixture
def tree(tmp_path) -> Path:
    """A copy of our packages that may be spoilt."""
    for package in PACKAGES:
        shutil.copytree(
            ROOT / package,
            tmp_path / package,
            ignore=lambda folder, names: [
                name for name in names if Path(folder, name).is_file() and not name.endswith(".py")
            ],
        )
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def checked(tree: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", LINT, "--no-cache"]
    return subprocess.run(
        command, cwd=tree, capture_output=True, check=False, text=True, timeout=60
    )


def plant(path: Path, line: str) -> None:
    path.parent.mkdir(exist_ok=True)
    (path.parent / "__init__.py").touch()
    with path.open("a") as file:
        file.write(f"\n{line}\n")


def test_all_contracts_hold(tree):
    checking = checked(tree)
    assert checking.returncode == 0, checking.stdout
    assert " 0 broken." in checking.stdout


@pytest.mark.parametrize(
    ("module", "line", "contract"),
    [
        ("actuator/meta.py", "import generic.store", "extensions, then generic, then actuator"),
        ("generic/store.py", "import extensions.aws", "extensions, then generic, then actuator"),
        ("generic/store.py", "import hack.bench", "nothing imports hack or tests"),
        ("extensions/aws/tags.py", "from tests import x", "nothing imports hack or tests"),
        ("generic/client.py", "import generic.reconciler", "imports inside generic go down"),
        ("generic/store.py", "from generic import metrics", "imports inside generic go down"),
        ("generic/unplaced.py", "", "imports inside generic go down"),
        ("actuator/meta.py", "import threading", "the contract has no network"),
        ("actuator/v1alpha1/controlplane.py", "import urllib3", "the contract has no network"),
        ("generic/seed.py", "import boto3", "the machinery knows no cloud"),
        ("extensions/other/it.py", "import extensions.aws.tags", "a sample can be copied out"),
    ],
)
def test_a_planted_violation_breaks_its_contract(tree, module, line, contract):
    plant(tree / module, line)
    checking = checked(tree)
    assert checking.returncode == 1
    broken = [text for text in checking.stdout.splitlines() if text.endswith(" BROKEN")]
    assert any(text.startswith(contract) for text in broken), checking.stdout
