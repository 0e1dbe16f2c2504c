"""The judge and the report: each rule can fail, and a page shows the evidence, escaped."""

import copy
import html
import json
import subprocess
import sys
from html.parser import HTMLParser

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actuator.errors import ConfigurationError, DecodeError
from actuator.interface import ExternalResource
from generic.testing.drill.all import Round, RoundResult
from generic.testing.drill.breaks import BREAKS, MIGRATION_BREAKS
from generic.testing.drill.evidence import (
    Act,
    Bystander,
    DrillCluster,
    Evidence,
    Origin,
    Record,
    Strip,
)
from generic.testing.drill.index import Index, page_of, write_index
from generic.testing.drill.judge import Finding, check_tags, covers, judge
from generic.testing.drill.migration.page import page as migration_page
from generic.testing.drill.migration.rules import Arrival, MigrationEvidence
from generic.testing.drill.migration.rules import judge as judge_migration
from generic.testing.drill.names import Names
from generic.testing.drill.page import page, rows, summed_up
from generic.testing.drill.report import as_json, check_report, read_json, write_text
from generic.testing.drill.settings import DrillSettings
from generic.testing.drill.trouble import CALM
from generic.testing.rehearsal import CombinedRehearsal
from generic.tools.cli import versions
from generic.tools.cli.terminal import Terminal, show, show_rounds, show_rules
from tests.support.drills.evidence import VPC, call, evidence, life, migration, move
from tests.support.drills.moving_rehearsal import OneNetwork

MARK = "&#9654;"
ORIGIN = Origin(version="1.2.3", commit="abc", command="actuator drill --all")
INDEX = Index(id="c3", title="Mine & Yours", started="2026-01-01", origin=ORIGIN, held=[])


def broken(**more):
    return {finding.rule for finding in judge(evidence(**more)) if not finding.holds}


def test_a_good_drill_breaks_no_rule():
    assert broken() == set()


def test_an_object_whose_finalizer_was_removed_externally_counts_without_outcome():
    assert broken(counted={"orphaned": 1, "force_deleted": 1}, removed_externally=1) == set()


BAD = life("Bad", bad=True, ready=None, outcomes=[])
OTHER = ExternalResource(type="VPC", id="vpc-2", tags={"shoot/nobody": "1"})


@pytest.mark.parametrize(
    ("more", "rules"),
    [
        pytest.param({"records": []}, {"I1"}, id="left and not recorded"),
        pytest.param({"resources_after": []}, {"I1"}, id="recorded and not there"),
        pytest.param(
            {"bystanders": [Bystander(name="a", problem="gone")]}, {"I2"}, id="a bystander touched"
        ),
        pytest.param({"bystanders": []}, {"I2"}, id="no bystander looked at"),
        pytest.param(
            {"lives": [life(outcomes=["orphaned"] * 2), life("C"), BAD]}, {"I3"}, id="two outcomes"
        ),
        pytest.param(
            {"lives": [life(said=["deleted"]), life("C"), BAD]}, {"I3"}, id="events tell otherwise"
        ),
        pytest.param({"counted": {"orphaned": 4}}, {"I3"}, id="a wrong count"),
        pytest.param({"resources_before": [VPC, VPC]}, {"I4"}, id="made twice"),
        pytest.param({"resources_before": [VPC, OTHER]}, {"I4"}, id="made for nobody"),
        pytest.param({"resources_before": []}, {"I4"}, id="nothing made"),
        pytest.param({"lives": [life(stuck=None), life("C"), BAD]}, {"I5"}, id="blocked silently"),
        pytest.param({"failed_while_stuck": {}}, {"I5"}, id="blocked without a metric"),
        pytest.param({"lives": [life(disturbed=2.0), life("C"), BAD]}, {"I5"}, id="status frozen"),
        pytest.param(
            {"lives": [life(ready=None), life("C"), BAD]}, {"ready", "I6"}, id="kept from ready"
        ),
        pytest.param(
            {"lives": [life(released=None), life("C"), BAD]}, {"I3", "I6"}, id="not released"
        ),
        pytest.param({"lives": [life(), life("C"), life("C")]}, {"I6"}, id="nothing invalid"),
        pytest.param({"lives": [life(gone=None), life("C"), BAD]}, {"seed"}, id="still there"),
        pytest.param({"remaining_objects": ["x is still there"]}, {"seed"}, id="seed objects left"),
    ],
)
def test_each_rule_can_fail(more, rules):
    more = {"failed_while_stuck": {"Infrastructure": 1, "ControlPlane": 1, "C": 1}} | more
    assert broken(**more) == rules


