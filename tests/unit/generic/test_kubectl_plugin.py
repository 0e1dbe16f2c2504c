"""`kubectl actuator`: kubectl runs a program `kubectl-actuator` with the words that follow."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture
def plugin(tmp_path):
    """The program that installers write for the entry point."""
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    module, _, function = scripts["kubectl-actuator"].partition(":")
    path = tmp_path / "kubectl-actuator"
    path.write_text(f"#!{sys.executable}\nfrom {module} import {function}\n{function}()\n")
    path.chmod(0o755)
    return lambda *words: subprocess.run(
        [path, *words], check=False, capture_output=True, text=True
    )


@pytest.mark.parametrize("words", [[], ["orphans"], ["orphans", "list"], ["drill"], ["stuck"]])
def test_usage_names_the_plugin(plugin, words):
    done = plugin(*words, "--help")
    assert done.returncode == 0
    assert done.stdout.startswith(f"Usage: {' '.join(['kubectl actuator', *words])} [OPTIONS]")


def test_errors_and_statuses_are_those_of_the_command(plugin):
    done = plugin("crds", "--only", "x")
    assert done.returncode == 2
    assert "Try 'kubectl actuator crds --help' for help." in done.stderr
    assert plugin("explain", "x", "--kubeconfig", "/no/file").returncode == 1
