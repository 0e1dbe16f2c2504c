"""The reference of the command line, as Sphinx renders it, has each command and flag to copy."""

import subprocess
import sys

import click

from generic.tools.cli.main import cli
from tests.support.pages.documented import ROOT

PAGE = "docs/reference/cli"
ONLY = ["-D", f"include_patterns={PAGE}.md", "-D", f"root_doc={PAGE}"]


def commands(command, path):
    """The path of each visible command, and the command."""
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            if found is not None and not found.hidden:
                yield from commands(found, f"{path} {name}")


def test_the_rendered_page_has_each_command_and_flag_as_it_is_typed(tmp_path):
    line = [
        sys.executable,
        "-m",
        "sphinx",
        "-q",
        "-b",
        "xml",
        "-c",
        "docs",
        "-d",
        tmp_path / "trees",
    ]
    subprocess.run([*line, *ONLY, ".", tmp_path], cwd=ROOT, check=True, capture_output=True)
    text = (tmp_path / f"{PAGE}.xml").read_text()
    found = dict(commands(cli, "actuator"))
    assert len(found) > 30
    flags = {
        flag
        for command in found.values()
        for param in command.params
        if isinstance(param, click.Option) and not param.hidden
        for flag in (*param.opts, *param.secondary_opts)
    }
    assert [name for name in (*found, *flags) if name not in text] == []
    assert [
        line
        for line in text.splitlines()
        if set(line) & set("\u2013\u2014\u2018\u2019\u201c\u201d")
    ] == []