@pytest.mark.parametrize(
    ("lives", "parts"),
    [
        ([life(stuck=None), life("C", stuck=None), BAD], 1),
        ([life(stuck=None), life("C"), BAD], 0),
    ],
)
def test_a_drill_in_which_nothing_was_stuck_reports_it(lives, parts):
    [end, *_] = judge(evidence(lives=lives))
    assert (end.rule, end.holds, len(end.untested)) == ("end", True, parts)
    assert all("see inject_failure of the rehearsal" in text for text in end.untested)


@pytest.mark.parametrize(
    ("more", "rules"),
    [({}, set()), ({"unfinished": ["retry: never"]}, {"path"}), ({"stopped": "no"}, {"path"})],
)
def test_a_step_of_gardenlet_that_does_not_end_is_found(more, rules):
    assert broken(path="retry: create fail", **more) == rules


@pytest.mark.parametrize(
    ("recorded", "covered"),
    [
        pytest.param({"id": "vpc-1"}, True, id="by id"),
        pytest.param({"id": "vpc-9"}, False, id="another id"),
        pytest.param({"tags": {"shoot/shoot--a": "1"}}, True, id="by tags"),
        pytest.param({"tags": {"shoot/shoot--b": "1"}}, False, id="other tags"),
        pytest.param({}, False, id="neither id nor tags"),
        pytest.param({"id": "vpc-1", "type": "Subnet"}, False, id="another type"),
    ],
)
def test_a_record_means_a_thing_by_id_or_else_by_tags(recorded, covered):
    assert covers(ExternalResource(**({"type": "VPC"} | recorded)), VPC) is covered


def test_resources_that_i4_cannot_tell_apart_are_refused_with_the_remedy():
    untagged = ExternalResource(type="VPC", id="vpc-3")
    check_tags("Mine", [VPC, VPC, untagged])
    with pytest.raises(
        ConfigurationError, match="Mine: remaining_resources returns 2 of VPC without tags"
    ):
        check_tags("Mine", [VPC, untagged, attrs.evolve(untagged, id="vpc-4")])


def test_the_json_contains_the_evidence(tmp_path):
    path = tmp_path / "report.json"
    seen = evidence()
    findings = judge(seen)
    write_text(path, as_json(seen, findings))
    told = json.loads(path.read_text())
    assert told["version"] == 3
    assert told["passed"] is True
    assert told["evidence"]["records"][0]["resource"]["id"] == "vpc-1"
    assert check_report(path, seen, findings) == []


@pytest.mark.parametrize(
    ("field", "value"),
    [("records", []), ("lives", []), ("counted", {"orphaned": 7}), ("resources_after", [])],
)
def test_a_report_that_tells_another_story_is_noticed(tmp_path, field, value):
    path = tmp_path / "report.json"
    seen = evidence()
    findings = judge(seen)
    write_text(path, as_json(attrs.evolve(copy.deepcopy(seen), **{field: value}), findings))
    (problem,) = check_report(path, seen, findings)
    assert field in problem


def test_a_report_with_another_verdict_is_noticed(tmp_path):
    path = tmp_path / "report.json"
    seen = evidence()
    write_text(path, as_json(seen, [Finding(rule="x", title="y", problems=("z",))]))
    assert check_report(path, seen, judge(seen)) == ["the report has another verdict"]


MOMENTS = st.none() | st.floats(0, 1e6)
TEXT = st.text(st.characters())  # half surrogate pairs too
THINGS = st.builds(
    ExternalResource, type=TEXT, id=TEXT, tags=st.dictionaries(TEXT, TEXT), region=TEXT
)
LIVES = st.builds(
    life,
    **dict.fromkeys(("ready", "deleted", "stuck", "forced", "released", "gone"), MOMENTS),
    created=st.floats(0, 1e6),
    error=TEXT,
    codes=st.lists(TEXT, max_size=2),
    bad=st.booleans(),
)
EVIDENCE = st.builds(
    evidence,
    lives=st.lists(LIVES, max_size=3),
    records=st.lists(st.builds(Record, shoot=TEXT, owner=TEXT, resource=THINGS), max_size=2),
    resources_after=st.lists(THINGS, max_size=2),
)


