"""The progress of drills: lines in the order of events, as a log needs them."""

import pytest

from generic.tools.cli.terminal import Terminal
from tests.support.drills.evidence import life


@pytest.fixture
def terminal(monkeypatch):
    """The progress, and the time, which tests set."""
    times = [0.0]
    monkeypatch.setattr("generic.tools.cli.terminal.time.monotonic", lambda: times[0])
    return Terminal(), times


def test_steps_counts_and_tables_are_in_order(terminal, capsys):
    shown, _ = terminal
    shown.say("Creating 2 shoots")
    shown.count("ready", 0, 2)
    shown.count("ready", 1, 2)
    shown.count("ready", 2, 2)
    shown.say("Deleting them")
    shown.count("stuck", 0, 2)
    shown.stuck([life()])
    shown.count("stuck", 2, 2)
    lines = [line for line in capsys.readouterr().out.splitlines() if line[0] not in "┏┃┡│└├"]
    assert [line.strip() for line in lines] == [
        "Creating 2 shoots",
        "ready: 0 of 2",
        "ready: 2 of 2",
        "Deleting them",
        "stuck: 0 of 2",
        "Stuck deletions",
        "stuck: 2 of 2",
    ]


def test_a_count_is_a_line_at_its_end_and_every_few_seconds(terminal, capsys):
    shown, times = terminal
    for done in range(101):
        for _ in range(3):  # a drill looks more often than something changes
            shown.count("gone", done, 100)
        times[0] += 1.0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "gone: 0 of 100"
    assert lines[-1] == "gone: 100 of 100"
    assert 30 <= len(lines) <= 52


def test_a_count_that_begins_again_is_printed_again(terminal, capsys):
    """The stages of a deletion may have the same number of objects."""
    shown, _ = terminal
    for _stage in range(2):
        shown.count("gone", 0, 3)
        shown.count("gone", 3, 3)
    assert capsys.readouterr().out.splitlines() == ["gone: 0 of 3", "gone: 3 of 3"] * 2
