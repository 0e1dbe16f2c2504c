"""`actuator new`: write a project, or merge a later version of its template into it."""

from pathlib import Path

import click

from actuator import v1alpha1
from actuator.errors import ConfigurationError
from actuator.suggestions import did_you_mean
from generic.kube.printable import echo
from generic.tools.packaging import projects

_KINDS = [cls.KIND.name for cls in v1alpha1.KINDS]


@click.command()
@click.argument("name", required=False)
@click.option("--kind", "kinds", multiple=True, help="Gardener kind; default: Infrastructure.")
@click.option("--own-kind", "own_kinds", multiple=True, help="Kind to define, such as Peering.")
@click.option(
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of the project.  [default: NAME; with --update the current folder]",
)
@click.option("--update", is_flag=True, help="Merge the newest template into the project.")
def new(
    name: str, kinds: tuple[str, ...], own_kinds: tuple[str, ...], output: Path | None, update: bool
) -> None:
    """Write the project of an extension: actuators, rehearsal, tests, image, chart and CI.

    Repeat --kind and --own-kind for several actuators.
    """
    if update:
        if name or kinds or own_kinds:
            raise click.UsageError("--update reads the name and the kinds from the project")
        version = projects.update(output or Path())
        echo(f"The project has version {version} of the template; review and commit the changes")
        return
    _check(name, kinds, own_kinds)
    if not (kinds or own_kinds):
        kinds = ("Infrastructure",)
    project = output or Path(name)
    if project.exists() and any(project.iterdir()):
        raise ConfigurationError(f"{project} is not empty; set another folder with --output")
    projects.create(project, name, kinds, own_kinds)
    echo(f"Next:\n  cd {project}\n  pip install -e '.[dev]'\n  pytest", lines=True)


def _check(name: str | None, kinds: tuple[str, ...], own_kinds: tuple[str, ...]) -> None:
    """Raise UsageError for a missing or invalid name, or an invalid kind."""
    if not name:
        raise click.UsageError("expected NAME, for example: actuator new acme")
    if not projects.is_valid_name(name):
        raise click.UsageError(
            f"invalid name {name!r}: expected at most 30 lower-case letters, digits and hyphens, "
            "and no name of another Python package"
        )
    for kind in kinds:
        if kind not in _KINDS:
            hint = did_you_mean(kind, _KINDS) or "; define it with --own-kind"
            raise click.UsageError(f"Gardener has no kind {kind!r}{hint}")
    for kind in own_kinds:
        if not projects.is_valid_kind(kind):
            raise click.UsageError(f"invalid kind {kind!r}: expected a name such as Peering")
        if kind in _KINDS:
            raise click.UsageError(f"{kind} is a kind of Gardener; set it with --kind")
