"""`actuator drill --resume`: which drills are not repeated, and the lists of seeds.

The drills and the answers of seeds are replaced by their outcomes.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from actuator.errors import ActuatorError, ConfigurationError
from generic.testing.drill.all import Round
from generic.testing.drill.names import Names
from generic.testing.drill.seedlist import ListedSeed, read_contexts, survey
from tests.support.drills.evidence import evidence
from tests.support.pages.commands import run_command

REHEARSAL = "tests.support.drills.affordable:OneScenario"
SEEDS = ("a", "b", "c", "d")
OUTCOMES = ("holds", "broken", "error", "interrupt")
Drill = Callable[..., list[str | None]]


@pytest.fixture
def drill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Drill:
    """Drills the seeds with these outcomes, "holds" by default; returns those that were drilled."""
    (tmp_path / "contexts").write_text("\n".join(SEEDS))
    reports = tmp_path / "reports"
    monkeypatch.chdir(tmp_path)

    def command(
        *flags: str, outcomes: tuple[str, ...] = (), identity: str = "id", status: int = 0
    ) -> list[str | None]:
        seen: list[str | None] = []
        left = [*outcomes]

        def run(settings, *_):
            seen.append(settings.context)
            outcome = left.pop(0) if left else "holds"
            if outcome == "error":
                raise ActuatorError("no answer")
            if outcome == "interrupt":
                raise KeyboardInterrupt
            broken: dict[str, Any] = {"records": []} if outcome == "broken" else {}
            return evidence(drill=Names().id, **broken)

        def ask(_, contexts):
            return [ListedSeed(name, f"{identity}-{name}" if identity else "") for name in contexts]

        monkeypatch.setattr("generic.testing.drill.scenarios.drill", run)
        monkeypatch.setattr("generic.tools.cli.drill.survey", ask)
        where = ("--kubeconfig", "k", "--contexts", "contexts", "--output", reports)
        run_command("drill", REHEARSAL, *where, *flags, status=status)
        return seen

    return command


def status_of(outcomes: tuple[str, ...]) -> int:
    if "interrupt" in outcomes:
        return 130
    return 1 if "broken" in outcomes else 3 if "error" in outcomes else 0


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(outcomes=st.tuples(*[st.sampled_from(OUTCOMES)] * len(SEEDS)))
def test_a_resumed_run_repeats_exactly_the_drills_that_do_not_hold(
    outcomes: tuple[str, ...], drill: Drill, tmp_path: Path
) -> None:
    drill(outcomes=outcomes, status=status_of(outcomes))
    begun = outcomes[: outcomes.index("interrupt")] if "interrupt" in outcomes else outcomes
    finished = {seed for seed, name in zip(SEEDS, begun, strict=False) if name == "holds"}
    assert drill("--resume") == [seed for seed in SEEDS if seed not in finished]
    index = json.loads((tmp_path / "reports/index.json").read_text())
    assert [entry["seed"] for entry in index["rounds"]] == [*SEEDS]
    assert index["passed"] is True
    run_command("record", "verify", tmp_path / "reports/index.json")
    assert drill("--resume") == []


def test_without_resume_each_drill_is_repeated(drill: Drill) -> None:
    drill()
    assert drill() == [*SEEDS]


@pytest.mark.parametrize(
    ("flags", "identity", "attribute", "value"),
    [
        pytest.param(["--shoots", "3"], "id", None, "", id="shoots"),
        pytest.param(["--shoots", "10"], "other", None, "", id="another cluster"),
        pytest.param([], "id", "product_version", "9", id="version"),
        pytest.param([], "id", "current_commit", "a1b2-dirty-0", id="state of the code"),
        pytest.param([], "id", "CombinedRehearsal.versions", "acme 2", id="extension"),
    ],
)
def test_drills_of_another_version_setting_or_cluster_are_repeated(
    flags: list[str],
    identity: str,
    attribute: str | None,
    value: str,
    drill: Drill,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drill()
    if attribute:
        changed = property(lambda _: value) if "." in attribute else lambda: value
        monkeypatch.setattr(f"generic.tools.cli.drill.{attribute}", changed)
    assert drill("--resume", *flags, identity=identity) == [*SEEDS]


def test_a_finished_seed_that_does_not_answer_now_is_not_repeated(drill: Drill) -> None:
    drill()
    assert drill("--resume", identity="") == []


def test_a_drill_whose_report_was_altered_is_repeated(drill: Drill, tmp_path: Path) -> None:
    drill()
    (report,) = (tmp_path / "reports/b").rglob("report-*.json")
    report.write_text(report.read_text() + " ")
    assert drill("--resume") == ["b"]


@pytest.mark.parametrize(
    ("context", "folder"),
    [
        ("aws-eu1.garden_x", "aws-eu1.garden_x"),
        ("garden/aws", "garden_aws-"),
        ("../../etc", "_._.._etc-"),
        ("-f", "_f-"),
        ("<b>'\"&\x1b", "_b_____-"),
        ("ä" * 300, "_" * 100 + "-"),
    ],
)
def test_a_context_has_a_folder_of_its_own_below_the_reports(context: str, folder: str) -> None:
    seed, scenario = Round("rain", seed=context).folder.parts
    assert seed.startswith(folder)
    assert seed.isascii()
    assert not set(seed) & set("/<>&'\"")
    assert scenario == "rain"


def test_contexts_with_similar_names_have_different_folders() -> None:
    names = ("a/b", "a_b", "a\\b", "a b")
    assert len({Round("rain", seed=name).folder for name in names}) == len(names)


def test_the_list_of_contexts_has_comments_and_empty_lines(tmp_path: Path) -> None:
    path = tmp_path / "contexts"
    path.write_text("# Europe\n aws-eu1 \r\n\n#aws-eu2\ngarden/x\n")
    assert read_contexts(path) == ["aws-eu1", "garden/x"]


@pytest.mark.parametrize(
    ("content", "words"), [(b"\n# none\n", "no context"), (b"\xff\xfe", "not a text file")]
)
def test_a_list_without_contexts_is_refused(content: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "contexts"
    path.write_bytes(content)
    with pytest.raises(ConfigurationError, match=words):
        read_contexts(path)


def test_a_context_that_is_listed_twice_is_refused_also_if_it_does_not_answer(
    tmp_path: Path,
) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text("contexts: []")
    (seed,) = survey(path, ["x"])
    assert seed.identity == ""
    assert "context 'x' not found" in seed.problem
    with pytest.raises(ConfigurationError, match="contexts x and x are the same cluster"):
        survey(path, ["x", "y", "x"])
