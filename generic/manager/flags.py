"""Flags: the command line of a manager, named like those of Gardener's extensions.

Every flag can also be set by an environment variable (`--leader-election` as
ACTUATOR_LEADER_ELECTION) and in the file of `--config-file`; the command line wins, then the
environment. An invalid value is reported in one sentence, with exit status 2.

As in Go programs, flags may contain the name of a controller, and boolean flags a value
(`--flag=true`).
Not here: the meaning of the values (`options`).
"""

import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NoReturn, get_args, get_origin

import attrs
import click

from actuator.cluster import parse_bool
from actuator.errors import ConfigurationError
from generic.controller.health import parse_address
from generic.manager.options import Options

PREFIX = "ACTUATOR"
WORKERS = "-max-concurrent-reconciles"


class ManagerCommand(click.Command):
    """A command with FLAGS, some of whose names depend on the controllers."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Convert flags to those that click knows, then parse. Raises click.UsageError."""
        switches = {
            name: option.secondary_opts[0]
            for option in self.params
            if isinstance(option, click.Option) and option.is_flag and option.secondary_opts
            for name in option.opts
        }
        return super().parse_args(ctx, [*_from_environment(), *_understood(args, switches)])


def _understood(args: Sequence[str], switches: dict[str, str]) -> Iterator[str]:
    """Yield arguments for click; `switches` maps boolean flags to their negations."""
    rest = iter(args)
    for argument in rest:
        flag, equals, value = argument.partition("=")
        workers = re.fullmatch(f"--(.+){WORKERS}", flag)
        if workers is not None:
            yield f"--workers={workers[1]}={value if equals else next(rest, '')}"
        elif equals and flag in switches:
            yield _switched(flag, switches[flag], value)
        else:
            yield argument


def _switched(flag: str, off: str, value: str) -> str:
    on = parse_bool(value)
    if on is None:
        raise click.UsageError(f"{flag}: expected true or false, got {value!r}")
    return flag if on else off


def _from_environment() -> Iterator[str]:
    """Yield flags from variables like ACTUATOR_INFRASTRUCTURE_MAX_CONCURRENT_RECONCILES."""
    suffix = WORKERS.upper().replace("-", "_")
    for name, value in os.environ.items():
        found = re.fullmatch(f"{PREFIX}_(.+){suffix}", name)
        if found is not None:
            yield f"--workers={found[1].lower().replace('_', '-')}={value}"


_DEFAULTS = Options()


def _names(_ctx: click.Context, _option: click.Parameter, value: str) -> tuple[str, ...]:
    return tuple(name for part in value.split(",") if (name := part.strip()))


def _address(_ctx: click.Context, _option: click.Parameter, value: str) -> str:
    try:
        parse_address(value)
    except ConfigurationError as error:
        raise click.BadParameter(error.message) from error
    return value


def _host(_ctx: click.Context, _option: click.Parameter, value: str) -> str:
    if value and not re.fullmatch(r"(\[[\da-fA-F:.]+\]|[\w.-]+)(:\d{1,5})?", value, re.ASCII):
        raise click.BadParameter("set HOST or HOST:PORT, without a scheme or a path")
    return value


def _number_or_none(_ctx: click.Context, _option: click.Parameter, value: str) -> float | None:
    if value == "none":
        return None
    try:
        number = float(value)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise click.BadParameter(f"expected a number above 0, or none, got {value!r}")
    return number


def _workers(ctx: click.Context, _option: click.Parameter, value: Sequence[str]) -> dict[str, int]:
    workers = {}
    for pair in (*(ctx.lookup_default("workers") or ()), *value):  # the file's, then the given ones
        name, _, number = pair.rpartition("=")
        if not number.isdecimal() or int(number) < 1:
            flag = f"--{name}{WORKERS}"
            raise click.UsageError(f"{flag}: expected at least 1 worker, got {number!r}")
        workers[name] = int(number)
    return workers


