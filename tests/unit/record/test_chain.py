"""An export of records shows each altered, missing, added or moved line, and names the first."""

import io
import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actuator.meta import Raw
from generic.kube.canonical import canonical, digest
from generic.tools.record.chain import FORMAT, ExportHeader, WrongLine, chained, lines_of, verified

RECORDS: list[Raw] = [
    {"kind": "Orphan", "name": f"o{n}", "spec": {"id": f"vpc-{n}", "tags": {"ü\x7f\x1b": "1"}}}
    for n in range(7)
]


def header(count: int) -> ExportHeader:
    return ExportHeader(
        since="2026-07-01T00:00:00Z",
        until="",
        exported_at="2026-10-01T00:00:00Z",
        seed="seed-1",
        records=count,
    )


def export(records: list[Raw]) -> tuple[bytes, str]:
    lines = list(chained(header(len(records)), records))
    return "".join(f"{line}\n" for line, _ in lines).encode(), lines[-1][1]


WHOLE, LAST = export(RECORDS)
LINES = WHOLE.splitlines(keepends=True)


def first_line(change: Raw, **more: str) -> bytes:
    """The only line of an export without records."""
    fields = {"format": FORMAT, "version": 1, "exportedAt": ""}
    record = {**fields, **dict.fromkeys(("since", "until", "seed"), ""), "records": 0, **change}
    linked = {"previous": "0" * 64, "record": record}
    return f"{canonical({**linked, 'hash': digest(linked), **more})}\n".encode()


def first_wrong(content: bytes) -> int | None:
    try:
        verified(lines_of(io.BytesIO(content)))
    except WrongLine as wrong:
        return wrong.number
    return None


def altered(rng: random.Random) -> tuple[bytes, int]:
    at = rng.randrange(len(WHOLE))
    byte = (WHOLE[at] + rng.randrange(1, 256)) % 256
    return WHOLE[:at] + bytes([byte]) + WHOLE[at + 1 :], WHOLE[:at].count(b"\n") + 1


def shortened(rng: random.Random) -> tuple[bytes, int]:
    at = rng.randrange(len(LINES))
    return b"".join(LINES[:at] + LINES[at + 1 :]), at + 1


def without_a_byte(rng: random.Random) -> tuple[bytes, int]:
    at = rng.randrange(len(WHOLE))
    return WHOLE[:at] + WHOLE[at + 1 :], WHOLE[:at].count(b"\n") + 1


def swapped(rng: random.Random) -> tuple[bytes, int]:
    first, second = sorted(rng.sample(range(len(LINES)), 2))
    lines = list(LINES)
    lines[first], lines[second] = lines[second], lines[first]
    return b"".join(lines), first + 1


def transposed(rng: random.Random) -> tuple[bytes, int]:
    """Two bytes in each other's place."""
    while True:
        first, second = sorted(rng.sample(range(len(WHOLE)), 2))
        if WHOLE[first] != WHOLE[second]:
            break
    content = bytearray(WHOLE)
    content[first], content[second] = content[second], content[first]
    return bytes(content), WHOLE[:first].count(b"\n") + 1


def repeated(rng: random.Random) -> tuple[bytes, int]:
    at = rng.randrange(len(LINES))
    return b"".join([*LINES[: at + 1], LINES[at], *LINES[at + 1 :]]), at + 2


@pytest.mark.parametrize(
    "change", [altered, shortened, without_a_byte, swapped, transposed, repeated]
)
def test_each_of_ten_thousand_changes_is_found_at_its_line(
    change: Callable[[random.Random], tuple[bytes, int]],
) -> None:
    rng = random.Random(37)
    for _ in range(2000):
        content, line = change(rng)
        assert first_wrong(content) == line, content


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (WHOLE[:-10], f"line {len(LINES)}: incomplete: the file ends within it"),
        (WHOLE.replace(b"\n", b"\r\n"), "line 1: altered: its content and its hash differ, or"),
        (b"\x1f\x8b compressed\n", "or the file is no export"),
        (first_line({"seed": "x" * 2 * 2**20}), "line 1: longer than 2097152 bytes"),
    ],
)
def test_a_truncated_file_and_one_that_is_no_export_have_their_own_messages(
    content: bytes, words: str
) -> None:
    with pytest.raises(WrongLine, match=words):
        verified(lines_of(io.BytesIO(content)))


def test_an_unchanged_export_is_read_as_it_was_written() -> None:
    read = verified(LINES)
    assert (read.header, list(read.records), read.last_hash) == (header(7), RECORDS, LAST)


def test_each_line_has_the_hash_of_the_former_one_and_prints_nothing_but_ascii() -> None:
    assert WHOLE.isascii()
    assert WHOLE.decode().replace("\n", "").isprintable()
    hashes = [line for _, line in chained(header(7), RECORDS)]
    for number, line in enumerate(LINES[1:]):
        assert f'"previous":"{hashes[number]}"'.encode() in line


def test_a_rewritten_export_is_consistent_and_has_another_last_hash() -> None:
    rewritten, last = export([{**RECORDS[0], "name": "another"}, *RECORDS[1:]])
    assert first_wrong(rewritten) is None
    assert last != LAST


def test_an_export_without_its_last_lines_or_without_any_is_found() -> None:
    for count in range(len(LINES)):
        assert first_wrong(b"".join(LINES[:count])) == count + 1


@pytest.mark.parametrize(
    "content",
    [
        b"\n",
        b"[]\n",
        b"[" * 100_000 + b"\n",
        b'{"hash":"","previous":"","record":{}}\n',
        b"\xff\n",
        b"1" * 5000 + b"\n",
        b"x" * (2 * 2**20 + 1),
    ],
)
def test_a_file_that_is_no_export_is_refused_at_its_first_line(content: bytes) -> None:
    assert first_wrong(content) == 1


@pytest.mark.parametrize(
    "change", [{"version": 2}, {"format": "other"}, {"records": "7"}, {"unknown": 1}, {"seed": 1}]
)
def test_an_export_of_another_format_is_refused(change: Raw) -> None:
    assert first_wrong(first_line({})) is None
    assert first_wrong(first_line(change)) == 1


def test_a_part_of_a_line_that_its_hash_does_not_cover_is_refused() -> None:
    assert first_wrong(first_line({}, note="approved")) == 1


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=9))
def test_any_record_survives_a_round_trip(value: object) -> None:
    record = {"value": value}
    lines = export([record])[0].splitlines(keepends=True)
    assert list(verified(lines).records) == [record]
