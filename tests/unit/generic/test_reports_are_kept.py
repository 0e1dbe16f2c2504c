"""Reports and indexes of drills in the file system: full disks, shared folders, interruptions.

The drills themselves are replaced by their outcomes: holds, a broken rule, an error, an interrupt.
"""

import json
import os
import resource
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from actuator.errors import ActuatorError, ConfigurationError, Unavailable
from generic.testing.drill.judge import unwritten
from generic.testing.drill.names import Names
from generic.testing.drill.report import check_folder, own_name, write_all
from generic.testing.envtest import EnvtestError
from tests.support.drills.evidence import evidence

ONE_SCENARIO = "tests.support.drills.affordable:OneScenario"
ROUNDS = 6
OUTCOMES = {"holds": 0, "broken": 1, "error": 3, "interrupt": 130}
"""The outcomes of a drill, and the exit status of one that ends so."""

UNKNOWN = ("not run", "could not check")


@pytest.fixture
def no_more_space(monkeypatch):
    """Lets files grow no more: the writes of a full disk fail in the same way."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def outcome(name, **more):
    """End as a drill with this outcome."""
    if name == "error":
        raise ActuatorError("the cluster <does> not start\x1b")
    if name == "interrupt":
        raise KeyboardInterrupt
    broken: dict[str, Any] = {"records": []} if name == "broken" else {}
    return evidence(drill=Names().id, **broken, **more)


@pytest.fixture
def drills(monkeypatch):
    """Replaces the drills of commands; returns how to set their outcomes."""

    def replace(*names, before=lambda: None):
        left = list(names)

        def run(*_):
            before()
            return outcome(left.pop(0))

        monkeypatch.setattr("generic.testing.drill.scenarios.drill", run)

    return replace


@pytest.mark.parametrize("name", OUTCOMES)
def test_the_status_tells_a_broken_rule_from_a_drill_that_could_not_run(
    name, drills, command, tmp_path
):
    drills(name)
    done = command("drill", ONE_SCENARIO, "--output", tmp_path, status=OUTCOMES[name])
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "problem", [Unavailable(503, "no answer"), EnvtestError("no etcd")], ids=str
)
def test_each_kind_of_error_means_that_a_drill_could_not_run(
    problem, monkeypatch, command, tmp_path
):
    def fail(*_):
        raise problem

    monkeypatch.setattr("generic.testing.drill.scenarios.drill", fail)
    command("drill", ONE_SCENARIO, "--output", tmp_path, status=3)


@pytest.mark.parametrize("flags", [[], ["--all"], ["--scenario", "migration"]], ids=str)
@pytest.mark.parametrize("folder", ["/dev/null/x", "/proc/x", "full"])
def test_a_folder_that_cannot_be_written_is_found_before_the_drill(
    flags, folder, drills, no_more_space, command, tmp_path
):
    drills()  # a drill would fail
    if folder == "full":
        folder = tmp_path
        no_more_space()
    rehearsal = (
        "tests.support.drills.moving_rehearsal:OneNetwork" if "migration" in flags else ONE_SCENARIO
    )
    done = command("drill", rehearsal, *flags, "--output", folder, status=3)
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"Error: --output {folder}: cannot write reports there: ")
    assert line.endswith("; free space, or set another folder")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("name", "status"), [("holds", 3), ("broken", 1)])
def test_a_disk_that_is_full_at_the_end_loses_no_verdict(
    name, status, drills, no_more_space, command, tmp_path
):
    drills(name, before=no_more_space)
    done = command("drill", ONE_SCENARIO, "--output", tmp_path, status=status)
    assert f"Error: cannot write the report into {tmp_path}: File too large" in done.stderr
    assert "Every remaining external" in done.stdout
    assert ("BROKEN" in done.stdout) is (name == "broken")
    assert list(tmp_path.iterdir()) == [], "no half of a report"


def test_a_full_disk_between_the_rounds_loses_no_verdict(drills, no_more_space, command, tmp_path):
    drills(*["holds"] * (ROUNDS - 1), "broken", before=no_more_space)
    done = command("drill", ONE_SCENARIO, "--all", "--output", tmp_path, status=1)
    assert f"Error: cannot write the index into {tmp_path}: File too large" in done.stderr
    assert done.stdout.count("BROKEN") == 2, "in the table of its rules, and in that of the rounds"
    told = json.loads((tmp_path / "index.json").read_text())
    assert told["rounds"][0]["problems"] == ["interrupted"], "what the last whole index knew"


PROGRAM = """
import sys
from tests.support.drills.evidence import evidence
from generic.testing.drill import scenarios
from generic.tools.cli.main import main

def drill(_settings, _rehearsal, watcher, _course):
    watcher.say("Starting")
    watcher.count("ready", 1, 1)
    watcher.stuck(evidence().lives)
    return evidence(records=[])

