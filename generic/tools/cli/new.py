"""`actuator new`: write a project, or merge a later version of its template into it."""

from pathlib import Path

import click

from generic.kube.printable import echo
from generic.tools.packaging import projects


@click.command()
@click.argument("name", required=False)
@click.option("--kind", "kinds", multiple=True, help="Gardener kind; default: Infrastructure.")
@click.option("--own-kind", "own_kinds", multiple=True, help="Kind to define, such as Peering.")
@click.option("--webhooks", is_flag=True, help="Include a webhook that changes an object.")
@click.option(
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of the project.  [default: NAME; with --update the current folder]",
)
@click.option("--update", is_flag=True, help="Merge the newest template into the project.")
def new(
    name: str,
    kinds: tuple[str, ...],
    own_kinds: tuple[str, ...],
    output: Path | None,
    **given: bool,
) -> None:
    """Write the project of an extension: actuators, rehearsal, tests, image, chart and CI.

    Repeat --kind and --own-kind for several actuators.
    """
    if given["update"]:
        if name or kinds or own_kinds or given["webhooks"]:
            raise click.UsageError("--update reads the name and the kinds from the project")
        version = projects.update(output or Path())
        echo(f"The project has version {version} of the template; review and commit the changes")
        return
    if not name:
        raise click.UsageError("expected NAME, for example: actuator new acme")
    if not (kinds or own_kinds):
        kinds = ("Infrastructure",)
    project = projects.Project(projects.newest(), name, kinds, own_kinds, given["webhooks"])
    if problem := project.problem():
        raise click.UsageError(problem)
    folder = output or Path(name)
    projects.create(folder, project)
    echo(f"Next:\n  cd {folder}\n  pip install -e '.[dev]'\n  pytest", lines=True)