@given(seen=EVIDENCE)
def test_any_evidence_reads_back_equal_and_makes_a_complete_page(tmp_path_factory, seen):
    folder = tmp_path_factory.mktemp("report")
    findings = judge(seen)
    write_text(folder / "report.json", as_json(seen, findings))
    assert read_json(folder / "report.json", Evidence) == (seen, findings)
    write_text(folder / "report.html", page(seen, findings))
    reader = Reader()
    reader.feed((folder / "report.html").read_text(encoding="utf-8"))
    assert reader.open == []


def test_a_report_that_hides_a_problem_is_noticed(tmp_path):
    path = tmp_path / "report.json"
    seen = evidence(records=[], bystanders=[])
    findings = judge(seen)
    hidden = [attrs.evolve(f, problems=f.problems if f.rule == "I1" else ()) for f in findings]
    write_text(path, as_json(seen, hidden))
    assert check_report(path, seen, findings) == ["the report has another verdict"]


@pytest.mark.parametrize(
    ("find", "put", "says"),
    [
        pytest.param('"version": 3', '"version": 4', "version 4", id="another version"),
        pytest.param('"passed": true', '"passed": false', "verdict", id="it contradicts itself"),
        pytest.param('"drill"', '"dril"', "no report", id="a field is missing"),
        pytest.param('"evidence": {', '"evidence": {"more": 1,', "no report", id="unknown field"),
        pytest.param("{", "", "no report", id="no JSON"),
    ],
)
def test_an_invalid_report_is_a_problem_and_not_a_crash(tmp_path, find, put, says):
    path = tmp_path / "report.json"
    seen = evidence()
    findings = judge(seen)
    write_text(path, as_json(seen, findings))
    path.write_text(path.read_text().replace(find, put, 1))
    with pytest.raises(DecodeError, match=says):
        read_json(path, Evidence)
    (problem,) = check_report(path, seen, findings)
    assert says in problem


class Reader(HTMLParser):
    """Notes the parts of a page, and that every tag is closed."""

    VOID = frozenset({"meta", "br", "rect", "line"})

    def __init__(self):
        super().__init__()
        self.open = []
        self.tags = []
        self.text = ""
        self.attributes = []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


@pytest.mark.parametrize("changes", [{}, {"records": []}, {"lives": []}, {"strips": []}])
def test_the_page_is_whole_loads_nothing_and_runs_nothing(tmp_path, changes):
    seen = evidence(**changes)
    write_text(tmp_path / "report.html", page(seen, judge(seen)))
    reader = Reader()
    reader.feed((tmp_path / "report.html").read_text())
    assert reader.open == []
    assert not {"script", "link", "img", "iframe"} & set(reader.tags)
    assert not {"src", "href", "onclick"} & {name for name, _ in reader.attributes}
    assert ("lang", "en") in reader.attributes


def test_the_page_shows_each_object_each_rule_and_each_thing_left():
    reader = Reader()
    seen = evidence()
    reader.feed(page(seen, judge(seen)))
    for text in ("a Infrastructure", "a ControlPlane", "planted", "vpc-1", "I6", "It rains."):
        assert text in reader.text
    assert "<script>alert(1)</script>" in reader.text, "as text, not as a script"
    assert "passed" in reader.text


@pytest.mark.parametrize(
    ("text", "title"),
    [
        (page(evidence(scenario="rain"), []), "Drill of the scenario rain: passed"),
        (page(evidence(path="retry: create fail"), []), "Drill of the path retry: passed"),
        (migration_page(migration(), []), "Drill of the scenario migration: passed"),
        (
            page_of(Index(id="", title="", started="", origin=Origin(), held=[])),
            "All drills: passed",
        ),
    ],
)
def test_a_title_is_readable(text, title):
    assert f"<title>{title}</title>" in text
    assert f"<h1>{title}</h1>" in text


