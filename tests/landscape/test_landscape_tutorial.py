"""The page about the landscape: a newcomer's extension of one kind, with each command as printed.

The commands run as programs in an empty folder, with a landscape that keeps running in between.
"""

import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from generic.library.programs.daemons import DaemonFiles
from tests.support.cluster.harness import eventually
from tests.support.objects.present import present

PAGE = Path(__file__).parents[2] / "docs" / "landscape.md"
BY_HAND = "Try the same by hand:"
PROGRAM = "from generic.tools.cli.main import main; main()"
NAME = "tutorial"
UP = "actuator landscape up mine:extension"
DOWN = "actuator landscape down"


def tutorial():
    """The Python file and the commands of the first section."""
    section = PAGE.read_text().partition("## Your extension in a real Gardener")[2]
    (code,) = re.findall(r"```python\n(.*?)```", section.partition("## ")[0], re.DOTALL)[:1]
    commands = re.findall(r"```\n(actuator landscape up mine.*?)```", section, re.DOTALL)[0]
    return code, commands.splitlines()


def by_hand():
    """The commands of a rehearsal by hand."""
    return PAGE.read_text().partition(BY_HAND)[2].split("```")[1].split("\n")[1:-1]


class Shell:
    """Runs commands of the page in a folder, each `actuator landscape` with the test's name."""

    def __init__(self, folder):
        self.folder = folder

    def run(self, command, status=0):
        inner = re.sub(r"\$\((.*?)\)", lambda found: self.run(found[1]).stdout.strip(), command)
        words = inner.split()
        assert words[0] == "actuator"
        more = [f"--name={NAME}"] if words[1] == "landscape" else []
        started = [sys.executable, "-c", PROGRAM, *words[1:], *more]
        done = subprocess.run(started, cwd=self.folder, capture_output=True, text=True, check=False)
        assert done.returncode == status, f"{command}\n{done.stdout}{done.stderr}"
        return done


@pytest.fixture
def shell(tmp_path):
    shell = Shell(tmp_path)
    yield shell
    shell.run(DOWN)


def test_each_command_of_the_page_works_as_printed(shell, processes_of):
    code, commands = tutorial()
    (shell.folder / "mine.py").write_text(code)
    assert (commands[0], commands[-1]) == (UP, DOWN)
    said = {command: shell.run(command).stdout for command in commands[:-1]}
    assert "Infrastructure" not in said[UP].partition("simulated")[2].partition("real")[0]
    assert "ControlPlane" in said[UP], "the kinds that nobody serves are simulated"
    created = said["actuator landscape shoot create first"]
    assert "Create Succeeded 100 %" in created
    assert "shoot garden-dev/first" in said["actuator landscape status"]
    (explained,) = (text for command, text in said.items() if " explain " in command)
    assert "Infrastructure" in explained
    assert said["actuator landscape shoot delete first"].endswith("shoot first: gone\n")
    found = json.loads(shell.run("actuator landscape status -o json").stdout)
    secret = [Path(seed["kubeconfig"]) for seed in (found["garden"], *found["seeds"].values())]
    assert [stat.S_IMODE(path.stat().st_mode) for path in secret] == [0o600, 0o600]
    shell.run(DOWN)
    assert not any(path.exists() for path in secret)
    assert processes_of(Path(found["logs"]).parent) == []


def test_a_rehearsal_by_hand_gets_stuck_and_is_forced(shell):
    *commands, logs, down = by_hand()
    stuck = "actuator landscape shoot delete mine --timeout 120"
    assert stuck in commands
    said = {
        command: shell.run(command, status=int(command == stuck)).stdout for command in commands
    }
    assert "AWS::EC2::VPC" in said["actuator landscape outside list"]
    assert "ERR_INFRA_UNAUTHENTICATED" in said[stuck]
    assert said["actuator landscape shoot force-delete mine"].endswith("shoot mine: gone\n")
    assert "AWS::EC2::VPC" in shell.run("actuator landscape outside list").stdout
    assert len(shell.run(logs).stdout.splitlines()) == 20
    assert "gardenlet-seed-1" in shell.run("actuator landscape logs").stdout
    shell.run(down)


def test_the_state_of_a_killed_landscape_is_noticed_and_a_second_one_starts(shell):
    (shell.folder / "mine.py").write_text(tutorial()[0])
    shell.run(UP)
    found = json.loads(shell.run("actuator landscape status -o json").stdout)
    assert "already running" in shell.run(UP).stderr
    other = shell.run(f"{UP} --seeds 2", status=1).stderr
    assert "run `actuator landscape down --name=tutorial`, or use --name" in other
    state = DaemonFiles(Path(found["garden"]["kubeconfig"]).parent)
    os.kill(present(state.pid()), 9)
    eventually(lambda: not Path(found["logs"]).exists())
    said = shell.run("actuator landscape status", status=1).stderr
    assert "is not running; run `actuator landscape up --name=tutorial`" in said
    assert "landscape 'tutorial': Gardener" in shell.run(UP).stdout
