"""`actuator rbac`, `crds` and `completion`: print manifests for kubectl, and shell scripts."""

from collections.abc import Sequence
from typing import Any

import click
from click.shell_completion import get_completion_class

from actuator.interface import object_class
from actuator.meta import Object, Raw
from actuator.v1alpha1 import KINDS, Cluster
from generic.kube.crds import crd
from generic.manager.flags import FLAGS
from generic.manager.options import Options
from generic.manager.rbac import manifests
from generic.reconciler.orphans import RECORD_KINDS
from generic.tools.cli.load import (
    load_kind,
    load_manager,
    load_rehearsals,
    types_option,
    with_flags,
)
from generic.tools.packaging.chart import yaml_text

_FLAGS = ("leader_election_", "heartbeat_namespace", "ignore_", "webhook_", "disable_webhooks")


@click.command()
@click.argument("extension")
@types_option
@click.option("--name", default="gardener-extension", show_default=True, help="Name of the role.")
@click.option("--service-account", default="", help="NAMESPACE/NAME of a service account to bind.")
@click.option("--leader-election/--no-leader-election", default=True, show_default=True)
@with_flags(*(name for flag in FLAGS if (name := str(flag.name)).startswith(_FLAGS)))
def rbac(
    extension: str, types: tuple[str, ...], name: str, service_account: str, **options: Any
) -> None:
    """Print the roles that EXTENSION (MODULE:OBJECT) needs."""
    namespace, slash, account = service_account.partition("/")
    if service_account and not slash:
        raise click.BadParameter("expected NAMESPACE/NAME", param_hint="--service-account")
    manager = load_manager(extension, types, Options(**options))
    click.echo(yaml_text(*manifests(manager, name, account, namespace)), nl=False)


@click.command()
@click.argument("own", metavar="[MODULE:CLASS]", required=False)
@click.option(
    "--rehearsal",
    "rehearsals",
    multiple=True,
    metavar="MODULE:CLASS",
    help="Print those that a drill of this rehearsal needs, also of other products.",
)
@click.option("--only", multiple=True, metavar="NAME", help="Print this one of them.")
def crds(own: str | None, rehearsals: tuple[str, ...], only: tuple[str, ...]) -> None:
    """Print the CustomResourceDefinitions of Gardener's kinds, or of your own kind."""
    classes: list[type[Object]] = (
        [*KINDS, Cluster, *RECORD_KINDS] if own is None else [load_kind(own)]
    )
    more: Sequence[Raw] = ()
    if rehearsals:
        rehearsal = load_rehearsals(rehearsals)
        classes = [Cluster, *RECORD_KINDS, *map(object_class, rehearsal.actuators())]
        more = rehearsal.crds()
    found = {obj["metadata"]["name"]: obj for obj in (*map(crd, classes), *more)}
    if unknown := set(only) - found.keys():
        names = ", ".join(sorted(unknown))
        raise click.UsageError(f"no CRD {names}; set --only to: {', '.join(sorted(found))}")
    click.echo(yaml_text(*(found[name] for name in only or found)), nl=False)


@click.command(epilog="In bash: source <(actuator completion bash)")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the script that completes commands and options in SHELL."""
    root = click.get_current_context().find_root().command
    if found := get_completion_class(shell):
        click.echo(found(root, {}, "actuator", "_ACTUATOR_COMPLETE").source())
