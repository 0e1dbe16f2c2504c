"""The reference, as Sphinx renders it, has each promised name, command and flag."""

import re
import subprocess
import sys
from importlib import import_module
from inspect import isclass

import click

from generic.tools.cli.main import cli
from hack.public_api import fields, members, modules, names
from tests.support.pages.documented import ROOT

SPHINX = (sys.executable, "-m", "sphinx", "-q", "-W", "-b", "xml", "-c", "docs")
PAGES = ("actuator", "kinds", "generic", "library", "testing")


def commands(command, path):
    """The path of each visible command, and the command."""
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            if found is not None and not found.hidden:
                yield from commands(found, f"{path} {name}")


def rendered(folder, *pages):
    paths = [f"docs/reference/{page}" for page in pages]
    patterns = ",".join(f"{path}.md" for path in paths)
    only = ("-D", f"include_patterns={patterns}", "-D", f"root_doc={paths[0]}")
    quiet = ("-D", "suppress_warnings=ref.python,myst.xref_missing,toc.not_included")
    line = (*SPHINX, "-d", folder / "trees", *only, *quiet, ".", folder)
    subprocess.run(line, cwd=ROOT, check=True, capture_output=True)
    return "".join((folder / f"{path}.xml").read_text() for path in paths)


def promised(module):
    """The names of a module, and those of the members of its classes."""
    shown = {*names(module)} - ({*names("actuator")} if module != "actuator" else set())
    for name in shown:
        yield f"{module}.{name}"
        value = getattr(import_module(module), name)
        if isclass(value) and value.__name__ == name:
            yield from (f"{module}.{name}.{member}" for member in (*fields(value), *members(value)))


def test_the_rendered_reference_has_each_promised_name_and_member_and_no_other(tmp_path):
    shown = re.findall(r'<desc_signature [^>]*ids="([\w.]+)', rendered(tmp_path, *PAGES))
    expected = [name for module in modules() for name in promised(module)]
    assert len(expected) > 800
    assert sorted(shown) == sorted(expected)


def test_the_rendered_page_has_each_command_and_flag_as_it_is_typed(tmp_path):
    text = rendered(tmp_path, "cli")
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
