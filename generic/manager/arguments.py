"""Arguments: converts a command line in the style of Go programs for click.

Flags that contain the name of a controller; `--flag=true` and `--flag=false`; and all flags about
webhooks, which Gardener's charts pass and which have no effect here.
"""

import os
import re
from collections.abc import Iterator, Sequence

import click

from actuator.cluster import parse_bool

PREFIX = "ACTUATOR"
WORKERS = "-max-concurrent-reconciles"
WEBHOOKS = "--webhook-config-"


class ManagerCommand(click.Command):
    """A command with the flags of `flags`, some of whose names depend on the controllers."""

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
        elif flag.startswith(WEBHOOKS):
            yield f"--webhook-config={flag.removeprefix(WEBHOOKS)}"
            if not equals:
                next(rest, "")
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
