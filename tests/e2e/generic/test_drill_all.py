"""`actuator drill --all`: every scenario with every trouble, a report each, and one table."""

import json

import pytest

from extensions.azurecontrolplane.rehearsal import AzureRehearsal
from extensions.local.rehearsal import LocalRehearsal
from generic.testing.drill.all import rounds
from generic.testing.drill.trouble import TROUBLES
from generic.testing.rehearsal import CombinedRehearsal

REHEARSAL = "tests.support.drills.affordable:OneScenario"


@pytest.fixture
def drill_all(command, tmp_path, monkeypatch):
    """Holds all drills of a rehearsal in this process.

    After an outage of the API server, an object waits for as long again at most, by its backoff.
    On a slow machine the server needs a minute to start.
    """
    monkeypatch.setattr("generic.tools.cli.drill._patience", lambda *_: 300.0)

    def hold(rehearsal, *flags, status=0):
        line = ("drill", rehearsal, "--all", "--output", tmp_path, *flags)
        return command(*line, status=status)

    return hold


def reports(folder):
    return {
        str(path.parent.relative_to(folder)): json.loads(path.read_text())
        for path in folder.rglob("report.json")
    }


@pytest.fixture
def planted(monkeypatch):
    """A value in an annotation of each object of the rehearsal, and in each of its Secrets."""
    value = "planted-7f3c1d5e9b"
    real = LocalRehearsal.manifests

    def manifests(self, shoot):
        found = [*real(self, shoot)]
        for manifest in found:
            manifest["metadata"].setdefault("annotations", {})["example.org/note"] = value
            if manifest["kind"] == "Secret":
                manifest.setdefault("stringData", {})["planted"] = value
        return found

    monkeypatch.setattr(LocalRehearsal, "manifests", manifests)
    return value


@pytest.mark.long
def test_each_round_holds_and_has_a_report(drill_all, tmp_path, planted):
    done = drill_all(REHEARSAL, "--shoots", "1")
    written = {path.name: path.read_text() for path in tmp_path.rglob("*") if path.is_file()}
    assert {"index.json", "index.html"} <= set(written)
    assert [name for name, text in written.items() if planted in text] == []
    assert planted not in done.stdout + done.stderr
    found = reports(tmp_path)
    troubles = {f"deletion-denied/{trouble.name}" for trouble in TROUBLES}
    assert set(found) == {*troubles, "webhooks-down/calm"}
    assert all(report["passed"] for report in found.values())
    assert "6 of 6 hold" in done.stdout
    page = (tmp_path / "index.html").read_text()
    assert "6 of 6 rounds hold." in page
    links = [f"{name}/report-{found[name]['evidence']['drill']}.html" for name in troubles]
    assert all(f'href="{link}"' in page and (tmp_path / link).exists() for link in links)
    assert all(report["evidence"]["origin"]["version"] for report in found.values())
    hung = found["deletion-denied/calls-hang"]["evidence"]["records"]
    assert hung, "what a hanging force deletion leaves is on record"


def test_a_round_that_cannot_be_held_fails_all_and_keeps_no_other(drill_all, tmp_path):
    done = drill_all("tests.support.drills.affordable:NoOutside", "--shoots", "1", status=3)
    assert "0 of 6 hold" in done.stdout
    assert "outside does not start" in " ".join(done.stdout.split())
    assert "outside does not start" in (tmp_path / "index.html").read_text()


@pytest.mark.parametrize(
    ("rehearsal", "more"),
    [
        (LocalRehearsal, ["webhooks-down", "migration"]),
        (AzureRehearsal, ["take-over", "webhooks-down", "migration"]),
    ],
)
def test_the_rounds_are_scenarios_with_all_troubles_and_supported_scenarios_alone(rehearsal, more):
    together = CombinedRehearsal([rehearsal()])
    found = [(round_.scenario, round_.trouble.name) for round_ in rounds(together)]
    pairs = {(name, trouble.name) for name in together.scenarios for trouble in TROUBLES}
    assert set(found) == {*pairs, *((name, "calm") for name in more)}
    assert len({round_.folder for round_ in rounds(together)}) == len(found)


@pytest.mark.parametrize("flags", [["--scenario", "deletion-denied"], ["--break", "I1"]])
def test_an_option_incompatible_with_all_is_refused_in_one_sentence(drill_all, flags):
    done = drill_all(REHEARSAL, *flags, status=2)
    assert "--all selects scenarios" in done.stderr
