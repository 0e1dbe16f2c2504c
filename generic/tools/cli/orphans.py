"""`actuator orphans`: the recorded external resources that remain after force deletions."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import click

from actuator.errors import ActuatorError, ApiError, ConfigurationError
from actuator.meta import Raw
from generic.kube.clock import SystemClock
from generic.kube.plain import plain
from generic.kube.printable import echo
from generic.manager.orphans import ledger
from generic.manager.orphans.closer import closer
from generic.manager.orphans.verification import FEW, Verification, verify
from generic.reconciler.orphans.kind import Orphan, OrphanState
from generic.tools.cli import complete
from generic.tools.cli.development import DevelopmentTarget, select
from generic.tools.cli.grouping import REMAINING, by_option, print_groups
from generic.tools.cli.load import (
    counted,
    list_option,
    load_manager,
    output_option,
    print_list,
    with_flags,
)
from generic.tools.cli.statuses import CheckCommand, No, with_remedy

_VERSION = 1
"""Version of the JSON format: increased when a field is removed or changes its meaning."""

_seed_flags = with_flags("kubeconfig", "context", "master")
_shoot_option = click.option(
    "--shoot",
    default="",
    metavar="NAMESPACE",
    help="Select one shoot.",
    shell_complete=complete.targets,
)
_note_option = click.option(
    "--note",
    default="",
    callback=lambda _ctx, _param, note: _whole(note),
    help="Reason, stored in the Orphan.",
)
_names = partial(click.argument, "names", nargs=-1, shell_complete=complete.orphans)


def _whole(note: str) -> str:
    """Refuse a note that would be stored without its end."""
    if len(note) > ledger.MAX_NOTE:
        raise click.BadParameter(
            f"has {len(note)} characters; at most {ledger.MAX_NOTE} are stored"
        )
    return note


@click.group()
def orphans() -> None:
    """List, verify, close and reopen Orphans, the records of remaining external resources.

    NAME is the full name of an Orphan, or the short name that `list` shows.
    """


@orphans.command("list")
@_shoot_option
@click.option("--kind", default="", help="Select one kind, for example Infrastructure.")
@click.option("--type", "type_", default="", help="Select one resource type.")
@click.option("--all", "closed_too", is_flag=True, help="Include those in state Closed or Gone.")
@by_option(REMAINING, "Count by this field, for example account; repeatable.")
@list_option
@_seed_flags
def _list(
    shoot: str,
    kind: str,
    type_: str,
    closed_too: bool,
    by: tuple[str, ...],
    output: str,
    **seed: Any,
) -> None:
    """List open Orphans (existing, or not verified), oldest first.

    `-o name` prints full names, which the other commands accept. With --by, the command counts
    the Orphans by fields, with the time at which the oldest one was recorded.
    """

    def is_wanted(orphan: Orphan) -> bool:
        spec = orphan.spec
        return (
            shoot in ("", spec.shoot)
            and kind.casefold() in ("", spec.object.kind.casefold())
            and type_.casefold() in ("", spec.resource_type.casefold())
            and (closed_too or orphan.is_open)
        )

    recorded = ledger.read_orphans(select(DevelopmentTarget(**seed)).connect())
    found = [Verification(orphan=item) for item in recorded if is_wanted(item)]
    what = "" if closed_too else "open "
    none = f"no {what}orphans selected, {len(recorded)} recorded"
    if not by:
        _show(output, found, recorded, none)
        return
    print_groups(output, [item.orphan for item in found], REMAINING, by, _counted, none)


def _counted(members: Sequence[Orphan]) -> Raw:
    return {
        "orphans": len(members),
        "shoots": len({item.spec.shoot for item in members}),
        "oldest": min(item.spec.recorded_at for item in members),
    }


@orphans.command("verify", cls=CheckCommand)
@click.argument("extension", metavar="MODULE:OBJECT")
@_names(metavar="[NAME]...")
@click.option("--type", "types", multiple=True, help="Type, if MODULE:OBJECT is an Actuator.")
@_shoot_option
@click.option("--gone", type=int, help="Number of missing resources, if none of many exists.")
@output_option
@_seed_flags
def _verify(
    extension: str,
    names: tuple[str, ...],
    types: tuple[str, ...],
    shoot: str,
    gone: int | None,
    output: str,
    **seed: Any,
) -> None:
    """Verify with an extension whether external resources still exist, and record the results.

    The command verifies each open orphan of the extension, or those with the given names. The
    state of a resource that the extension cannot verify is unchanged, and so is the state Closed.

    The extension uses your credentials, as the client of its cloud finds them (for AWS:
    environment or profile). They must belong to the account of the shoot: in another account,
    no resource is found, and all appear to be gone. If shoots have different accounts, set
    --shoot. If none of many resources is found, nothing is recorded, unless --gone has their
    number.

    The exit status is 0 if no resource remains. It is 1 if a resource still exists or could not
    be verified, and 3 if no open orphan belongs to this extension, or none could be read.
    """
    client = select(DevelopmentTarget(**seed)).connect()
    added = load_manager(extension, types).registrations
    recorded = ledger.read_orphans(client)
    of_shoot = [obj for obj in recorded if shoot in ("", obj.spec.shoot)]
    asked, problems = _named(of_shoot, names)
    others: list[Orphan] = []
    if not names:
        still_open = [orphan for orphan in of_shoot if orphan.is_open]
        asked = [obj for obj in still_open if ledger.serving(added, obj.spec.object)]
        others = [item for item in still_open if item not in asked]
    found = list(verify(client, asked, added, SystemClock(), gone))
    none = "" if others or problems else "no open orphans"
    _show(output, found, recorded, none, ofOthers=[other.metadata.name for other in others])
    _say(problems)
    _judge(found, problems, others, extension)


def _judge(
    found: Sequence[Verification], problems: Sequence[str], others: Sequence[Orphan], extension: str
) -> None:
    """Raise No if a resource remains, and ActuatorError if no orphan was verified."""
    if others:
        echo(f"skipped {counted(len(others), 'open orphan')} of other extensions", err=True)
    left = sum(not item.is_settled for item in found) + len(problems)
    if left:
        total = len(found) + len(problems)
        raise No(f"{left} of {total} still exist or could not be verified")
    if others and not found:
        raise ActuatorError(
            f"no open orphan belongs to {extension}; verify them with their own extension"
        )


@orphans.command("close")
@_names(metavar="[NAME]...")
@_note_option
@click.option("--all-gone", is_flag=True, help="Close all orphans that `verify` found to be gone.")
@click.option("--even-if-exists", is_flag=True, help="Close also existing resources.")
@click.option("--count", type=int, help=f"Number of orphans to close, if more than {FEW}.")
@_seed_flags
def _close(
    names: tuple[str, ...],
    note: str,
    all_gone: bool,
    even_if_exists: bool,
    count: int | None,
    **seed: Any,
) -> None:
    """Set the state Closed for orphans that need no more attention; the cloud is not changed.

    Without --note, only orphans in state Gone are closed, and the note has the time of their
    verification. An orphan in state Exists is closed only with --even-if-exists. Closing an
    orphan again changes only its note. The exit status is 1 if some could not be closed; the
    others are.
    """
    if not names and not all_gone:
        raise click.UsageError("set the NAMEs of orphans, or --all-gone")
    client = select(DevelopmentTarget(**seed)).connect()
    recorded = ledger.read_orphans(client)
    chosen, problems = _named(recorded, names)
    if all_gone:
        gone = [orphan for orphan in recorded if orphan.state is OrphanState.GONE]
        chosen += [item for item in gone if item not in chosen]
    if len(chosen) > FEW and count != len(chosen):
        raise click.UsageError(
            f"this closes {len(chosen)} orphans; check them, then set --count {len(chosen)}"
        )
    asked = len(chosen) + len(problems)
    now = SystemClock().now()
    if chosen:
        by = closer(client, chosen[0])
        changing = partial(ledger.close, client, now=now, by=by, note=note, existing=even_if_exists)
        problems += _changed(chosen, changing, f"closed by {by}", "already closed")
    if not asked:
        echo("no orphans in state Gone")
    _report(problems, asked, "closed")


@orphans.command("reopen")
@click.argument(
    "names", nargs=-1, required=True, metavar="NAME...", shell_complete=complete.orphans
)
@_note_option
@_seed_flags
def _reopen(names: tuple[str, ...], note: str, **seed: Any) -> None:
    """Set the state Unverified for orphans in state Closed or Gone, so that they count as open."""
    client = select(DevelopmentTarget(**seed)).connect()
    chosen, problems = _named(ledger.read_orphans(client), names)
    asked = len(chosen) + len(problems)
    problems += _changed(
        chosen, partial(ledger.reopen, client, note=note), "reopened", "already open"
    )
    _report(problems, asked, "reopened")


def _changed(
    chosen: Iterable[Orphan], change: Callable[[Orphan], bool], done: str, before: str
) -> list[str]:
    """Change each orphan, and print which word applies; return the errors."""
    problems = []
    for orphan in chosen:
        what = f"{orphan.metadata.name}: {orphan.spec.resource}"
        try:
            echo(f"{what}: {done if change(orphan) else before}")
        except (ActuatorError, ApiError) as error:
            problems.append(with_remedy(error) if isinstance(error, ApiError) else str(error))
    return problems


def _report(problems: Sequence[str], asked: int, done: str) -> None:
    """Print the errors. Raises ActuatorError if there are some."""
    _say(problems)
    if problems:
        raise ActuatorError(f"{len(problems)} of {asked} not {done}")


def _named(recorded: Sequence[Orphan], names: Sequence[str]) -> tuple[list[Orphan], list[str]]:
    """Return the orphans of these names, each once, and the errors of the other names."""
    found: list[Orphan] = []
    problems: list[str] = []
    for name in dict.fromkeys(names):
        try:
            orphan = ledger.find(recorded, name)
            found += [orphan] if orphan not in found else []
        except ConfigurationError as error:
            problems.append(error.message)
    return found, problems


def _say(problems: Sequence[str]) -> None:
    for problem in problems:
        echo(f"Error: {problem}", err=True)


def _show(
    output: str, found: Sequence[Verification], recorded: Sequence[Orphan], none: str, **more: Any
) -> None:
    """Print the orphans; `none` is the text without any, `more` are other lists of JSON."""
    facts = [_facts(item, with_problem=bool(more)) for item in found]
    totals = Counter(item.orphan.state.value for item in found)
    data = {"version": _VERSION, "orphans": facts, "totals": totals, **more}
    table = partial(_table, found, ledger.short_names(recorded), totals, wide=output == "wide")
    print_list(output, data, [item.orphan.metadata.name for item in found], table, none)


def _table(
    found: Sequence[Verification],
    names: Mapping[str, str],
    totals: Mapping[str, int],
    *,
    wide: bool,
) -> str:
    from generic.tools.cli.screen import columns, since

    now = SystemClock().now()
    head = ["NAME", "TYPE", "ID OR TAGS", "SHOOT", "STATE", "AGE"]
    head += ["REGION", "ACCOUNT", "SEED", "OBJECT", "CONFIRMED BY"] if wide else []
    head += ["CLOSED BY", "REASON", "MESSAGE"] if wide else []
    problems = any(item.problem for item in found)
    rows = []
    for item in found:
        orphan = item.orphan
        spec = item.orphan.spec
        tags = ",".join(f"{key}={value}" for key, value in sorted(spec.tags.items()))
        row = [names[orphan.metadata.name], spec.resource_type, spec.id or tags, spec.shoot]
        row += [orphan.state.value, since(spec.recorded_at, now)]
        origin = spec.object.origin
        released = f"{spec.object.kind}/{spec.object.name}"
        where = [spec.region, origin.account, origin.seed, released, origin.confirmed_by]
        row += [*where, ledger.closed_by(orphan), spec.reason, spec.message] if wide else []
        rows.append([*row, item.problem] if problems else row)
    counts = ", ".join(f"{count} {state}" for state, count in sorted(totals.items()))
    shoots = len({item.orphan.spec.shoot for item in found})
    total = f"{counted(len(found), 'orphan')} of {counted(shoots, 'shoot')}: {counts}"
    return f"{columns([*head, 'PROBLEM'] if problems else head, rows)}\n\n{total}"


def _facts(finding: Verification, *, with_problem: bool) -> Raw:
    """Return all recorded facts; every key is always present."""
    orphan = finding.orphan
    facts = {"name": orphan.metadata.name, **plain(orphan.spec), **plain(orphan.status)}
    problem = {"problem": finding.problem} if with_problem else {}
    return {**facts, "state": orphan.state.value, **problem}
