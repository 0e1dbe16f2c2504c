"""The format of an export: canonical JSON lines, each with the hash of the one before. Pure.

A line is `{"hash": H, "previous": P, "record": R}`. P is the hash of the former line (64 zeros in
the first), and H is the SHA-256 of `{"previous": P, "record": R}`. The record of the first line is
a ExportHeader with the number of the others, so that a missing end is found without the last hash.

The chain shows damage and partial changes. It does not prevent a rewrite of the whole file: only
a last hash that is kept elsewhere shows that.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, BinaryIO

import attrs

from actuator.errors import ActuatorError
from actuator.meta import Raw
from generic.kube.canonical import canonical, digest
from generic.kube.plain import plain

FORMAT = "actuator-record"
_VERSION = 1
"""Increased when a field is removed or changes its meaning."""
_START = "0" * 64
_MAX_LINE = 2 * 2**20
"""Bytes: an object in etcd has at most 1.5 MiB."""
_KEYS = {"hash", "previous", "record"}


class WrongLine(ActuatorError):
    """A line of an export was altered, removed, added or moved."""

    def __init__(self, number: int, why: str) -> None:
        super().__init__(f"line {number}: {why}")
        self.number = number


@attrs.frozen(kw_only=True)
class ExportHeader:
    """The first record of an export. Times are RFC 3339."""

    since: str
    until: str
    """The end of the period, which is not part of it; "": the time of the export."""
    exported_at: str
    seed: str
    """The seed's identity, of the ConfigMap `kube-system/cluster-identity`; "" if it has none."""
    records: int
    format: str = FORMAT
    version: int = _VERSION


@attrs.frozen
class Export:
    """A verified export."""

    header: ExportHeader
    records: Sequence[Raw]
    last_hash: str


def lines_of(file: BinaryIO) -> Iterator[bytes]:
    """Yield the lines of an export, with their line breaks; one that is too long is cut."""
    return iter(lambda: file.readline(_MAX_LINE + 1), b"")


def chained(header: ExportHeader, records: Iterable[Raw]) -> Iterator[tuple[str, str]]:
    """Yield each line of an export, without its line break, and its hash."""
    previous = _START
    for record in (plain(header), *records):
        linked = {"previous": previous, "record": record}
        previous = digest(linked)
        yield canonical({**linked, "hash": previous}), previous


def verified(lines: Iterable[bytes]) -> Export:
    """Return the content of an export. Raises WrongLine for the first wrong line."""
    previous = _START
    header: ExportHeader | None = None
    records: list[Raw] = []
    number = 0
    for number, line in enumerate(lines, 1):
        linked = _parsed(line, number)
        if linked["previous"] != previous:
            raise WrongLine(number, "not the successor of the line before: missing or moved")
        previous = linked["hash"]
        if header is None:
            header = _header(linked["record"])
        elif len(records) == header.records:
            raise WrongLine(number, f"the first line announces only {header.records} records")
        else:
            records.append(linked["record"])
    if header is None or len(records) < header.records:
        raise WrongLine(number + 1, "missing: the file ends before it")
    return Export(header, records, previous)


def _parsed(line: bytes, number: int) -> Raw:
    """Return the parts of a line that is intact in itself. Raises WrongLine."""
    if len(line) > _MAX_LINE:
        raise WrongLine(number, f"longer than {_MAX_LINE} bytes")
    try:
        linked: Any = json.loads(line)
        intact = (
            isinstance(linked, dict)
            and linked.keys() == _KEYS
            and isinstance(linked["record"], dict)
            and line == f"{canonical(linked)}\n".encode()
            and linked["hash"] == digest({key: linked[key] for key in ("previous", "record")})
        )
    except (ValueError, RecursionError):
        intact = False
    if not intact and not line.endswith(b"\n"):
        raise WrongLine(number, "incomplete: the file ends within it")
    if not intact:
        other = ", or the file is no export" if number == 1 else ""
        raise WrongLine(number, f"altered: its content and its hash differ{other}")
    return dict(linked)


def _header(record: Raw) -> ExportHeader:
    names = {"exportedAt": "exported_at"}
    try:
        header = ExportHeader(**{names.get(name, name): value for name, value in record.items()})
    except TypeError:
        raise WrongLine(1, "not the first line of an export") from None
    if (header.format, header.version) != (FORMAT, _VERSION):
        raise WrongLine(1, f"not an export of the format {FORMAT}, version {_VERSION}")
    if not isinstance(header.records, int):
        raise WrongLine(1, "without the number of records")
    texts = (header.since, header.until, header.exported_at, header.seed)
    if not all(isinstance(text, str) for text in texts):
        raise WrongLine(1, "its period, its time or its seed is no text")
    return header
