"""Other people's distributions of the same names are noticed, by one clear sentence."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from generic.tools.package_conflicts import check_packages

CHECK = """
import sys
sys.path.insert(0, sys.argv[1])
from actuator.errors import ConfigurationError
from generic.tools import package_conflicts
sys.path.insert(0, sys.argv[2])
try:
    package_conflicts.check_packages()
except ConfigurationError as error:
    sys.exit(f"{type(error).__name__}: {error}")
"""


def checked_beside(planted: Path) -> subprocess.CompletedProcess[str]:
    ours = Path(__file__).parents[2]
    command = [sys.executable, "-c", CHECK, str(ours), str(planted)]
    return subprocess.run(command, capture_output=True, check=False, text=True, timeout=120)


def plant_distribution(folder: Path, name: str) -> None:
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")


def test_alone_nothing_is_reported(tmp_path):
    beside = checked_beside(tmp_path)
    assert (beside.returncode, beside.stderr) == (0, "")


@pytest.mark.parametrize("name", ["actuator", "generic", "extensions"])
def test_a_distribution_that_has_our_name_is_named_with_the_way_out(tmp_path, name):
    plant_distribution(tmp_path, name)
    beside = checked_beside(tmp_path)
    assert beside.returncode == 1
    assert f"installed with gardener-actuator: {name};" in beside.stderr
    assert f"pip uninstall {name} && pip install --force-reinstall gardener-actuator" in (
        beside.stderr
    )
    assert len(beside.stderr.splitlines()) == 1


def test_all_that_are_there_are_named_at_once(tmp_path):
    plant_distribution(tmp_path, "actuator")
    plant_distribution(tmp_path, "extensions")
    assert "pip uninstall actuator extensions &&" in checked_beside(tmp_path).stderr


def test_a_distribution_whose_name_only_contains_ours_is_no_conflict(tmp_path):
    plant_distribution(tmp_path, "generic_tools")
    assert checked_beside(tmp_path).returncode == 0


def test_it_costs_a_few_milliseconds():
    check_packages()
    taken = []
    for _ in range(5):
        started = time.perf_counter()
        check_packages()
        taken.append(time.perf_counter() - started)
    assert min(taken) < 0.02
