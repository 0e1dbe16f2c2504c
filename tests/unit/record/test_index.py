"""`actuator record verify` finds each change of an index.json, and of a report that it names."""

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from actuator.errors import ActuatorError
from generic.kube.canonical import digest
from generic.testing.drill.all import Round, RoundResult
from generic.testing.drill.evidence import Origin
from generic.testing.drill.index import Index, read_index, write_index
from generic.testing.drill.trouble import CALM
from tests.support.pages.commands import run_command

RANDOM = random.Random(7)
REPORT = "rain/calm/report-a1.json"


@pytest.fixture
def index(tmp_path: Path) -> Path:
    """An index with one report, and a round without one."""
    (tmp_path / REPORT).parent.mkdir(parents=True)
    (tmp_path / REPORT).write_text("{}")
    held = [
        RoundResult(round=Round("rain", CALM), drill="a1", seconds=3.25),
        RoundResult(round=Round("snow", CALM), problem="no cluster: müde\x1b"),
    ]
    started = "2026-10-05T07:00:00Z"
    write_index(tmp_path, Index(id="c3", title="T", started=started, origin=Origin(), held=held))
    return tmp_path / "index.json"


def test_an_unchanged_index_is_verified_with_its_hash(index: Path) -> None:
    content = json.loads(index.read_text())
    last = content.pop("sha256")
    assert last == digest(content)
    done = run_command("record", "verify", index, "--hash", last)
    assert f"the index and its reports are unchanged; last hash: {last}" in done.stdout
    assert "without --hash" in run_command("record", "verify", index).stderr
    done = run_command("record", "verify", index, "--hash", "0" * 64, status=1)
    assert "it is another file, or it was rewritten" in done.stderr


def one_byte(text: bytes) -> bytes:
    at = RANDOM.randrange(len(text))
    return text[:at] + bytes([(text[at] + RANDOM.randrange(1, 256)) % 256]) + text[at + 1 :]


def without_a_line(text: bytes) -> bytes:
    lines = text.splitlines(keepends=True)
    del lines[RANDOM.randrange(len(lines))]
    return b"".join(lines)


@pytest.mark.parametrize("change", [one_byte, without_a_line, lambda text: b" " + text])
def test_no_changed_index_is_read(change: Callable[[bytes], bytes], index: Path) -> None:
    whole = index.read_bytes()
    for _ in range(1000):
        index.write_bytes(change(whole))
        with pytest.raises(ActuatorError):
            read_index(index)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param('"verdict": "holds"', '"verdict": "broken"', id="a verdict"),
        pytest.param('"rounds"', '"ruonds"', id="the name of a field"),
        pytest.param('{\n  "version"', '{\n  "passed": true,\n  "version"', id="a field twice"),
        pytest.param('"seconds": 3.25', '"seconds": NaN', id="a number that is none"),
    ],
)
def test_a_changed_index_fails_the_verification(old: str, new: str, index: Path) -> None:
    text = index.read_text()
    assert old in text
    index.write_text(text.replace(old, new))
    assert "altered" in run_command("record", "verify", index, status=1).stderr


@pytest.mark.parametrize(("text", "state"), [("{ }", "altered"), (None, "missing")])
def test_a_changed_report_fails_the_verification(
    text: str | None, state: str, index: Path, tmp_path: Path
) -> None:
    report = tmp_path / REPORT
    report.write_text(text) if text else report.unlink()
    done = run_command("record", "verify", index, status=1)
    assert f"Error: {report}: {state}; " in done.stderr
