"""What can be set from outside: the command line flags of a manager, and their defaults.

Every flag can be given as an environment variable too (`--leader-election` as
ACTUATOR_LEADER_ELECTION); the flag wins. Names follow those of Gardener's extensions.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import attrs
import click

__all__ = ["FLAGS", "Options", "from_args"]

PREFIX = "ACTUATOR"


@attrs.frozen(kw_only=True)
class Options:
    """How a manager runs. Durations in seconds; an address "" or "0" switches a server off."""

    kubeconfig: Path | None = None
    context: str | None = None
    leader_election: bool = False
    leader_election_id: str = "gardener-actuator-leader-election"
    leader_election_namespace: str = "default"
    metrics_bind_address: str = "127.0.0.1:8080"
    health_bind_address: str = "127.0.0.1:8081"
    max_concurrent_reconciles: int = 5
    ignore_operation_annotation: bool = False
    processing_status: Literal["slow", "always"] = "slow"
    extension_classes: tuple[str, ...] = ()
    log_level: Literal["debug", "info", "error"] = "info"
    log_format: Literal["text", "json"] = "text"
    shutdown_timeout: float = 20.0


FLAGS: list[click.Parameter] = [
    click.Option(
        ["--kubeconfig"],
        type=click.Path(path_type=Path, dir_okay=False),
        help="Kubeconfig; else KUBECONFIG, else in-cluster, else ~/.kube/config.",
    ),
    click.Option(["--context"], help="Context of the kubeconfig."),
    click.Option(
        ["--leader-election/--no-leader-election"],
        default=False,
        show_default=True,
        help="Act only while holding a Lease.",
    ),
    click.Option(
        ["--leader-election-id"],
        default=Options().leader_election_id,
        show_default=True,
        help="Name of the Lease.",
    ),
    click.Option(
        ["--leader-election-namespace"],
        default=Options().leader_election_namespace,
        envvar=["LEADER_ELECTION_NAMESPACE", f"{PREFIX}_LEADER_ELECTION_NAMESPACE"],
        show_default=True,
        help="Namespace of the Lease.",
    ),
    click.Option(
        ["--metrics-bind-address"],
        default=Options().metrics_bind_address,
        show_default=True,
        help="Where /metrics is served; :8080 means all addresses, 0 switches it off.",
    ),
    click.Option(
        ["--health-bind-address"],
        default=Options().health_bind_address,
        show_default=True,
        help="Where /healthz and /readyz are served; 0 switches them off.",
    ),
    click.Option(
        ["--max-concurrent-reconciles"],
        type=click.IntRange(min=1),
        default=Options().max_concurrent_reconciles,
        show_default=True,
        help="Workers of each controller.",
    ),
    click.Option(
        ["--ignore-operation-annotation/--no-ignore-operation-annotation"],
        default=False,
        show_default=True,
        help="Reconcile whenever a spec changes, without waiting for gardenlet's annotation.",
    ),
    click.Option(
        ["--processing-status"],
        type=click.Choice(["slow", "always"]),
        default="slow",
        show_default=True,
        help="Publish Processing for operations that take over a second, or always.",
    ),
    click.Option(
        ["--extension-classes"],
        default="",
        help="Comma-separated classes to serve: shoot (the default), seed, garden.",
    ),
    click.Option(
        ["--log-level"],
        type=click.Choice(["debug", "info", "error"]),
        default="info",
        show_default=True,
        help="Least important lines to log.",
    ),
    click.Option(
        ["--log-format"],
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
        help="For people, or for machines.",
    ),
    click.Option(
        ["--shutdown-timeout"],
        type=click.FloatRange(min=0),
        default=Options().shutdown_timeout,
        show_default=True,
        help="Seconds that running operations get to finish after SIGTERM.",
    ),
]


def from_values(**values: Any) -> Options:
    """Options from the parsed flags."""
    classes = tuple(c for c in values.pop("extension_classes", "").split(",") if c)
    return Options(extension_classes=classes, **values)


def from_args(args: Sequence[str] | None = None) -> Options:
    """Options from the command line (sys.argv) and the environment.

    Prints usage, or what is wrong with the flags, and exits like any command line program.
    """
    parsed: list[Options] = []
    command = click.Command(
        "manager",
        params=FLAGS,
        callback=lambda **values: parsed.append(from_values(**values)),
        help="Runs an extension.",
    )
    given = None if args is None else list(args)
    try:
        command.main(args=given, standalone_mode=False, auto_envvar_prefix=PREFIX)
    except click.ClickException as error:
        error.show()
        raise SystemExit(error.exit_code) from None
    if not parsed:  # --help was printed
        raise SystemExit(0)
    return parsed[0]