@pytest.mark.parametrize("rule", [*BREAKS, *MIGRATION_BREAKS])
def test_the_report_names_the_rule_broken_on_purpose(rule, tmp_path, capsys):
    rehearsal = CombinedRehearsal([OneNetwork()])
    facts = DrillSettings(break_rule=rule, shoots=1).facts(Names("x"), rehearsal, "It rains.")
    sentence = f"Broken on purpose with --break: {rule}: {facts['broken'].partition(': ')[2]}"
    assert len(sentence.split()) > 8
    for text in (
        page(evidence(broken=facts["broken"]), []),
        migration_page(migration(broken=facts["broken"]), []),
    ):
        assert html.escape(sentence, quote=True).replace("&#x27;", "&#39;") in text
    show(evidence(broken=facts["broken"]), [], tmp_path)
    assert sentence in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("finding", "words"),
    [
        ({}, "holds"),
        ({"untested": ("a slow one",)}, "holds not exercised: a slow one"),
        ({"untested": ("nothing",), "exercised": False}, "not exercised: nothing"),
        ({"problems": ("lost",), "untested": ("x",)}, "BROKEN lost not exercised: x"),
    ],
)
def test_a_rule_that_was_not_exercised_is_marked_in_table_and_page(finding, words, capsys):
    found = Finding(rule="I1", title="t", **finding)
    show_rules([found])
    cells = [
        line.split("│")[3].strip() for line in capsys.readouterr().out.splitlines() if "│" in line
    ]
    assert " ".join(cells) == words
    reader = Reader()
    reader.feed(page(evidence(), [found]))
    shown = words.replace("holds", "yes").replace("BROKEN", "no:")
    assert shown.replace(" ", "") in "".join(reader.text.split())


def test_the_page_explains_a_failed_rule():
    seen = evidence(records=[])
    text = page(seen, judge(seen))
    assert "failed" in text
    assert "not recorded" in text


@pytest.mark.parametrize("flags", [[], ["--scenario", "migration"]], ids=str)
def test_a_drill_without_jinja2_ends_before_it_begins(command, monkeypatch, tmp_path, flags):
    for module in ("html", "page", "migration.page", "course"):
        monkeypatch.delitem(sys.modules, f"generic.testing.drill.{module}", raising=False)
    monkeypatch.setitem(sys.modules, "jinja2", None)
    rehearsal = "extensions.local.rehearsal:LocalRehearsal"
    done = command("drill", rehearsal, *flags, "--output", tmp_path, status=3)
    assert done.stdout == ""
    assert done.stderr == (
        "Error: reports need the package `jinja2`: pip install 'gardener-actuator[rehearsal]'\n"
    )


def test_an_object_that_remains_has_a_bar_to_the_end_and_is_marked():
    drawn = page(evidence(lives=[life(gone=None), life("ControlPlane", gone=20.0)]), [])
    assert "a Infrastructure: being force-deleted, 15.0 s" in drawn
    assert drawn.count(MARK) == 2, "one in the legend"


def test_a_bar_shows_stuck_only_where_the_status_did():
    assert "stuck in deletion, " in page(evidence(lives=[life()]), [])
    silent = page(evidence(lives=[life(stuck=None)]), [])
    assert "stuck in deletion, " not in silent
    assert "being deleted, 3.0 s" in silent


def test_the_timeline_begins_with_the_first_object():
    moments = ("created", "ready", "deleted", "stuck", "forced", "gone")
    early, late = (
        page(evidence(lives=[life(**{name: at + n for n, name in enumerate(moments)})]), [])
        for at in (0.4, 80.2)
    )
    assert ">0 s</text>" in early
    assert ">80 s</text>" in late
    assert ">79 s</text>" not in late
    assert ">0 s</text>" not in late


def test_errors_that_differ_in_ids_alone_are_one_row(capsys):
    errors = [f"vpc-{n}a{n} of shoot s{n} is in use (request 0f-{n}e)" for n in range(3)]
    lives = [life(error=error, shoot=f"shoot--s{n}") for n, error in enumerate(errors)]
    lives.append(life(error="the zone is full", shoot="shoot--s9"))
    text = page(evidence(lives=lives), [])
    assert "3 Infrastructure" in text
    assert "1 Infrastructure" in text
    assert errors[0] in text
    assert errors[1] not in text
    Terminal().stuck(lives)
    shown = capsys.readouterr().out
    assert "s0, s1, s2" in shown
    assert shown.count("is in use") == 1


def test_the_page_names_version_commit_and_command():
    origin = Origin(version="1.2.3", commit="abc-dirty", command="actuator drill 'my mod:X'")
    for text in (
        page(evidence(origin=origin), []),
        migration_page(migration(origin=origin), []),
    ):
        reader = Reader()
        reader.feed(text)
        assert [words for words in attrs.astuple(origin) if words in reader.text] == [
            *attrs.astuple(origin)
        ]


TAGGED = ExternalResource(type="VPC", tags={"shoot/shoot--a": "1"})


