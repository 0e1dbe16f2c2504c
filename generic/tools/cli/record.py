"""`actuator record`: evidence of force deletions, for audits."""

from datetime import datetime
from pathlib import Path
from typing import Any

import click

from generic.kube.clock import SystemClock
from generic.kube.printable import echo
from generic.testing.drill.index import AlteredIndex, is_index, read_index, report_state
from generic.tools.cli.development import DevelopmentTarget, select
from generic.tools.cli.load import counted, with_flags
from generic.tools.cli.period import since_option, until_option
from generic.tools.cli.record_list import list_drills, list_records
from generic.tools.cli.statuses import CheckCommand, No
from generic.tools.record.chain import Export, WrongLine, chained, lines_of, verified
from generic.tools.record.gather import gather

_seed_flags = with_flags("kubeconfig", "context", "master")
_file = click.Path(exists=True, dir_okay=False, path_type=Path)
_hash = click.option("--hash", "known", default="", metavar="HASH", help="Last hash of the file.")


@click.group()
def record() -> None:
    """List, export, verify and summarize the records of force deletions, and list drills."""


record.add_command(list_records)
record.add_command(list_drills)


@record.command("export")
@since_option(required=True)
@until_option
@_seed_flags
def _export(since: datetime, until: datetime | None, **seed: Any) -> None:
    """Print the records of a period as hash-chained JSON lines, and the last hash to stderr.

    Records that were created or changed in the period are exported, and open Orphans from before
    it. Keep the last hash apart from the file: without it, a rewrite of the whole file is not
    found.
    """
    client = select(DevelopmentTarget(**seed)).connect()
    header, records = gather(client, since, until, SystemClock().now())
    for line, link in chained(header, records):
        echo(line)
        last = link
    echo(f"{counted(len(records), 'record')}; last hash: {last}", err=True)


@record.command("verify", cls=CheckCommand)
@click.argument("file", type=_file)
@_hash
def _verify(file: Path, known: str) -> None:
    """Find the first line of an export that was altered, removed, added or moved.

    FILE can also be an index.json of drills: it and the reports that it names are verified. The
    exit status is 1 if something was changed, or if the last hash is not the one of --hash.
    """
    if is_index(file):
        last = _verify_index(file)
        _compare(file, last, known)
        echo(f"{file}: the index and its reports are unchanged; last hash: {last}")
    else:
        found = _read(file, known)
        count = counted(len(found.records), "record")
        echo(f"{file}: {count}, unchanged; last hash: {found.last_hash}")
    if not known:
        echo("without --hash, a rewrite of the whole file is not found", err=True)


def _verify_index(file: Path) -> str:
    """Return the hash of an index. Raises No if it, or a report of it, was changed."""
    try:
        index = read_index(file)
    except AlteredIndex as altered:
        raise No(str(altered)) from None
    for entry in index.rounds:
        if (state := report_state(file.parent, entry)) in ("altered", "missing"):
            raise No(f"{file.parent / str(entry.report)}: {state}; {file} has another hash")
    return index.sha256


def _compare(file: Path, last: str, known: str) -> None:
    """Raise No if the last hash of a file is another one than `known`, unless that is ""."""
    if known and known.strip().lower() != last:
        raise No(
            f"{file}: its last hash is {last}, not that of --hash: it is another file, or it was "
            "rewritten"
        )


@record.command("summary")
@click.argument("file", type=_file, required=False)
@_hash
@since_option()
@until_option
@click.option(
    "--drills",
    multiple=True,
    type=_file,
    metavar="INDEX",
    help="Add the rounds of an index.json of `actuator drill --all`; repeatable.",
)
@_seed_flags
def _summary(
    file: Path | None,
    known: str,
    since: datetime | None,
    until: datetime | None,
    drills: tuple[Path, ...],
    **seed: Any,
) -> None:
    """Print an HTML page about the force deletions of a period, for auditors.

    FILE is an export; it is verified first, and no cluster is needed. Without it, the records of
    a seed since --since are read.
    """
    from generic.tools.record.summary import drill_rows, page  # needs jinja2

    rounds = [row for path in drills for row in drill_rows(path)]
    if file and not (since or until):
        export = _read(file, known)
        source = f"{file}, verified {'with' if known else 'without'} --hash"
    elif since and not (file or known):
        client = select(DevelopmentTarget(**seed)).connect()
        export = Export(*gather(client, since, until, SystemClock().now()), "")
        source = "the seed"
    else:
        raise click.UsageError("set FILE, an export that has its own period, or --since")
    echo(page(export, rounds, source), lines=True)


def _read(file: Path, known: str) -> Export:
    """Return a verified export. Raises No for a wrong line, or another last hash than `known`."""
    try:
        with file.open("rb") as opened:
            found = verified(lines_of(opened))
    except WrongLine as wrong:
        raise No(f"{file}: {wrong}") from None
    _compare(file, found.last_hash, known)
    return found
