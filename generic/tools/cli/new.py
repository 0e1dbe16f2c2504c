"""`actuator new`: write a project, or merge a later version of its template into it."""

from pathlib import Path

import click

from generic.kube.printable import echo
from generic.tools.packaging import projects


@click.command()
@click.argument("name", required=False)
@click.option("--kind", "kinds", multiple=True, help="Gardener kind; default: Infrastructure.")
@click.option("--own-kind", "own_kinds", multiple=True, help="Kind to define, such as Peering.")
@click.option("--in-shoot", is_flag=True, help="Write an extension of manifests for the shoot.")
@click.option("--admission", is_flag=True, help="Include the admission of its configurations.")
@click.option("--webhooks", is_flag=True, help="Include a webhook that changes an object.")
@click.option(
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of the project.  [default: NAME; with --update the current folder]",
)
@click.option("--update", is_flag=True, help="Merge the newest template into the project.")
@click.option("--add-kind", "added", multiple=True, help="Update, and add a Gardener kind.")
@click.option("--add-own-kind", "own_added", multiple=True, help="Update, and add an own kind.")
@click.option("--abort", is_flag=True, help="Undo an update that is not committed.")
def new(
    name: str,
    kinds: tuple[str, ...],
    own_kinds: tuple[str, ...],
    output: Path | None,
    added: tuple[str, ...],
    own_added: tuple[str, ...],
    **given: bool,
) -> None:
    """Write the project of an extension: actuators, rehearsal, tests, image, chart and CI.

    Repeat --kind and --own-kind for several actuators. A Worker, a ControlPlane and a BackupEntry
    derive from the generic actuators. With --in-shoot, an Extension, Network or ContainerRuntime
    deploys its manifests by a ManagedResource. --update adds what --in-shoot, --admission and
    --webhooks name. --abort restores the files of a project that an update changed, for example
    after a conflict.
    """
    features = [name for name in ("in_shoot", "admission", "webhooks") if given[name]]
    if given["update"] or given["abort"] or added or own_added:
        if name or kinds or own_kinds:
            raise click.UsageError("--update reads the name and the kinds from the project")
        if given["abort"]:
            projects.abort(output or Path())
            echo("The files of the project are as before the update")
            return
        version = projects.update(output or Path(), added, own_added, features)
        echo(f"The project has version {version} of the template; review and commit the changes")
        return
    if not name:
        raise click.UsageError("expected NAME, for example: actuator new acme")
    answers = dict.fromkeys(features, True)
    project = projects.Project(projects.newest(), name, kinds, own_kinds, **answers).completed()
    if problem := project.problem():
        raise click.UsageError(problem)
    folder = output or Path(name)
    projects.create(folder, project)
    echo(f"Next:\n  cd {folder}\n  pip install -e '.[dev]'\n  pytest", lines=True)