@pytest.mark.parametrize(
    ("resources", "numbers"),
    [
        pytest.param([], "1 0", id="not recorded"),
        pytest.param([VPC], "1 1", id="by id"),
        pytest.param([TAGGED], "1 1", id="by tags"),
        pytest.param([TAGGED, VPC], "1 1", id="by both, once"),
        pytest.param([OTHER], "1 1", id="another that does not exist"),
        pytest.param([TAGGED, attrs.evolve(OTHER, id="")], "1 2", id="and one that does not exist"),
    ],
)
def test_the_table_counts_records_by_id_or_tags(resources, numbers, tmp_path, capsys):
    records = [Record(shoot="s", owner="o", resource=resource) for resource in resources]
    show(evidence(records=records), [], tmp_path)
    (row,) = (line for line in capsys.readouterr().out.splitlines() if "VPC" in line)
    assert row.replace("│", " ").split() == ["VPC", *numbers.split()]


def test_the_index_links_the_reports_of_all_rounds_that_ran(tmp_path):
    findings = [Finding(rule="I1", title="t", problems=("<b>lost</b>",))]
    held = [
        RoundResult(round=Round("rain", CALM), findings=findings, drill="a1", seconds=3.0),
        RoundResult(
            round=Round("snow", CALM), findings=[Finding(rule="I1", title="t")], drill="b2"
        ),
        RoundResult(round=Round("hail", CALM), problem="not run: no cluster", seconds=1.0),
    ]
    write_index(tmp_path, attrs.evolve(INDEX, held=held))
    reader = Reader()
    reader.feed((tmp_path / "index.html").read_text())
    links = [value for name, value in reader.attributes if name == "href"]
    assert links == ["rain/calm/report-a1.html", "snow/calm/report-b2.html"]
    for words in ("1 of 3 rounds hold.", "I1: <b>lost</b>", "not run: no cluster", "Mine & Yours"):
        assert words in reader.text
    for words in ("2026-01-01", *attrs.astuple(INDEX.origin)):
        assert words in reader.text
    assert reader.open == []


def test_the_index_has_the_hash_of_each_report_as_sha256sum_prints_it(tmp_path):
    held = [RoundResult(round=Round(name, CALM), drill=name) for name in ("rain", "snow")]
    report = tmp_path / "rain/calm/report-rain.json"
    report.parent.mkdir(parents=True)
    report.write_bytes(b"{}\n")
    write_index(tmp_path, attrs.evolve(INDEX, held=held))
    rounds = json.loads((tmp_path / "index.json").read_text())["rounds"]
    printed = subprocess.run(["sha256sum", report], check=True, capture_output=True, text=True)
    assert [item["sha256"] for item in rounds] == [printed.stdout.split()[0], None]


def test_the_table_below_the_bars_says_the_same_in_words():
    (row,) = rows([life(stuck=None)])
    assert row == (
        *("a Infrastructure", "0.0", "-", "1.0", "-", "2.0", "-", "5.0", "6.5", "orphaned"),
    )


def test_of_many_objects_each_shoot_is_one_line():
    many = [life(kind, shoot=f"shoot--{number}") for number in range(60) for kind in ("A", "B")]
    many[1].gone = None
    lines = summed_up(many)
    assert len(lines) == 60
    assert [line.shoot for line in lines if line.gone is None] == ["shoot--0"]
    assert {cells[-1] for cells in rows(lines)} == {"2 orphaned"}


def test_the_verdict_counts_only_shoots_that_were_stuck():
    seen = evidence(lives=[life(), life("B", shoot="shoot--b", stuck=None)])
    assert "1 of 2 shoots were stuck" in page(seen, judge(seen))


def test_problems_that_the_page_leaves_out_are_counted():
    seen = evidence(remaining_objects=[f"{number} is still there" for number in range(8)])
    text = page(seen, judge(seen))
    assert "4 is still there" in text
    assert "and 3 more" in text


LOST = Arrival(shoot="shoot--a", what="<state>", sent="abc", came="")


