"""`actuator env`: run the embedded cluster alone, for kubectl and experiments."""

import re
from pathlib import Path

import click

from generic.library.charts import find_helm
from generic.library.programs import daemons
from generic.library.programs.cache import cache_directory
from generic.library.programs.daemons import DaemonFiles
from generic.testing.envtest import detached
from generic.testing.envtest.binaries import find_binaries

NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


def progress(line: str) -> None:
    """Print a line of progress to standard error."""
    click.echo(line, err=True)


def validated(_context: click.Context, _parameter: click.Parameter, value: str) -> str:
    """Return the name. Raises BadParameter if it is not a plain folder name."""
    if not NAME.fullmatch(value):
        raise click.BadParameter("expected lower-case letters, digits and inner hyphens")
    return value


name_option = click.option(
    "--name",
    default="default",
    show_default=True,
    callback=validated,
    help="Name, if several run side by side.",
)


@click.group("env")
def env() -> None:
    """Start and stop the embedded cluster."""


@env.command()
@name_option
def up(name: str) -> None:
    """Start the environment and leave it running."""
    daemons.interruptible()
    directory = _directory(name)
    _, started = detached.up(directory, progress)
    kubeconfig = DaemonFiles(directory).kubeconfig
    click.echo(f"environment {name!r}: {'started' if started else 'already running'}; to use it:")
    click.echo(f"  export KUBECONFIG={kubeconfig}")
    click.echo(f"to stop it:\n  actuator env down{'' if name == 'default' else f' --name {name}'}")


@env.command()
@name_option
def down(name: str) -> None:
    """Stop the environment and delete its objects."""
    stopped = detached.down(_directory(name))
    click.echo(f"environment {name!r} is {'stopped' if stopped else 'not running'}")


@env.command()
@name_option
@click.option("--raw", is_flag=True, help="Print the content instead of the path.")
def kubeconfig(name: str, raw: bool) -> None:
    """Print the path of the administrator's kubeconfig."""
    directory = _directory(name)
    if detached.access(directory) is None:
        raise click.ClickException(f"environment {name!r} is not running; run `actuator env up`")
    path = DaemonFiles(directory).kubeconfig
    click.echo(path.read_text() if raw else path, nl=not raw)


@env.command()
def build() -> None:
    """Find or build the programs of the cluster without starting it."""
    for path in find_binaries(progress).values():
        click.echo(path)
    click.echo(find_helm(progress))


def _directory(name: str) -> Path:
    return cache_directory() / "environments" / name
