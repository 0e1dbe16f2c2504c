"""`actuator explore`: crash-test the manager at every call of every operation."""

import signal
from collections.abc import Sequence
from typing import Any

import click

from generic.reconciler.operation import Operation
from generic.serving import logs
from generic.testing.drill.settings import Watcher
from generic.testing.explorer.judge import Tally
from generic.testing.explorer.run import Wanted
from generic.testing.explorer.run import explore as explore_each
from generic.tools.cli.load import load_rehearsals, output_option, print_as
from generic.tools.cli.statuses import CheckCommand, No

_OPERATIONS = [operation.value for operation in Operation if operation.calls]


@click.command(cls=CheckCommand)
@click.argument("rehearsals", nargs=-1, metavar="[REHEARSAL]...")
@click.option("--kind", "kinds", multiple=True, help="Kind to test; repeatable. Default: all.")
@click.option("--operation", "operations", multiple=True, type=click.Choice(_OPERATIONS))
@click.option("--call", "calls", multiple=True, help="Part of the name of calls; repeatable.")
@click.option(
    "--every",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Try one of so many kills, chosen at random.",
)
@click.option(
    "--random-seed",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="With --every: the number that chooses the kills.",
)
@click.option(
    "--patience",
    type=click.FloatRange(min=1),
    default=45.0,
    show_default=True,
    help="Maximum seconds of an operation, and of its repetition after a restart.",
)
@output_option
def explore(
    rehearsals: tuple[str, ...],
    kinds: tuple[str, ...],
    operations: tuple[str, ...],
    calls: tuple[str, ...],
    patience: float,
    output: str,
    **sample: int,
) -> None:
    """Crash-test the manager at every call of every operation.

    REHEARSAL is MODULE:CLASS, by default the AWS sample; it runs on its own embedded cluster.
    Calls are requests to the API server, calls of the actuator, and external calls of the
    actuator. The manager is killed before each call and after it took effect, then restarted and
    checked. The exit status is 1 if a check fails, and 3 if the crash test could not run.
    """
    wanted = Wanted(
        kinds=frozenset(kinds),
        operations=frozenset(Operation(name) for name in operations),
        calls=calls,
        patience=patience,
        **sample,
    )
    logs.configure("info", "text", only_authors=True)  # progress and tables replace the others
    rehearsal = load_rehearsals(rehearsals)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    quiet = output != "table"
    watcher = Watcher()
    if not quiet:
        from generic.tools.cli.terminal import Terminal

        watcher = Terminal()
    tallies = []
    for tally in explore_each(wanted, rehearsal, watcher):
        tallies.append(tally)
        watcher.say(f"{tally}: {tally.survived} of {tally.tried} kills survived")
        for failure in tally.failures:
            where = f"killed {failure.at}" if failure.at else "without a kill"
            watcher.say(f"{tally}, {where}: {'; '.join(failure.problems)}")
    if quiet:
        print_as(output, [_as_json(tally) for tally in tallies])
    else:
        _show(tallies)
    if not tallies or not all(tally.holds for tally in tallies):
        raise No("")


def _as_json(tally: Tally) -> dict[str, Any]:
    counts = {name: getattr(tally, name) for name in ("tried", "survived", "missed")}
    return {
        "kind": tally.kind,
        "operation": tally.operation.value,
        "points": [str(point) for point in tally.points],
        **counts,
        "failures": tally.failures,
    }


def _show(tallies: Sequence[Tally]) -> None:
    from generic.tools.cli.screen import Screen, new_table, verdict

    columns = ("kind", "operation", "points", "tried", "survived", "not reached", "")
    title = "Kills before and after every call"
    table = new_table(*columns, title=title, whole=columns[:2])
    for tally in tallies:
        counts = (len(tally.points), tally.tried, tally.survived, tally.missed)
        table.add_row(tally.kind, tally.operation.value, *map(str, counts), verdict(tally.holds))
    Screen().print(table)