@pytest.mark.parametrize(
    ("more", "rules"),
    [
        pytest.param({}, set(), id="a good move"),
        pytest.param({"moves": [move(problem="no luck")]}, {"M1"}, id="a problem"),
        pytest.param({"moves": [move(restored=None)]}, {"M1"}, id="not restored"),
        pytest.param({"kills": []}, {"M1"}, id="nobody was killed"),
        pytest.param({"resources_moved": [VPC, VPC]}, {"M2"}, id="made twice"),
        pytest.param({"resources_moved": []}, {"M2"}, id="lost"),
        pytest.param({"resources_moved": [OTHER]}, {"M2"}, id="made anew"),
        pytest.param({"resources_before": [], "resources_moved": []}, {"M2"}, id="nothing outside"),
        pytest.param({"calls": [call("source", "reconcile", 2.5)]}, {"M3"}, id="acts again"),
        pytest.param({"calls": [call("source", "delete", 1.5)]}, {"M3"}, id="deletes"),
        pytest.param({"calls": [call("destination", "restore", 1.5)]}, {"M3"}, id="too early"),
        pytest.param({"arrivals": [LOST]}, {"M4"}, id="state lost"),
        pytest.param({"arrivals": []}, {"M4"}, id="nothing to carry"),
        pytest.param({"left_in_source": ["x is still there"]}, {"M5"}, id="left in the source"),
        pytest.param({"left_in_destination": ["x"]}, {"M6"}, id="left in the destination"),
        pytest.param({"resources_after": [VPC]}, {"M6"}, id="left outside"),
        pytest.param({"moves": [move(gone=None)]}, {"M6"}, id="not gone"),
    ],
)
def test_each_rule_of_a_migration_can_fail(tmp_path, more, rules):
    seen = migration(**more)
    findings = judge_migration(seen)
    assert {finding.rule for finding in findings if not finding.holds} == rules
    write_text(tmp_path / "report.json", as_json(seen, findings))
    assert read_json(tmp_path / "report.json", MigrationEvidence) == (seen, findings)
    reader = Reader()
    reader.feed(migration_page(seen, findings))
    assert reader.open == []
    assert not {"script", "state"} & set(reader.tags)
    assert ("failed" if rules else "passed") in reader.text


HOSTILE = "\x1b]0;owned\x07 \x9b31m \u202e \u2066 \u2028 </td><script>alert(1)</script> [bold]x[/]"


def hostile_evidence():
    outside = ExternalResource(type=HOSTILE, id=HOSTILE, tags={HOSTILE: HOSTILE}, region=HOSTILE)
    return evidence(
        lives=[life(error=HOSTILE, codes=[HOSTILE], shoot=HOSTILE, kind=HOSTILE), life("C")],
        records=[Record(shoot=HOSTILE, owner=HOSTILE, resource=outside)],
        resources_after=[outside],
        strips=[Strip(shoot=HOSTILE, text=f"Stripped {HOSTILE}")],
        bystanders=[Bystander(name=HOSTILE, problem=HOSTILE)],
    )


def test_a_page_holds_neither_markup_nor_control_characters_from_outside():
    seen = hostile_evidence()
    moves = [move(shoot=HOSTILE, problem=HOSTILE)]
    migrated = migration(moves=moves)
    for text in (page(seen, judge(seen)), migration_page(migrated, judge_migration(migrated))):
        assert text.replace("\n", "").isprintable()
        assert "<script>" not in text
        assert "\\u009b31m" in text


def test_the_tables_of_a_drill_hold_neither_markup_nor_control_characters(tmp_path, capsys):
    seen = hostile_evidence()
    Terminal().say(HOSTILE)
    Terminal().stuck(seen.lives)
    show(seen, [*judge(seen), Finding(rule="x", title="y", problems=(HOSTILE, "z"))], tmp_path)
    held = Round(scenario="revoked", trouble=CALM)
    show_rounds([RoundResult(round=held, problem=HOSTILE)], tmp_path)
    shown = capsys.readouterr().out
    assert shown.replace("\n", "").isprintable()
    assert "BROKEN" in shown
    assert shown.count("[bold]") >= 4


@pytest.mark.parametrize("installed", ["1.2.3", "unknown"])
def test_the_version_of_a_report_is_never_unknown(installed, monkeypatch):
    monkeypatch.setattr(versions, "version", lambda: installed)
    assert versions.product_version().startswith(("1.2.3", "not installed, imported from /"))


def test_a_step_has_the_time_of_the_wall_clock_and_the_cluster_is_named():
    target = DrillCluster(host="a:1", user="me", server_version="v1.36.3", context="prod")
    acts = [Act(at=61.0, text="Deleting the shoots")]
    reader = Reader()
    reader.feed(page(evidence(acts=acts, target=target, manager="its own, beside yours"), []))
    assert "2026-01-01T00:01:01Z61.0Deleting the shoots" in reader.text
    assert "a:1 (context prod, Kubernetes v1.36.3) as user me" in reader.text
    assert "its own, beside yours" in reader.text
