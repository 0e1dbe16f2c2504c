"""Texts of tenants in records: on pages, in terminals and in metrics, whatever they contain."""

import io
import json
import tempfile
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree as ET

import attrs
from hypothesis import given
from hypothesis import strategies as st

from actuator import ExternalResource
from actuator.codec import decode
from actuator.errors import ActuatorError
from actuator.meta import Raw
from actuator.v1alpha1 import Infrastructure
from generic.kube.errorinfo import read_error
from generic.kube.headers import Request
from generic.manager.orphans.keeper import Keeper
from generic.reconciler.budget import Budget
from generic.reconciler.operation import Operation
from generic.reconciler.origin import DeletionOrigin
from generic.reconciler.orphans import ForceDeletionRecord, Orphan, OrphanReason
from generic.reconciler.orphans.forced import Ended, forced_record
from generic.reconciler.reporter import Reporter, Sinks
from generic.reconciler.track import Track
from generic.serving.metrics import Metrics, Outcome
from generic.testing.drill.all import Round, RoundResult
from generic.testing.drill.evidence import Origin
from generic.testing.drill.index import Index, write_index
from generic.testing.drill.trouble import CALM
from generic.tools.cli.grouping import FORCED, REMAINING, row_table
from generic.tools.record.chain import chained, verified
from generic.tools.record.summary import drill_rows, page
from tests.support.objects.records import everywhere, export, forced, orphan

HOSTILE = st.sampled_from(
    [
        *("<", ">", "&", "'", '"', "`", "=", "/", "{{", "{%", "<script>", "</td>", "<!--", "]]>"),
        *("&lt;", "&#60;", "\\u003c", "javascript:", " onload=", "\n", "\r", "\t", "\x00", "\x7f"),
        *("\x1b[2J", "\x1b]0;x\x07", "\x9b31m", "\u202e", "\u2066", "\u200f", "\u2028", "\ufeff"),
        *("\ud800", "[bold]", "[/]", "%s", "{0}", "\\"),
    ]
)
TEXTS = st.lists(HOSTILE | st.text(max_size=3), min_size=1, max_size=8).map(
    lambda parts: "x" + "".join(parts)
)
MARK = "planted-4be1f09a"