def _read_config(ctx: click.Context, _option: click.Parameter, value: Path | None) -> None:
    """Use the file's values as defaults behind the command line and the environment."""
    if value is not None:
        ctx.default_map = dict(_config_values(value))


def _config_values(path: Path) -> Iterator[tuple[str, Any]]:
    import yaml

    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())
        raise click.UsageError(f"cannot read --config-file {path}: {reason}") from error
    if not isinstance(content, dict):
        raise click.UsageError(f"--config-file {path}: expected one FLAG: VALUE on each line")
    known = {option.name: option for option in FLAGS}
    workers = []
    for key, found in content.items():
        name = str(key).removeprefix("--")
        if name.endswith(WORKERS):
            workers.append(f"{name.removesuffix(WORKERS)}={found}")
        elif (field := name.replace("-", "_")) in known:
            yield field, _config_value(found)
        else:
            raise click.UsageError(f"--config-file {path}: unknown flag --{name}")
    if workers:
        yield "workers", workers


def _config_value(found: object) -> object:
    """Convert a value for click: a list becomes comma-separated text."""
    if isinstance(found, bool):
        return found
    return ",".join(map(str, found)) if isinstance(found, list) else str(found)


def _conversion(field: str) -> dict[str, Any]:
    """Return how click reads the value of a field of Options, by its type."""
    kind, default = attrs.fields_dict(Options)[field].type, getattr(_DEFAULTS, field)
    if kind is bool:
        return {"is_flag": True}
    if kind == Path | None:
        return {"type": click.Path(path_type=Path, dir_okay=False)}
    if kind == float | None:
        return {"callback": _number_or_none, "default": f"{default:g}", "show_default": True}
    if get_origin(kind) is Literal:
        return {"type": click.Choice(get_args(kind)), "show_default": True}
    if get_origin(kind) is tuple:
        return {"callback": _names, "default": ""}
    return {"type": click.IntRange(min=1) if kind is int else None, "show_default": default != ""}


def _flag(name: str, help: str, **more: Any) -> click.Option:
    """Return the flag of a field of Options, with its type and default."""
    field = name.replace("-", "_")
    given = {"default": getattr(_DEFAULTS, field), **_conversion(field), **more}
    switch = f"/--no-{name}" if given.pop("is_flag", False) else ""
    return click.Option([f"--{name}{switch}"], help=help, **given)


_CONFIG_FILE = click.Option(
    ["--config-file"],
    type=click.Path(path_type=Path, dir_okay=False),
    is_eager=True,
    expose_value=False,
    callback=_read_config,
    help="YAML or JSON file with flag values; the command line takes precedence.",
)
_NAMESPACES = ["LEADER_ELECTION_NAMESPACE", f"{PREFIX}_LEADER_ELECTION_NAMESPACE"]

