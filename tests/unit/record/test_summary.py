"""The summary of records: each number and person is on the page, and no text of a tenant is markup.

Tables are read as a browser shows them, so that a cell in a wrong column is noticed.
"""

from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actuator.errors import ConfigurationError
from actuator.meta import Raw
from generic.testing.drill.all import Round, RoundResult
from generic.testing.drill.evidence import Origin
from generic.testing.drill.index import Index, write_index
from generic.testing.drill.trouble import CALM
from generic.tools.record.summary import drill_rows, page
from tests.support.objects.records import everywhere, export, forced, orphan

HOSTILE = "\x1b[2J\x9b31m\u202e\u2066\x7f<script>alert(1)</script>'\"&{{ 7 * 7 }}"
CLOSED = {
    "state": "Closed",
    "closedAt": "2026-08-05T12:00:00Z",
    "closedBy": "bob",
    "closedByVerified": True,
    "note": "removed by hand",
}
GONE = {"state": "Gone", "verifiedAt": "2026-08-03T12:00:00Z"}


class Reader(HTMLParser):
    """The tables of a page: a list of rows by heading, and its elements."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tables: dict[str, list[list[str]]] = {}
        self.elements: list[str] = []
        self.text = ""
        self._heading = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.elements.append(tag)
        if tag == "h2":
            self._heading = ""
        elif tag == "tr":
            self.tables.setdefault(self._heading, []).append([])
        elif tag in ("td", "th"):
            self.tables[self._heading][-1].append("")

    def handle_data(self, data: str) -> None:
        self.text += data
        current = next((tag for tag in reversed(self.elements) if tag != "br"), "")
        if current == "h2":
            self._heading += data.strip()
        elif current in ("td", "th"):
            self.tables[self._heading][-1][-1] += data

    def rows(self, heading: str) -> list[dict[str, str]]:
        """The rows of the first table whose heading begins so, by column."""
        name = next(name for name in self.tables if name.startswith(heading))
        head, *rows = self.tables[name]
        cells = [[cell.strip() for cell in row] for row in rows]
        return [dict(zip(head, row, strict=True)) for row in cells]


def read(*records: Raw) -> Reader:
    return Reader(page(export(*records), [], "records.jsonl"))


@pytest.mark.parametrize(
    ("records", "title", "verdict"),
    [
        pytest.param(
            [],
            "0 of 0 Orphans open",
            "Force-deleted objects: 0, with Orphans: 0, of shoots: 0. Open Orphans: 0 of 0.",
            id="none",
        ),
        pytest.param(
            [forced(), forced("u2")],
            "0 of 0 Orphans open",
            "Force-deleted objects: 2, with Orphans: 0, of shoots: 1.",
            id="nothing remains",
        ),
        pytest.param(
            [forced(orphanCount=1), orphan(), orphan("o2", recordedAt="2026-09-30T00:00:00Z")],
            "2 of 2 Orphans open",
            "with Orphans: 1, of shoots: 1. Open Orphans: 2 of 2, the oldest for 61 days.",
            id="two remain",
        ),
        pytest.param(
            [orphan(), orphan("o2", CLOSED), orphan("o3", GONE), orphan("o4", {"state": "New"})],
            "2 of 4 Orphans open",
            "Open Orphans: 2 of 4,",
            id="an unknown state is open",
        ),
        pytest.param(
            [orphan(status=CLOSED)], "0 of 1 Orphans open", "Open Orphans: 0 of 1.", id="closed"
        ),
        pytest.param(
            [orphan(recordedAt="soon")], "1 of 1 Orphans open", "Orphans: 1 of 1.", id="no time"
        ),
        pytest.param(
            [{"kind": "Other"}], "0 of 0 Orphans open", "Unreadable records: 1.", id="a strange one"
        ),
    ],
)
def test_the_page_begins_with_the_result(records: list[Raw], title: str, verdict: str) -> None:
    text = page(export(*records), [], "records.jsonl")
    assert f"Force deletions: {title}</h1>" in text
    assert verdict in Reader(text).text
    good = title.startswith("0") and "Unreadable" not in verdict
    assert ('<p class="verdict">' in text) is good


def test_forced_objects_are_counted_by_extension_project_account_and_user() -> None:
    green = {"project": "green", "confirmedBy": "carol"}
    found = read(
        forced("u1", usedSeconds=3.0, failedAttempts=2),
        forced("u2", usedSeconds=60.0, failedAttempts=3, outcome="orphaned", orphanCount=2),
        forced("u3", green),
        orphan("o1"),
        orphan("o2", CLOSED),
    ).rows("Force deletions by")
    numbers = ("Forced", "Left Orphans", "Open Orphans", "Failed attempts", "Longest, in seconds")
    counted = {
        (row["Project"], row["Account"], row["Confirmed by"]): [row[name] for name in numbers]
        for row in found
    }
    assert counted == {
        ("blue", "000000000001", "alice@example.org"): ["2", "1", "1", "5", "60.0"],
        ("green", "000000000001", "carol"): ["1", "0", "0", "0", "10.2"],
    }
    assert {row["Extension"] for row in found} == {"aws (gardener-actuator 0.1.0)"}


@pytest.mark.parametrize(
    ("spec", "column", "text"),
    [
        ({}, "Seconds of budget", "10.2 of 90"),
        ({"budgetSeconds": None}, "Seconds of budget", "10.2 of no budget"),
        ({}, "Object", "Infrastructure shoot--blue--lake/infra"),
        ({}, "Shoot", "blue/lake"),
        ({}, "Confirmed by", "alice@example.org"),
        (
            {"outcome": "orphaned", "reason": "BudgetExceeded"},
            "Outcome",
            "orphaned (BudgetExceeded)",
        ),
        ({"failedAttempts": 7}, "Failed attempts", "7"),
        ({"orphanCount": 4}, "Orphans", "4"),
        ({}, "Finished", "2026-08-01T00:00:10Z"),
    ],
)
def test_a_forced_object_has_a_row(spec: Raw, column: str, text: str) -> None:
    (row,) = read(forced(**spec)).rows("Force-deleted objects")
    assert row[column] == text


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({}, ("Unverified", "61", "", "")),
        ({"state": "Exists", "verifiedAt": "2026-08-02T00:00:00Z"}, ("Exists", "61", "", "")),
        (GONE, ("Gone", "2", "", "")),
        (CLOSED, ("Closed", "4", "bob", "removed by hand")),
        (
            {**CLOSED, "closedByVerified": False},
            ("Closed", "4", "bob (not verified)", "removed by hand"),
        ),
    ],
)
def test_an_orphan_shows_its_age_and_who_closed_it_and_why(
    status: Raw, expected: tuple[str, ...]
) -> None:
    (row,) = read(orphan(status=status)).rows("Remaining resources")
    assert tuple(row[name] for name in ("State", "Days open", "Closed by", "Note")) == expected
    assert (row["Resource"], row["Shoot"]) == ("VPC vpc-1 eu-1", "blue/lake")


def test_open_orphans_come_first_and_then_the_oldest() -> None:
    found = read(
        orphan("o1", CLOSED, id="closed", recordedAt="2026-07-01T00:00:00Z"),
        orphan("o2", id="new", recordedAt="2026-09-01T00:00:00Z"),
        orphan("o3", id="", tags={"shoot": "old"}, recordedAt="2026-01-01T00:00:00Z"),
    ).rows("Remaining resources")
    assert [row["Resource"] for row in found] == [
        "VPC shoot=old eu-1",
        "VPC new eu-1",
        "VPC closed eu-1",
    ]


def test_errors_and_stripped_finalizers_are_summed() -> None:
    error = {"text": "denied", "codes": ["ERR_INFRA_UNAUTHENTICATED"], "count": 3}
    stripped = {"resource": "machines", "name": "m", "finalizer": "mcm"}
    found = read(
        forced("u1", errors=[error], stripped=[stripped], strippedCount=5),
        forced("u2", errors=[error, {"text": "slow", "count": 1}], stripped=[stripped]),
    )
    assert [tuple(row.values()) for row in found.rows("Errors")] == [
        ("2", "6", "denied", "ERR_INFRA_UNAUTHENTICATED"),
        ("1", "1", "slow", ""),
    ]
    rows = [tuple(row.values()) for row in found.rows("Finalizers removed")]
    assert rows[0] == ("mcm", "machines", "2")


def test_finalizers_that_no_record_names_are_counted() -> None:
    stripped = {"resource": "machines", "name": "m", "finalizer": "mcm"}
    found = read(forced(stripped=[stripped], strippedCount=101)).rows("Finalizers removed")
    assert [row["Times"] for row in found] == ["1", "100"]


def hostile(record: Raw) -> Raw:
    found = everywhere(record, HOSTILE)
    assert isinstance(found, dict)
    return found


def test_no_text_of_a_tenant_is_markup_or_a_control_character(tmp_path: Path) -> None:
    error = {"text": "x", "codes": ["x"], "count": 1}
    stripped = {"resource": "x", "name": "x", "finalizer": "x"}
    records = [
        hostile(forced(errors=[error], stripped=[stripped], strippedCount=1)),
        hostile(orphan(status=CLOSED)),
        hostile(orphan("o2", id="", tags={"x": "x"})),
        {"kind": HOSTILE, "name": HOSTILE},
    ]
    result = RoundResult(round=Round(HOSTILE, CALM), problem=HOSTILE)
    origin = Origin(version=HOSTILE, commit=HOSTILE, command=HOSTILE)
    index = Index(id="a", title=HOSTILE, started=HOSTILE, origin=origin, held=[result])
    write_index(tmp_path, index)
    drills = list(drill_rows(tmp_path / "index.json"))
    text = page(export(*records, until=HOSTILE), drills, HOSTILE)
    assert text.replace("\n", "").isprintable()
    found = Reader(text)
    assert "script" not in found.elements
    assert found.elements.count("style") == 1
    escaped = "\\u001b[2J\\u009b31m\\u202e\\u2066\\u007f<script>alert(1)</script>'\"&{{ 7 * 7 }}"
    assert found.text.count(escaped) > 30
    assert "<script" not in text


@pytest.mark.parametrize(
    "record",
    [
        pytest.param({}, id="empty"),
        pytest.param({"kind": ["Orphan"], "name": {}}, id="texts that are none"),
        pytest.param(orphan(id=7), id="a number as an id"),
        pytest.param(orphan(tags=[]), id="a list as tags"),
        pytest.param(forced(errors=[7]), id="an error that is none"),
        pytest.param({**orphan(), "spec": []}, id="a list as a spec"),
        pytest.param({**orphan(), "name": 7}, id="a number as a name"),
    ],
)
def test_a_record_that_cannot_be_read_is_named_and_hides_no_other(record: Raw) -> None:
    text = page(export(forced(), record), [], "records.jsonl")
    found = Reader(text)
    assert len(found.rows("Force-deleted objects")) == 1
    (row,) = found.rows("Records that cannot be read")
    assert row["Problem"]
    assert '<p class="verdict broken">' in text


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
WHOLE = [
    forced(errors=[{"text": "x", "codes": ["x"], "count": 1}], strippedCount=1, orphanCount=1),
    orphan(status=CLOSED, tags={"x": "x"}),
    orphan(status=GONE),
]


@given(st.sampled_from(WHOLE), st.data())
def test_no_record_prevents_the_page(record: Raw, data: st.DataObject) -> None:
    part = data.draw(st.sampled_from(["spec", "status"]))
    field = data.draw(st.sampled_from(sorted(record["spec"] | CLOSED | GONE)))
    damaged = {**record, part: {**record[part], field: data.draw(JSON)}}
    text = page(export(damaged, forced("u9")), [], "records.jsonl")
    assert text.replace("\n", "").isprintable()
    assert len(Reader(text).rows("Force-deleted objects")) >= 1


def test_unknown_fields_and_values_of_a_later_version_are_read() -> None:
    future = {"since": "9.9"}
    found = read(
        forced(future=future, outcome="negotiated", usedSeconds=10**400),
        orphan(status={"state": "Disputed"}, future=future),
    )
    assert "negotiated (ForceDeleted)" in found.text
    assert "Records that cannot be read" not in found.tables


INDEX = Index(
    id="c3",
    title="Lake",
    started="2026-09-01T00:00:00Z",
    origin=Origin(version="0.1.0", extensions="acme 1.4.0"),
    held=[
        RoundResult(round=Round("revoked", CALM), drill="a1", seconds=3.0),
        RoundResult(round=Round("slow", seed="eu1"), problem="no cluster"),
    ],
)


@pytest.fixture
def drilled(tmp_path: Path) -> Callable[[], list[dict[str, str]]]:
    """A run of drills with one report; returns the rows of the page."""
    report = tmp_path / "revoked/calm/report-a1.json"
    report.parent.mkdir(parents=True)
    report.write_text("{}")
    write_index(tmp_path, INDEX)

    def rows() -> list[dict[str, str]]:
        rounds = list(drill_rows(tmp_path / "index.json"))
        return Reader(page(export(), rounds, "records.jsonl")).rows("Drills")

    return rows


def test_drills_are_beside_real_deletions_with_the_state_of_their_reports(
    drilled: Callable[[], list[dict[str, str]]], tmp_path: Path
) -> None:
    assert [tuple(row.values()) for row in drilled()] == [
        (
            "2026-09-01T00:00:00Z",
            "Lake (acme 1.4.0)",
            "embedded",
            "revoked",
            "nothing more",
            "holds",
            "3.0",
            "unchanged",
        ),
        (
            "2026-09-01T00:00:00Z",
            "Lake (acme 1.4.0)",
            "eu1 (unknown)",
            "slow",
            "nothing more",
            "could not check; no cluster",
            "0.0",
            "none",
        ),
    ]
    report = tmp_path / "revoked/calm/report-a1.json"
    report.write_text("{ }")
    assert drilled()[0]["Report"] == "altered"
    report.unlink()
    assert drilled()[0]["Report"] == "missing"


@pytest.mark.parametrize(
    "content", ["", "[]", "[" * 100_000, "{}", '{"version": 1}', "\x1b[2J", "null", "7"]
)
def test_a_file_that_is_no_index_is_refused(content: str, tmp_path: Path) -> None:
    path = tmp_path / "index.json"
    path.write_text(content)
    with pytest.raises(ConfigurationError, match=r"not an index\.json of"):
        list(drill_rows(path))


def test_an_index_of_another_version_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("generic.testing.drill.index._VERSION", 2)
        write_index(tmp_path, attrs.evolve(INDEX, held=[]))
    path = tmp_path / "index.json"
    with pytest.raises(ConfigurationError, match="an index of version 2, not 1"):
        list(drill_rows(path))
