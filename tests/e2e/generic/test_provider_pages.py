"""docs/realistic-provider.md and docs/in-shoot.md: their files and commands work in one project.

`make newcomer` executes all of them with the wheel. Here drills have one shoot, crash tests one
operation, and the landscape and the drill of the migration are left to their own tests.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from actuator import NotFound, Resource
from actuator.interface import SECRETS
from generic.kube.client import connect
from generic.kube.remote import Remote
from generic.testing import free_port
from tests.support.programs.dev import ACTUATOR, Development

DOCS = Path(__file__).parents[3] / "docs"
PROVIDER = (DOCS / "realistic-provider.md").read_text()
IN_SHOOT = (DOCS / "in-shoot.md").read_text()
FILE = re.compile(r"^(Create|Append to) `(\S+)`:\n\n```\w+\n(.*?)^```", re.DOTALL | re.MULTILINE)
PORT = "8017"
SHORTER = {"drill": ["--shoots", "1"], "explore": ["--operation", "migrate"]}
ACCESS = "gardener-internal"
ID = "shoot--dev--local"
CONFIG_MAPS = Resource("v1", "configmaps")
SECONDS = 400.0
"""Time limit of a command; only a failure reaches it."""


@pytest.fixture
def project(tmp_path, monkeypatch):
    """The project of the page, and its shell. The cloud listens at a port of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "polar"))
    for line in commands_of(PROVIDER, "Start the project"):
        if line.startswith("actuator"):
            run(line)
    monkeypatch.chdir("polar")
    port = str(free_port())
    write_files(PROVIDER, port)
    return port


def write_files(page, port):
    for act, name, text in FILE.findall(page):
        with Path(name).open("a" if act == "Append to" else "w") as file:
            file.write(text.replace(PORT, port))


def commands_of(page, section):
    """The lines of the shell in a section."""
    part = re.search(rf"^## {section}\n(.*?)(?=^## |\Z)", page, re.DOTALL | re.MULTILINE)
    assert part, section
    blocks = re.findall(r"^```sh\n(.*?)^```", part[1], re.DOTALL | re.MULTILINE)
    assert blocks, section
    return "".join(blocks).splitlines()


def run(line, *more):
    program, *arguments = line.split()
    if program == "actuator":
        words = [*ACTUATOR, *arguments, *SHORTER.get(arguments[0], [])]
    elif program == "pytest":
        words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *more]
    else:
        assert program == "curl"
        words = [program, "--silent", "--fail", *arguments]
    done = subprocess.run(words, check=False, capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, f"{line}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done.stdout


@pytest.mark.long
@pytest.mark.timeout(1500)
def test_a_realistic_provider_is_tested_rehearsed_and_killed(project):
    """Each line in the form of the page; of the drills, that of a dead cloud."""
    sections = ("Test it", "Rehearse force deletions", "Kill the manager at each call")
    lines = [line for section in sections for line in commands_of(PROVIDER, section)]
    alike = ("credentials-revoked", "cloud-slow")
    chosen = [line for line in lines if not any(name in line for name in alike)]
    assert len(lines) == len(chosen) + len(alike)
    ran = [run(line, "tests/test_polar.py") for line in chosen]
    tested, drilled, explored = ran
    assert "2 passed" in tested
    assert drilled.count("holds") == 10
    assert "not reached" in explored


@pytest.mark.long
@pytest.mark.timeout(1500)
def test_a_shoot_with_an_api_server_lives_in_a_development_cluster(project, tmp_path):
    write_files(IN_SHOOT, project)
    server = subprocess.Popen([sys.executable, "-m", "polar.server", project])
    serves = "the manager serves Infrastructure polar"
    arguments = ("dev", "polar:extension", "--with-shoot-api")
    development = Development(tmp_path / "dev.log", serves, *arguments)
    try:
        named = re.search(r"KUBECONFIG=(\S+)", development.text())
        assert named
        play(connect(Path(named[1])), project)
    finally:
        development.kill()
        server.kill()
        server.wait()


def play(seed, port):
    """Run the commands of the page; the shoot keeps its API server until it is force-deleted."""
    kept = None
    for line in commands_of(PROVIDER, "Develop it"):
        shown = run(line.replace(PORT, port))
        if "create" in line:
            assert kept != (kept := inside(seed))
        if "migrate" in line:
            with pytest.raises(NotFound):
                seed.get(SECRETS, ACCESS, ID)
        if "restore" in line:
            assert inside(seed) == kept
        if "force-delete" in line:
            assert "deleted; open orphans: 3" in shown


def inside(seed):
    """The access to the shoot in the seed, and the objects of the extension in the shoot."""
    shoot = Remote(seed).shoot(ID)
    found = [item["metadata"] for item in shoot.list(CONFIG_MAPS, "kube-system")]
    own = {meta["name"]: meta["uid"] for meta in found if meta["name"].startswith("polar-")}
    assert len(own) == 2
    return own, seed.get(SECRETS, ACCESS, ID)["data"]


@pytest.mark.long
@pytest.mark.timeout(1500)
def test_an_extension_in_the_shoot_keeps_its_objects_over_a_migration(project):
    """The page's drill is that of `test_shoot_api.py`, for another extension."""
    write_files(IN_SHOOT, project)
    for line in commands_of(IN_SHOOT, "Test it with an API server of the shoot"):
        assert "1 passed" in run(line, "tests/test_agent.py")
    [drill] = commands_of(IN_SHOOT, "Rehearse the migration")
    assert "--scenario migration --shoots 1" in drill