FLAGS: list[click.Parameter] = [
    _CONFIG_FILE,
    _flag(
        "kubeconfig", "Path of the kubeconfig. Default: KUBECONFIG, in-cluster, or ~/.kube/config."
    ),
    _flag("context", "Context of the kubeconfig."),
    _flag("master", "URL of the API server; overrides the kubeconfig."),
    _flag("leader-election", "Reconcile only while holding the leader election Lease."),
    _flag("leader-election-id", "Name of the leader election Lease."),
    _flag(
        "leader-election-namespace", "Namespace of the leader election Lease.", envvar=_NAMESPACES
    ),
    _flag(
        "metrics-bind-address",
        "Address of /metrics; :8080 binds all interfaces, 0 disables the endpoint.",
        callback=_address,
    ),
    _flag(
        "health-bind-address",
        "Address of /healthz and /readyz; 0 disables the endpoints.",
        callback=_address,
    ),
    _flag(
        "metrics-oldest-terminating",
        "Export per-object metrics for the N oldest terminating objects of each controller.",
        type=click.IntRange(min=0, max=100),
    ),
    _flag(
        "max-concurrent-reconciles",
        f"Workers of each controller; --CONTROLLER{WORKERS} sets those of one controller.",
    ),
    click.Option(["--workers"], multiple=True, callback=_workers, hidden=True),
    _flag("controllers", "Comma-separated controllers to run; the others do not start."),
    _flag("disable-controllers", "Comma-separated controllers that do not start."),
    _flag(
        "ignore-operation-annotation",
        "Reconcile whenever a spec changes, without gardenlet's operation annotation.",
    ),
    _flag(
        "processing-status",
        "Write the state Processing for operations of more than a second, or always.",
    ),
    _flag("force-delete-budget", "Maximum seconds of a force deletion; none: unlimited."),
    _flag(
        "orphan-retention-days",
        "Days that Orphans in state Closed or Gone are kept; none: unlimited.",
    ),
    _flag(
        "outcome-events",
        "Deletion outcomes that are recorded as events: exceptional ones, or all.",
    ),
    _flag(
        "extension-classes",
        "Comma-separated extension classes to serve: shoot (default), seed, garden.",
    ),
    _flag("gardener-version", "Version of the Gardener installation."),
    _flag(
        "self-hosted-shoot-cluster",
        "Run in the self-hosted shoot that is served; the machine API may be absent.",
    ),
    _flag("heartbeat-namespace", "Namespace of the heartbeat Lease."),
    _flag(
        "heartbeat-renew-interval-seconds", "Seconds between two renewals of the heartbeat Lease."
    ),
    _flag("webhook-config-mode", "How API servers reach the webhooks of the manager."),
    _flag(
        "webhook-config-url",
        "HOST or HOST:PORT of the webhooks, for the mode url.",
        callback=_host,
    ),
    _flag(
        "webhook-config-service-port",
        "Port of the Service of the webhooks; default: the port of the server.",
        type=click.IntRange(1, 65535),
    ),
    _flag(
        "webhook-config-namespace",
        "Namespace of the webhooks' Service and certificates; webhooks are served if it is set.",
        envvar=["WEBHOOK_CONFIG_NAMESPACE", f"{PREFIX}_WEBHOOK_CONFIG_NAMESPACE"],
    ),
    _flag(
        "webhook-config-owner-namespace",
        "Namespace with which webhook configurations are deleted; default: that of the Service.",
    ),
    _flag(
        "webhook-config-server-host",
        "Address on which the webhook server listens; empty: all interfaces.",
    ),
    _flag(
        "webhook-config-server-port",
        "Port of the webhook server.",
        type=click.IntRange(1, 65535),
    ),
    _flag(
        "webhook-config-cert-dir",
        "Folder with tls.crt, tls.key and ca.crt; default: the manager creates certificates.",
        type=click.Path(path_type=Path, file_okay=False),
    ),
    _flag("disable-webhooks", "Comma-separated webhooks that are not served; * for all."),
    _flag("log-level", "Minimum log level."),
    _flag("log-format", "Log format."),
    _flag(
        "shutdown-timeout",
        "Seconds that running operations may take after SIGTERM.",
        type=click.FloatRange(min=0),
    ),
]


def from_values(**values: Any) -> Options:
    """Return Options from the parsed flags."""
    return Options(**values)


def from_args(args: Sequence[str] | None = None) -> Options:
    """Return Options from the command line (sys.argv), the environment and the config file.

    Prints usage, or the invalid flag, and exits like any command line program.
    """
    parsed: list[dict[str, Any]] = []
    command = ManagerCommand(
        "manager",
        params=FLAGS,
        callback=lambda **values: parsed.append(values),
        help="Run an extension.",
    )
    given = None if args is None else list(args)
    try:
        command.main(args=given, standalone_mode=False, auto_envvar_prefix=PREFIX)
    except click.ClickException as error:
        error.show()
        raise SystemExit(error.exit_code) from None
    if not parsed:  # --help was printed
        raise SystemExit(0)
    return from_values(**parsed[0])


def refuse(error: ConfigurationError) -> NoReturn:
    """Print the error of the flags, and exit with status 2."""
    print(f"Error: {error}", file=sys.stderr)  # noqa: T201 - it is the answer to a command
    raise SystemExit(2)
