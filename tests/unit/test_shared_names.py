"""An author's own folders `generic` and `extensions` break nothing, however a program starts."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COMMAND = "from generic.tools.cli.main import main; main()"
OWN = """
from actuator import Actuator
from actuator.v1alpha1 import Network

class Mine(Actuator[Network]):
    def reconcile(self, ctx, obj, cluster): ...
    def delete(self, ctx, obj, cluster): ...

def extension(manager):
    manager.add(Mine(), type="mine")
"""


def run(folder, *arguments):
    """Run Python in an author's folder, with the framework behind it as site-packages is."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, *arguments]
    return subprocess.run(
        command,
        capture_output=True,
        check=False,
        cwd=folder,
        env=environment,
        text=True,
        timeout=60,
    )


def printed(folder, *arguments):
    done = run(folder, *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.strip()


def write(path, text=""):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize("own", ["generic.py", "generic/__init__.py", "generic/data.txt"])
def test_a_program_beside_its_own_generic_imports_the_framework(tmp_path, own):
    write(tmp_path / own)
    write(tmp_path / "main.py", "import actuator\nfrom generic import Manager\nprint(Manager)\n")
    assert printed(tmp_path, "main.py") == "<class 'generic.manager.manager.Manager'>"


def test_own_submodules_of_generic_are_found_behind_those_of_the_framework(tmp_path):
    write(tmp_path / "generic" / "__init__.py")
    write(tmp_path / "generic" / "mine.py", "word = 'found'\n")
    write(tmp_path / "generic" / "controller" / "__init__.py", "raise AssertionError\n")
    code = "import actuator, generic.controller; from generic.mine import word; print(word)"
    assert printed(tmp_path, "-c", code) == "found"


@pytest.mark.parametrize(
    "own", ["extensions.py", "extensions/__init__.py", "extensions/acme/__init__.py"]
)
def test_own_extensions_and_samples_are_found_together(tmp_path, own):
    write(tmp_path / own)
    write(tmp_path / "extensions" / "acme" / "values.py", "word = 'found'\n")
    code = "import actuator, extensions.relations.kinds as sample; print(sample.GROUP)"
    assert printed(tmp_path, "-c", code) == "relations.example.org"
    if own != "extensions.py":
        code = "import actuator; from extensions.acme.values import word; print(word)"
        assert printed(tmp_path, "-c", code) == "found"


def test_own_extensions_are_found_without_an_import_of_the_contract(tmp_path):
    write(tmp_path / "extensions" / "acme.py", "word = 'found'\n")
    assert printed(tmp_path, "-c", "from extensions.acme import word; print(word)") == "found"


def test_a_copied_sample_replaces_the_original(tmp_path):
    write(tmp_path / "extensions" / "aws" / "__init__.py", OWN)
    printed_roles = printed(tmp_path, "-P", "-c", COMMAND, "rbac", "extensions.aws:extension")
    assert "- networks\n" in printed_roles
    assert "- infrastructures\n" not in printed_roles


def test_commands_serve_own_and_sample_extensions_beside_own_folders(tmp_path):
    write(tmp_path / "generic" / "__init__.py", "raise AssertionError\n")
    write(tmp_path / "generic" / "mine.py")
    write(tmp_path / "extensions" / "__init__.py")
    write(tmp_path / "extensions" / "acme.py", f"import generic.mine\n{OWN}")
    own = printed(tmp_path, "-P", "-c", COMMAND, "rbac", "extensions.acme:extension")
    assert "- networks\n" in own
    sample = printed(tmp_path, "-P", "-c", COMMAND, "rbac", "extensions.networkfilter:extension")
    assert "- extensions\n" in sample


def test_child_processes_of_a_drill_import_the_framework(tmp_path):
    write(tmp_path / "generic.py", "raise AssertionError\n")
    code = """
from pathlib import Path
import actuator
from generic.testing.drill.kills.child import Order
from generic.testing.drill.kills.processes import CrashRunner
rehearsal = "extensions.relations.rehearsal:RelationsRehearsal"
runner = CrashRunner([rehearsal], Path("log"))
runner._begin(Order(kubeconfig="", type="x", shared=[{}], calls="calls"))
print(True)
runner.close()
"""
    assert printed(tmp_path, "-c", code) == "True"
