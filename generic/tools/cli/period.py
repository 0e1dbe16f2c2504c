"""Options of a period: `--since` and `--until`."""

from datetime import UTC, datetime
from functools import partial
from typing import Any

import click

from actuator.meta import parse_time


class DateParam(click.ParamType[datetime]):
    """A date (2026-07-01, at midnight UTC), or a timestamp with a time zone (RFC 3339)."""

    name = "DATE"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime:
        """See ParamType."""
        try:
            if len(value) == len("2026-07-01"):
                return datetime.strptime(value, "%Y-%m-%d").replace(tzinfo=UTC)
            return parse_time(value)
        except ValueError:
            self.fail(
                "expected a date such as 2026-07-01, or a timestamp such as 2026-07-01T12:00:00Z, "
                f"got {value!r}"
            )


def is_within(text: str, since: datetime, until: datetime | None) -> bool:
    """Whether a timestamp is in the period. Raises ValueError for another text."""
    moment = parse_time(text)
    return since <= moment and (until is None or moment < until)


def _after_since(
    ctx: click.Context, param: click.Parameter, until: datetime | None
) -> datetime | None:
    """Refuse a period that contains no moment: its answer, "none", would look like a result."""
    since = ctx.params.get("since")
    if since and until and until <= since:
        raise click.BadParameter("must be later than --since", ctx, param)
    return until


since_option = partial(
    click.option, "--since", type=DateParam(), is_eager=True, help="Begin of the period, UTC."
)
until_option = click.option(
    "--until", type=DateParam(), callback=_after_since, help="End of the period, not part of it."
)
