"""Flags: the command line of a manager, named like those of Gardener's extensions.

Every flag can also be set by an environment variable (`--leader-election` as
ACTUATOR_LEADER_ELECTION) and in the file of `--config-file`; the command line wins, then the
environment. An invalid value is reported in one sentence, with exit status 2.

As in Go programs, flags may contain the name of a controller, and boolean flags a value
(`--flag=true`).
Not here: the fields and their help texts (`options`).
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import attrs
import click

from actuator.cluster import parse_bool
from actuator.errors import ConfigurationError
from generic.manager.options import Options
from generic.serving.httpserver import parse_address

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


def _conversion(field: "attrs.Attribute[Any]") -> dict[str, Any]:
    """Return how click reads the value of a field of Options, by its type."""
    if field.type is bool:
        return {"is_flag": True}
    if field.type == Path | None:
        return {"type": click.Path(path_type=Path, dir_okay=False)}
    if field.type == float | None:
        default = f"{field.default:g}"
        return {"callback": _number_or_none, "default": default, "show_default": True}
    if get_origin(field.type) is Literal:
        return {"type": click.Choice(get_args(field.type)), "show_default": True}
    if get_origin(field.type) is tuple:
        return {"callback": _names, "default": ""}
    limits = click.IntRange(min=1) if field.type is int else None
    return {"type": limits, "show_default": field.default != ""}


def _flag(field: "attrs.Attribute[Any]") -> click.Option:
    """Return the flag of a field of Options, with its type, default and help text."""
    name = field.name.replace("_", "-")
    given = {"default": field.default, **_conversion(field), **_LIMITS.get(field.name, {})}
    switch = f"/--no-{name}" if given.pop("is_flag", False) else ""
    return click.Option([f"--{name}{switch}"], help=field.metadata["help"], **given)


_CONFIG_FILE = click.Option(
    ["--config-file"],
    type=click.Path(path_type=Path, dir_okay=False),
    is_eager=True,
    expose_value=False,
    callback=_read_config,
    help="YAML or JSON file with flag values; the command line takes precedence.",
)
_PORT = click.IntRange(1, 65535)
_LIMITS: Mapping[str, Mapping[str, Any]] = {
    "leader_election_namespace": {
        "envvar": ["LEADER_ELECTION_NAMESPACE", f"{PREFIX}_LEADER_ELECTION_NAMESPACE"]
    },
    "metrics_bind_address": {"callback": _address},
    "health_bind_address": {"callback": _address},
    "metrics_oldest_terminating": {"type": click.IntRange(0, 100)},
    "metrics_zero_seconds": {"type": click.FloatRange(min=0)},
    "webhook_config_url": {"callback": _host},
    "webhook_config_service_port": {"type": _PORT},
    "webhook_config_namespace": {
        "envvar": ["WEBHOOK_CONFIG_NAMESPACE", f"{PREFIX}_WEBHOOK_CONFIG_NAMESPACE"]
    },
    "webhook_config_server_port": {"type": _PORT},
    "webhook_config_cert_dir": {"type": click.Path(path_type=Path, file_okay=False)},
    "shutdown_timeout": {"type": click.FloatRange(min=0)},
}
"""Arguments of flags that do not follow from the type of the field."""
FLAGS: list[click.Parameter] = [
    _CONFIG_FILE,
    click.Option(["--workers"], multiple=True, callback=_workers, hidden=True),
    *(_flag(field) for field in attrs.fields(Options) if field.metadata),
]


def from_args(args: Sequence[str] | None = None) -> Options:
    """Return Options from the command line (sys.argv), the environment and the config file.

    Prints usage, or the invalid flag, and exits like any command line program.
    """
    command = ManagerCommand("manager", params=FLAGS, callback=Options, help="Run an extension.")
    given = None if args is None else list(args)
    try:
        found = command.main(args=given, standalone_mode=False, auto_envvar_prefix=PREFIX)
    except click.ClickException as error:
        error.show()
        raise SystemExit(error.exit_code) from None
    if not isinstance(found, Options):  # the exit status after --help
        raise SystemExit(found)
    return found
