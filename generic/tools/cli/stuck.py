"""`actuator stuck`: everything under deletion in a seed."""

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Any

import click

from actuator.errors import ActuatorError
from actuator.v1alpha1 import KINDS
from generic.kube.clock import SystemClock
from generic.kube.printable import echo
from generic.tools.cli.development import DevelopmentTarget, select
from generic.tools.cli.load import counted, list_option, load_kind, print_list, with_flags
from generic.tools.explain.facts import grant
from generic.tools.explain.stuck import Stuck
from generic.tools.explain.stuck import stuck as find_stuck

_VERSION = 1
"""Version of the JSON format: increased when a field is removed or changes its meaning."""


@click.command()
@with_flags("kubeconfig", "context")
@click.option("--kind", "own", multiple=True, metavar="MODULE:CLASS", help="Additional kind.")
@list_option
def stuck(own: tuple[str, ...], output: str, **seed: Any) -> None:
    """List everything under deletion in a seed: since when, whose turn it is, what blocks it.

    The command only reads from the API server: metadata of all resources, and extension objects.
    `-o name` prints the targets of `actuator explain`, `-o wide` all blockers. Refused reads are
    on stderr; if there are some, and no object is found, the exit status is 1.
    """
    kinds = [cls.KIND for cls in dict.fromkeys([*KINDS, *map(load_kind, own)])]
    now = SystemClock().now()
    client = select(DevelopmentTarget(**seed)).connect()
    found, unread = find_stuck(client, kinds, now)
    data = {"version": _VERSION, "objects": found, "unread": unread}
    names = [str(item) for item in found]
    table = partial(_table, found, now, wide=output == "wide")
    nothing = f"nothing is under deletion in the cluster at {client.host}"
    print_list(output, data, names, table, "" if unread else nothing)
    if output in ("table", "wide", "name"):
        for line in (*unread, *grant(unread)):
            echo(line, err=True)
    if unread and not found:
        raise ActuatorError(f"found no object under deletion, but could not do {len(unread)} reads")


def _table(found: Sequence[Stuck], now: datetime, *, wide: bool) -> str:
    from generic.tools.cli.screen import columns, since

    rows = [
        (
            item.namespace,
            item.kind,
            item.name,
            since(item.since, now),
            item.turn,
            _blocked(item, wide),
        )
        for item in found
    ]
    head = ("NAMESPACE", "KIND", "NAME", "AGE", "WHOSE TURN", "BLOCKED BY")
    namespaces = len({item.namespace for item in found if item.namespace})
    total = f"{counted(len(found), 'object')} under deletion in {counted(namespaces, 'namespace')}"
    return f"{columns(head, rows)}\n\n{total}"


def _blocked(one: Stuck, wide: bool) -> str:
    """Return all blockers, or the first and the number of others."""
    if wide or len(one.blockers) < 2:
        return "; ".join(one.blockers)
    return f"{one.blockers[0]} (and {len(one.blockers) - 1} more)"
