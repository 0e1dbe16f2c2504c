"""`actuator image`: the Dockerfile of an extension, from the templates in `packaging/image`."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import click

from generic.kube.printable import echo
from generic.manager.manager import Manager
from generic.tools.cli.chart import write
from generic.tools.cli.load import populate
from generic.tools.packaging.chart import OPTIONS

__all__ = ["image"]

_FOLDER = click.Path(path_type=Path, file_okay=False)


@click.command()
@click.argument("extension", default="extensions.aws:extension")
@click.option("--output", type=_FOLDER, required=True, help="Project folder; replaces its files.")
@click.option("--extra", "extras", multiple=True, help="Extra to install, such as aws.")
@click.option("--helm", is_flag=True, help="Include helm, for an extension that renders charts.")
def image(extension: str, output: Path, extras: tuple[str, ...], helm: bool) -> None:
    """Write a Dockerfile for EXTENSION (MODULE:OBJECT) into the folder of its project."""
    populate(Manager(OPTIONS), extension, ("any",))
    if not all(re.fullmatch(r"[\w.-]+", extra, re.ASCII) for extra in extras):
        raise click.BadParameter("write the name of an extra, like aws", param_hint="--extra")
    values = {"EXTENSION": extension, "HELM": "yes" if helm else "no"}
    values["EXTRAS"] = f"[{','.join(extras)}]" if extras else ""
    for template in files("generic.tools.packaging").joinpath("image").iterdir():
        text = template.read_text(encoding="utf-8")
        for name, value in values.items():
            text = text.replace(f"@{name}@", value)
        write(output / template.name, text)
        echo(output / template.name)