class Elements(HTMLParser):
    """The elements of a page with the names of their attributes, in their order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[object] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, [name for name, _ in attrs]))

    def handle_endtag(self, tag: str) -> None:
        self.found.append(tag)

    def handle_comment(self, data: str) -> None:
        self.found.append(("comment", data))


def records(text: str) -> list[Raw]:
    error = {"text": "x", "codes": ["x"], "count": 1}
    stripped = {"resource": "x", "name": "x", "finalizer": "x"}
    closed = {"state": "Closed", "closedBy": "x", "closedByVerified": True, "note": "x"}
    return [
        everywhere(forced(errors=[error], stripped=[stripped], strippedCount=1), text),
        everywhere(orphan(status=closed), text),
        everywhere(orphan("o2", id="", tags={"x": "x"}), text),
    ]


def is_shown_safely(text: str) -> bool:
    return text.replace("\n", "").isprintable()


@given(TEXTS)
def test_no_text_changes_the_elements_of_the_summary(text: str) -> None:
    made = page(export(*records(text), until=text), [], text)
    assert is_shown_safely(made)
    plain = page(export(*records("x"), until="x"), [], "x")
    assert Elements(made).found == Elements(plain).found


@given(TEXTS)
def test_no_text_changes_the_elements_of_an_index_of_drills(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        made = index_of(text, Path(folder))
        plain = index_of("x", Path(folder))
    assert is_shown_safely(made["index.html"])
    assert Elements(made["index.html"]).found == Elements(plain["index.html"]).found
    assert Elements(made["summary"]).found == Elements(plain["summary"]).found
    assert is_shown_safely(made["index.json"])
    assert len(ET.fromstring(made["junit.xml"]).findall(".//testcase")) == 1
    assert json.loads(made["index.json"])["rounds"][0]["verdict"] == "could not check"


def index_of(text: str, folder: Path) -> dict[str, str]:
    origin = Origin(version=text, commit=text, command=text, extensions=text)
    result = RoundResult(round=Round(text, CALM), problem=text)
    started = "2026-09-01T00:00:00Z"
    write_index(folder, Index(id="a", title=text, started=started, origin=origin, held=[result]))
    names = ("index.html", "index.json", "junit.xml")
    rows = list(drill_rows(folder / "index.json"))
    summary = page(export(until="x"), rows, "x")
    return {name: (folder / name).read_text() for name in names} | {"summary": summary}


@given(TEXTS)
def test_an_export_has_printable_lines_and_all_texts_as_they_were(text: str) -> None:
    whole = export(*records(text))
    lines = [line for line, _ in chained(whole.header, whole.records)]
    assert all(line.isascii() and line.isprintable() for line in lines)
    content = io.BytesIO("".join(f"{line}\n" for line in lines).encode())
    assert list(verified(content).records) == list(whole.records)


def decoded(cls: Any, record: Raw) -> Any:
    return decode(cls, {**record, "metadata": {"name": record["name"]}})


@given(TEXTS)
def test_each_record_is_one_line_of_a_terminal(text: str) -> None:
    one, *orphans = records(text)
    for cls, fields, found in (
        (ForceDeletionRecord, FORCED, [one]),
        (Orphan, REMAINING, orphans),
    ):
        items = [decoded(cls, record) for record in found]
        rows = [{name: read(item) for name, read in fields.items()} for item in items]
        shown = row_table(rows)
        assert is_shown_safely(shown)
        assert len(shown.splitlines()) == 1 + len(rows)


def exposed(text: str) -> str:
    """The metrics of a force deletion in which every text of a tenant is this one."""
    metrics = Metrics()
    kind = Infrastructure.KIND
    events: Any = SimpleNamespace(record=lambda *_, **__: None)
    sinks = Sinks(events=events, metrics=metrics.controller("infrastructure", kind.name, 5))
    names = [field.name for field in attrs.fields(DeletionOrigin) if field.name != "extra"]
    values: dict[str, Any] = dict.fromkeys(names, text)
    origin = DeletionOrigin(**values)
    track = Track(Request(text, text), "uid")
    report = Reporter(kind, track, sinks, text, find_origin=lambda: origin)
    report.failed(Operation.FORCE_DELETE, read_error(ActuatorError(text)), gives_up=True)
    report.orphans_recorded([ExternalResource(type="VPC", id=text, tags={text: text}, region=text)])
    ended = Ended(reason=OrphanReason.FORCED, deletion_requested_at=None, orphans=())
    at = "2026-01-01T00:00:00Z"
    record = forced_record(
        report.orphaned_from, Budget(0, 90), ended, forced_at=at, finished_at=at, used_seconds=1
    )
    report.not_recorded(record, text)
    report.bad_force_value(text)
    report.removed_externally()
    report.released(Outcome.ORPHANED, 1.0, [text])
    serving: Any = [SimpleNamespace(kind=kind, types=(), actuator=None)]
    keeper = Keeper(serving, metrics.registry)
    item = orphan()
    kept = everywhere(item, text) | {"apiVersion": item["apiVersion"]}
    kept["spec"]["resourceType"] = "VPC"
    kept["spec"]["object"] |= {"apiVersion": kind.api_version}
    client: Any = SimpleNamespace(list=lambda *_, **__: [_stored(kept)])
    keeper.look(client)
    return metrics.expose()[0].decode()


def _stored(record: Raw) -> Raw:
    metadata = {"name": record["name"], "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"}
    labels = {"actuator.extensions.gardener.cloud/kind": "Infrastructure"}
    return {**record, "metadata": metadata | {"labels": labels}}


@given(TEXTS)
def test_no_text_of_a_tenant_is_a_label_of_a_metric(text: str) -> None:
    marked = f"{MARK}{text}"
    found = exposed(marked)
    assert 'resource_type="VPC"' in found
    assert MARK not in found
