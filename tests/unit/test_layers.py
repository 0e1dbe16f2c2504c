"""Each import contract of pyproject.toml holds, and breaks when a violation is planted."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("actuator", "generic", "extensions")
LINT = "from importlinter.cli import lint_imports_command; lint_imports_command()"
FOLDERS = "extensions, then generic, then actuator"
REST = "nothing imports hack or tests"
ROOMS = "imports between the rooms of generic go one way"
CYCLES = "no import cycle inside a room"
CONTRACT = "the contract has no network"
BORDER = "extensions import public modules only"
PLANTED = [
    (
        "actuator/meta.py",
        "import generic.kube.store",
        FOLDERS,
        "actuator.meta -> generic.kube.store",
    ),
    (
        "generic/kube/store.py",
        "import extensions.aws",
        FOLDERS,
        "generic.kube.store -> extensions.aws",
    ),
    ("generic/kube/store.py", "import hack.bench", REST, "generic.kube.store -> hack"),
    ("extensions/aws/tags.py", "from tests import x", REST, "extensions.aws.tags -> tests"),
    (
        "generic/kube/client.py",
        "import generic.reconciler.reconciler",
        ROOMS,
        "generic.kube.client -> generic.reconciler.reconciler",
    ),
    (
        "generic/kube/store.py",
        "from generic.serving import metrics",
        ROOMS,
        "generic.kube.store -> generic.serving.metrics",
    ),
    (
        "generic/kube/kubeconfig.py",
        "import generic.kube.client",
        CYCLES,
        "No cycles are allowed in generic.kube.",
    ),
    (
        "extensions/aws/tags.py",
        "from generic.library.manifests import manifest",
        BORDER,
        "extensions.aws.tags -> generic.library.manifests",
    ),
    ("actuator/meta.py", "import threading", CONTRACT, "actuator.meta -> threading"),
    ("actuator/v1alpha1/controlplane.py", "import urllib3", CONTRACT, "controlplane -> urllib3"),
    (
        "generic/testing/seed.py",
        "import boto3",
        "the machinery knows no cloud",
        "generic.testing.seed -> boto3",
    ),
    (
        "extensions/other/it.py",
        "import extensions.aws.tags",
        "a sample can be copied out",
        "extensions.other",
    ),
]


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
        command, cwd=tree, capture_output=True, check=False, text=True, timeout=240
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


def test_a_module_outside_the_rooms_is_refused(tree):
    plant(tree / "generic/unplaced.py", "")
    checking = checked(tree)
    assert checking.returncode == 1
    assert "unplaced" in checking.stdout


def test_each_planted_violation_breaks_its_contract(tree):
    """All planted at once: to read the imports anew takes longer than all the rest."""
    for module, line, *_ in PLANTED:
        plant(tree / module, line)
    checking = checked(tree)
    assert checking.returncode == 1
    broken = [text for text in checking.stdout.splitlines() if " BROKEN" in text]
    for module, line, contract, said in PLANTED:
        assert any(text.startswith(contract) for text in broken), (module, line, checking.stdout)
        assert said in checking.stdout, (module, line, checking.stdout)
