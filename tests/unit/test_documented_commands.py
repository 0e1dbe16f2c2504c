"""Every `actuator` command in README, docs, runbooks and samples exists, with its options."""

import subprocess
import sys

import click
import pytest

from generic.tools.cli.main import cli
from tests.support.pages.documented import ROOT, commands


def problem(text):
    """The first word of the command that the command line does not know, or None."""
    command: click.Command | None = cli
    words = text.split()[1:]
    while isinstance(command, click.Group) and words and words[0] != "/":
        name = words.pop(0).rstrip(",")
        command = command.get_command(click.Context(command), name)
        if command is None:
            return name
    assert command is not None
    known = {name for param in command.params for name in (*param.opts, *param.secondary_opts)}
    used = [word.partition("=")[0].rstrip(",") for word in words if word.startswith("--")]
    return next((item for item in used if item not in {*known, "--help"}), None)


@pytest.mark.parametrize(("page", "text"), sorted(set(commands())))
def test_each_documented_command_exists_with_its_options(page, text):
    assert problem(text) is None


def test_a_command_that_does_not_exist_is_found():
    assert len(set(commands())) > 60
    assert problem("actuator explane NAMESPACE") == "explane"
    assert problem("actuator drill --shoot 3") == "--shoot"
    assert problem("actuator orphans list --all") is None


def test_commands_are_completed_without_loading_any():
    code = (
        "import sys; from click import Context; from generic.tools.cli.main import cli; "
        "print(*(one.value for one in cli.shell_complete(Context(cli), 'd'))); "
        "print(*(name for name in sys.modules if name.startswith('generic.tools.cli.')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    commands, modules = done.stdout.splitlines()
    assert commands == "dev drill drain docs dashboards"
    assert modules == "generic.tools.cli.statuses generic.tools.cli.main"


def test_a_command_that_cannot_be_loaded_has_no_completion(monkeypatch):
    monkeypatch.setitem(sys.modules, "generic.tools.cli.env", None)
    assert cli.get_command(click.Context(cli, resilient_parsing=True), "env") is None
    with pytest.raises(ModuleNotFoundError):
        cli.get_command(click.Context(cli), "env")