scenarios.drill = drill
main(sys.argv[1:])
"""


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["drill", ONE_SCENARIO], 1, ""),
        (["drill", ONE_SCENARIO, "--all"], 1, ""),
        (["crds"], 1, "Error: No space left on device\n"),
    ],
)
def test_output_that_cannot_be_written_changes_no_verdict(arguments, status, words, tmp_path):
    """As `actuator drill > log` on a full disk."""
    command = [sys.executable, "-c", PROGRAM, *arguments]
    tests = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            command, check=False, cwd=tmp_path, env=tests, stdout=full, stderr=subprocess.PIPE
        )
    assert (done.returncode, done.stderr.decode()) == (status, words)
    reports = [json.loads(path.read_text()) for path in tmp_path.rglob("report.json")]
    assert [report["passed"] for report in reports[:1]] == [False] * ("drill" in arguments)


def test_drills_in_one_folder_keep_their_reports(drills, command, tmp_path):
    drills("broken", "holds")
    paths = []
    for status in (1, 0):
        shown = command("drill", ONE_SCENARIO, "--output", tmp_path, status=status).stdout
        paths.append(shown.split()[-1])
    passed = [json.loads(Path(path).read_text())["passed"] for path in paths]
    assert passed == [False, True]
    assert json.loads((tmp_path / "report.json").read_text())["passed"] is True, "the latest"
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".html"] * 3 + [".json"] * 3


def test_drills_at_the_same_time_in_one_folder_keep_their_reports(tmp_path):
    ids = [Names().id for _ in range(20)]
    texts = {drill: {"report.json": drill * 50_000, "report.html": drill} for drill in ids}
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda drill: write_all(tmp_path, drill, texts[drill]), ids))
    for drill, files in texts.items():
        for name, text in files.items():
            assert own_name(tmp_path / name, drill).read_text() == text
    assert (tmp_path / "report.json").read_text() in {
        text["report.json"] for text in texts.values()
    }
    assert len(list(tmp_path.iterdir())) == 2 * len(ids) + 2, "no part of a file is left"


def expected(names):
    """The verdict of each round, and the exit status."""
    seen = names[: names.index("interrupt")] if "interrupt" in names else names
    words = ["could not check" if name == "error" else name for name in seen]
    words += ["not run"] * (ROUNDS - len(seen))
    if "interrupt" in names:
        return words, 130
    return words, 1 if "broken" in names else 3 if "error" in names else 0


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(names=st.lists(st.sampled_from([*OUTCOMES]), min_size=ROUNDS, max_size=ROUNDS))
def test_the_index_has_every_round_whatever_their_outcomes(names, drills, command, tmp_path):
    drills(*names)
    words, status = expected(names)
    command("drill", ONE_SCENARIO, "--all", "--shoots", "1", "--output", tmp_path, status=status)
    told = json.loads((tmp_path / "index.json").read_text())
    assert [round_["verdict"] for round_ in told["rounds"]] == words
    assert told["passed"] is (status == 0)
    assert told["started"].endswith("Z")
    assert told["origin"]["version"]
    assert told["origin"]["command"].startswith("actuator")
    page = (tmp_path / "index.html").read_text()
    for round_ in told["rounds"]:
        assert (round_["report"] is None) is (round_["verdict"] in UNKNOWN)
        if round_["report"]:
            assert json.loads((tmp_path / round_["report"]).read_text())["passed"] == (
                round_["verdict"] == "holds"
            )
            assert f'href="{round_["report"].removesuffix("json")}html"' in page
    for value in (told["started"], told["origin"]["version"]):
        assert value in page
    check_junit(ET.parse(tmp_path / "junit.xml").getroot(), words)


def check_junit(root, words):
    suites = list(root)
    assert len(suites) == ROUNDS
    for suite, word in zip(suites, words, strict=True):
        assert (int(suite.get("errors")) > 0) is (word in UNKNOWN)
        assert (int(suite.get("failures")) > 0) is (word == "broken")
        assert int(suite.get("tests")) == len(suite.findall("testcase"))
        for tag in ("error", "failure", "skipped"):
            assert all(item.get("message") for item in suite.iter(tag))


def test_two_indexes_in_one_folder_are_both_kept(drills, command, tmp_path):
    for names, status in ((["broken"] * ROUNDS, 1), (["holds"] * ROUNDS, 0)):
        drills(*names)
        command("drill", ONE_SCENARIO, "--all", "--output", tmp_path, status=status)
    indexes = [json.loads(path.read_text()) for path in tmp_path.glob("index-*.json")]
    assert sorted(index["passed"] for index in indexes) == [False, True]
    for index in indexes:
        for round_ in index["rounds"]:
            report = json.loads((tmp_path / round_["report"]).read_text())
            assert report["passed"] is index["passed"]
    for name in ("index-*.html", "junit-*.xml"):
        assert len(list(tmp_path.glob(name))) == 2


def test_a_file_in_place_of_the_folder_is_named(tmp_path):
    file = tmp_path / "reports"
    file.touch()
    with pytest.raises(ConfigurationError, match="reports: cannot write reports there: File exist"):
        check_folder(file)


def test_a_report_that_is_written_is_not_called_unwritten():
    assert unwritten([]) == ""
    assert attrs.fields(type(evidence())).drill.name == "drill"
