"""`actuator drain`: make sure that no object waits for an extension before uninstalling it."""

import sys
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import click

from actuator.errors import ActuatorError, ApiError
from actuator.interface import Client
from generic.kube.client import connect
from generic.kube.clock import SystemClock
from generic.kube.printable import echo
from generic.manager.options import Options
from generic.manager.registry import Registration
from generic.tools.cli.load import (
    counted,
    load_manager,
    output_option,
    print_as,
    types_option,
    with_flags,
)
from generic.tools.cli.statuses import CheckCommand, No
from generic.tools.drain import Survey, check_no_leader, check_own_leases, release, survey, wait
from generic.tools.drain.release import ReleaseState, Row, rows_of_held, rows_of_released
from generic.tools.drain.survey import resources_of

_NO_LEASE = "none"
_SHOWN = 200
"""Maximum characters of an error in the table; JSON has the complete text."""
_WIDTH = 180
"""Columns of the table without a terminal, as in the log of the chart's hook."""


@click.command(cls=CheckCommand)
@click.argument("extension")
@types_option
@click.option(
    "--timeout",
    type=click.FloatRange(min=0),
    default=240.0,
    show_default=True,
    help="Maximum seconds to wait for terminating objects.",
)
@click.option(
    "--allow-missing-crds",
    is_flag=True,
    help="Succeed also if the cluster serves no kind of the extension.",
)
@click.option("--release", "disown", is_flag=True, help="Remove the finalizers.")
@click.option(
    "--lease", default="", help=f"NAMESPACE/NAME of the leader election Lease, or {_NO_LEASE}."
)
@output_option
@with_flags("kubeconfig", "context", "master", "extension_classes")
def drain(
    extension: str,
    types: tuple[str, ...],
    timeout: float,
    disown: bool,
    lease: str,
    output: str,
    **shared: Any,
) -> None:
    """Check for objects that still carry the finalizer of EXTENSION (MODULE:OBJECT).

    Run it before you uninstall the extension. It lists all objects in the seed that have the
    extension's kinds, types and classes, and its finalizer. The exit status is 0 if there are
    none, 1 if some remain, and 3 if the command could not look. Kinds that the cluster does not
    serve have no objects. If it serves none of them, it is probably another cluster: the exit
    status is 3, unless --allow-missing-crds is set.

    Without --release, nothing is changed: while the extension runs, the command waits until
    terminating objects are deleted. Other objects would be stuck later: delete them first (in
    Gardener, delete the shoots), or disown them with --release.

    With --release, the finalizer is removed from all of these objects; finalizers of other
    controllers are never removed, and no object is deleted. Remaining external resources are
    recorded as Orphans first. Scale the extension's Deployment to zero before, because it adds the
    finalizers again: the command fails while the Lease in --lease is renewed, or another Lease of a
    manager that serves the same kinds and types.
    """
    leads_by = _lease(disown, lease)
    may_miss = shared.pop("allow_missing_crds")
    options = Options(**shared)
    manager = load_manager(extension, types, options)
    client = connect(options.kubeconfig, options.context, server=options.master)

    def look() -> Survey:
        return survey(client, manager.registrations, options.extension_classes)

    if disown:
        rows, missing = _disown(client, manager.registrations, look, leads_by)
    else:
        say = cache(partial(echo, err=True))  # each text once
        found = wait(look, timeout, lambda found: say(_waiting_for(found)))
        rows = rows_of_held(found.held)
        missing = found.not_installed
    if not may_miss and len(missing) == len(resources_of(manager.registrations)):
        raise ActuatorError(
            f"the cluster at {client.host} serves no kind of {extension} ({', '.join(missing)}); "
            "select the seed with --kubeconfig and --context, or set --allow-missing-crds if "
            "their CRDs were deleted"
        )
    held = [row for row in rows if row.is_held]
    if output == "table":
        _print_table(rows, missing, client.host)
    else:
        print_as(output, {"drained": not held, "objects": rows, "notInstalled": missing})
    if held:
        raise No(_way_out(held, disown))


def _lease(disown: bool, lease: str) -> tuple[str, str] | None:
    """Return namespace and name; None without a Lease to check. Raises UsageError."""
    if not disown and lease:
        raise click.UsageError("--lease requires --release: without it, the extension must run")
    if not disown or lease == _NO_LEASE:
        return None
    namespace, _, name = lease.partition("/")
    if not namespace or not name:
        raise click.UsageError(
            "--release requires --lease NAMESPACE/NAME of the leader election, to check that the "
            f"extension is stopped; set --lease {_NO_LEASE} if it ran without leader election"
        )
    return namespace, name


def _disown(
    client: Client,
    registrations: Sequence[Registration],
    look: Callable[[], Survey],
    leads_by: tuple[str, str] | None,
) -> tuple[list[Row], Sequence[str]]:
    """Remove our finalizers; return the rows with the results, and missing resources."""
    if leads_by is not None:
        check_no_leader(client, *leads_by)
    if not check_own_leases(client, registrations):
        echo("this account cannot list Leases: managers under other names are not found", err=True)
    found = look()
    done = []
    for item in release(client, found, SystemClock()):
        done.append(item)
        echo(f"{item}: {item.note if item.is_held else 'released'}", err=True)
    return rows_of_released(done, look().held), found.not_installed


def _waiting_for(found: Survey | ApiError) -> str:
    if isinstance(found, ApiError):
        return f"repeating until --timeout: {found}"
    left = found.deleting
    return f"waiting for the deletion of {counted(len(left), 'object')}, such as {left[0]}"


def _print_table(rows: Sequence[Row], missing: Sequence[str], host: str) -> None:
    from generic.tools.cli.screen import Screen, new_table, since

    if missing:
        echo(f"not installed: {', '.join(missing)}", err=True)
    if not rows:
        echo(f"no object in the cluster at {host} carries a finalizer of this extension")
        return
    now = SystemClock().now()
    table = new_table("namespace", "kind", "name", "state", "age", "last error", "note")
    for row in rows:
        state: str = row.state
        if row.state is ReleaseState.DELETING and row.deleted_at:
            state = f"{row.state} for {since(row.deleted_at, now)}"
        cells = (row.namespace, row.kind, row.name, state, since(row.created_at, now))
        table.add_row(*cells, row.last_error[:_SHOWN], row.note)
    Screen(width=None if sys.stdout.isatty() else _WIDTH).print(table)


def _way_out(held: Sequence[Row], disowned: bool) -> str:
    count = f"{counted(len(held), 'object')} with a finalizer of this extension"
    if disowned:
        return f"{count}: fix the reported problems, and run the command again"
    return (
        f"{count} would be stuck without it: wait for their deletion, delete them (in Gardener, "
        "delete the shoots), or disown them with --release"
    )
