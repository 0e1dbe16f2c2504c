"""`actuator run`: run an extension against a seed."""

from typing import Any

import click

from generic.manager.flags import FLAGS, PREFIX, ManagerCommand
from generic.manager.options import Options
from generic.serving import logs
from generic.tools.cli.load import load_manager, types_option, with_flags


@click.command(cls=ManagerCommand, context_settings={"auto_envvar_prefix": PREFIX})
@click.argument("extension")
@types_option
@with_flags(*(flag.name for flag in FLAGS))
def run(extension: str, types: tuple[str, ...], **values: Any) -> None:
    """Run EXTENSION (MODULE:OBJECT), an Actuator or a function of a Manager, until SIGTERM."""
    options = Options(**values)
    logs.configure(options.log_level, options.log_format)
    load_manager(extension, types, options).run()
