"""`actuator run`: run an extension against a seed or the embedded cluster."""

from typing import Any

import attrs
import click

from generic.controller import logs
from generic.manager.flags import FLAGS, PREFIX, ManagerCommand, from_values
from generic.manager.manager import Manager
from generic.tools.cli.load import populate, types_option, with_flags


@click.command(cls=ManagerCommand, context_settings={"auto_envvar_prefix": PREFIX})
@click.argument("extension", default="extensions.aws:extension")
@types_option
@click.option("--embedded", is_flag=True, help="Start an embedded cluster and use it.")
@with_flags(*(flag.name for flag in FLAGS))
def run(extension: str, types: tuple[str, ...], embedded: bool, **values: Any) -> None:
    """Run EXTENSION (MODULE:OBJECT), an Actuator or a function of a Manager, until SIGTERM."""
    options = from_values(**values)
    logs.configure(options.log_level, options.log_format)
    manager = Manager(options)
    populate(manager, extension, types)
    if not embedded:
        manager.run()
    from actuator.v1alpha1 import KINDS, Cluster
    from generic.reconciler.orphans import Orphan
    from generic.testing.envtest import Environment
    from generic.testing.seed import install

    click.echo("starting the embedded cluster", err=True)
    with Environment(progress=lambda line: click.echo(line, err=True)) as environment:
        own = [one.cls for one in manager.registrations if one.cls not in KINDS]
        classes = [*KINDS, Cluster, Orphan, *dict.fromkeys(own)]
        click.echo(f"installing {len(classes)} CRDs", err=True)
        install(environment, classes)
        click.echo(f"export KUBECONFIG={environment.kubeconfig}", err=True)
        manager.options = attrs.evolve(options, kubeconfig=environment.kubeconfig, context=None)
        manager.run()
