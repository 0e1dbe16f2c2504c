"""`make adversary` with few inputs of each family, and each old mistake is caught by it."""

from __future__ import annotations

import base64
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from actuator.meta import ForceSource
from generic.controller.predicates import all_of, contained
from generic.testing.drill.names import Names
from generic.testing.envtest import Environment
from tests.adversary import tenants, texts
from tests.adversary.inputs import MARK, input_of, rng_of
from tests.adversary.judge import KEEPS, Report, leaks, problems_of
from tests.adversary.run import FAMILIES, attack
from tests.adversary.selections import attack_selections, selected
from tests.adversary.values import plan
from tests.adversary.webhooksecrets import attack_webhook_secrets

ROOT = Path(__file__).parents[3]
INPUTS = 40
PATIENCE = 60.0
"""Seconds to wait for anything, beside the other tests: their load breaks no rule."""
PLANTED_PATIENCE = 8.0
"""Seconds to wait for results that a planted mistake may prevent."""
PLANTS = "tests.adversary.plants:"
FROZEN_SECONDS = 4
SETTLE_SECONDS = 5.0
"""Seconds for threads to end: no input that meets a planted mistake hangs."""


@pytest.fixture(scope="module")
def ground():
    """A cluster of its own: a planted mistake leaves objects that other tests would meet.

    Attacks share it one after the other: each serves a type of its own.
    """
    with Environment() as environment:
        yield environment


@pytest.mark.long
@pytest.mark.parametrize("family", FAMILIES)
def test_nothing_breaks_a_rule_in_many_inputs(ground, tmp_path, monkeypatch, family):
    limits = (
        "lives.PATIENCE",
        "lives.GRACE",
        "bystanders.PATIENCE",
        "selections.PATIENCE",
        "answers.SHOWN_SECONDS",
    )
    for limit in limits:
        monkeypatch.setattr(f"tests.adversary.{limit}", PATIENCE)
    report = attack(ground, 12, family, range(INPUTS), tmp_path, print)
    assert report.problems == {}
    assert report.counts["lived"] >= 0.9 * INPUTS


def is_deep(one, _made):
    return one.deep and one.held


def is_cyclic(one, made):
    return one.place == "delete raises" and getattr(made, "__cause__", None) is made


def is_escaped_by_go(one, made):
    return one.place == "delete tries" and not one.forced and set("&<ü") & set(made)


def is_of_no_namespace(one, _made):
    return not one.kind.namespaced and one.held and one.forced


def is_kept(one, _made):
    return one.served and not one.forced and one.place in KEEPS


def is_recorded(one, _made):
    can_be_forced = one.kind.force_from is not ForceSource.NONE
    return one.served and can_be_forced and one.place.startswith("external")


def chosen(family, wanted, count):
    """Numbers of the first inputs that meet an old mistake."""
    names = Names()
    found = []
    for number in range(20_000):
        one = input_of(1, family, number, names)
        plant = plan(rng_of(1, family, number))[1] if family == "values" else None
        hot = one.place.split(" ")[-1:] in (["raises"], ["tries"])
        if wanted(one, plant() if plant and hot else None):
            found.append(number)
        if len(found) == count:
            break
    return found


@pytest.mark.long
@pytest.mark.parametrize(
    ("plant", "family", "wanted", "rules"),
    [
        pytest.param("frozen_status", "values", is_escaped_by_go, {"shown"}, id="frozen status"),
        pytest.param("deep_objects", "objects", is_deep, {"shown", "budget"}, id="deep objects"),
        pytest.param("cyclic_causes", "values", is_cyclic, {"alive"}, id="cyclic causes"),
        pytest.param("all_namespaces", "values", is_of_no_namespace, {"served"}, id="namespaces"),
        pytest.param(
            "careless_deletions",
            "values",
            is_kept,
            {"kept", "memory", "secret"},
            id="lost failures",
        ),
        pytest.param("careless_deletions", "values", is_recorded, {"orphan"}, id="lost records"),
    ],
)
def test_an_old_mistake_is_caught(ground, tmp_path, monkeypatch, plant, family, wanted, rules):
    monkeypatch.setattr("tests.adversary.lives.PATIENCE", PLANTED_PATIENCE)
    numbers = chosen(family, wanted, 5)
    plants = [PLANTS + plant]
    report = attack(
        ground, 1, family, numbers, tmp_path, print, plants=plants, settle=SETTLE_SECONDS
    )
    assert rules <= report.problems.keys()


def hides(kind, authors, trigger):
    """The former bug: predicates of the author also select the served objects."""
    return all_of(*map(contained, authors), trigger)


@pytest.mark.long
@pytest.mark.parametrize(
    ("place", "plant", "rules"),
    [
        pytest.param(
            "controller.predicates.filtered", hides, {"released"}, id="predicates hide a deletion"
        ),
        pytest.param(
            "manager.registry.Registration.shares", lambda *_: "", {"alone"}, id="two actuators"
        ),
    ],
)
def test_an_old_mistake_of_selections_is_caught(ground, monkeypatch, place, plant, rules):
    monkeypatch.setattr("tests.adversary.selections.PATIENCE", 2.0)
    monkeypatch.setattr("tests.adversary.selections._FAILING_SECONDS", 0.2)
    monkeypatch.setattr(f"generic.{place}", plant)
    report = Report()
    attack_selections(ground, 1, range(25), report)
    assert rules <= report.problems.keys()


@pytest.mark.long
def test_attempts_without_a_backoff_are_found(ground, monkeypatch):
    monkeypatch.setattr("generic.controller.workqueue.Backoff.delay", lambda *_: 0.0)
    monkeypatch.setattr("tests.adversary.selections._FAILING_SECONDS", 8.0)  # for a busy machine
    report = Report()
    served = [number for number in range(50) if selected(1, number).owner is not None]
    attack_selections(ground, 1, served[:1], report)
    assert "rate" in report.problems


@pytest.mark.long
@pytest.mark.parametrize(
    ("place", "mistake", "rules"),
    [
        pytest.param(
            "generic.kube.client._requested",
            lambda _path: None,
            {"forgotten", "finished"},
            id="each 404 is about the object",
        ),
        pytest.param(
            "generic.kube.errorinfo.reason_of",
            lambda _error, _text: "Forbidden",
            {"reason"},
            id="each refusal is for want of permissions",
        ),
    ],
)
def test_a_mistake_in_reading_answers_is_caught(
    ground, tmp_path, monkeypatch, place, mistake, rules
):
    monkeypatch.setattr(place, mistake)
    for limit in ("PATIENCE", "SHOWN_SECONDS"):
        monkeypatch.setattr(f"tests.adversary.answers.{limit}", 2.0)
    report = attack(ground, 3, "answers", range(16), tmp_path, print)
    assert rules <= report.problems.keys()


@pytest.mark.long
@pytest.mark.parametrize(
    ("plant", "client", "what", "problem"),
    [
        ("uncounted_values", "get", "8 MB of objects", "MiB, then|Timeout"),
        ("early_bodies", "get", "bodies of no answer", "MiB, then|Timeout"),
        ("strings_read_again", "create", "a string without an end", "Timeout"),
        ("long_messages", "health check", "a long message", "Timeout"),
    ],
)
def test_a_mistake_about_tenants_servers_is_caught(plant, client, what, problem):
    report = Report()
    asked = [(client, what)] * 5
    tenants.attack_tenants(None, 1, asked, report, [PLANTS + plant], FROZEN_SECONDS)
    assert re.search(problem, str(report.problems["tenant"])), "on a busy machine it freezes first"


def test_the_same_seed_makes_the_same_inputs():
    assert [selected(7, n) for n in range(50)] == [selected(7, n) for n in range(50)]
    names = Names("abc")
    for family in ("objects", "values"):
        made = [[input_of(7, family, n, names) for n in range(50)] for _ in range(2)]
        assert made[0] == made[1]
        assert made[0] != [input_of(8, family, n, names) for n in range(50)]


def test_hostile_text_is_shallow_for_a_reader_that_recurses():
    deep = '{"a":' * 5000 + '"]}"' + "}" * 5000
    assert texts.depth(deep) == 5000
    assert texts.depth(texts.shallow(deep, 12)) == 12
    rng = random.Random(3)
    for text in (texts.document(rng) for _ in range(200)):
        assert texts.depth(texts.shallow(text, 12)) == min(texts.depth(text), 12)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"xx{MARK[2:12]}".encode(), id="plain"),
        pytest.param(b"q=Zq7%2FK%2Bx9%25Wv", id="URL-encoded"),
        pytest.param(base64.b64encode(b"ab" + MARK.encode()), id="base64"),
    ],
)
def test_a_part_of_a_secret_is_found(text):
    assert leaks(text)
    assert not leaks(b"nothing of the kind, " + MARK[:7].encode())


def test_a_silent_object_breaks_a_rule():
    one = next(
        index
        for index in (input_of(1, "values", n, Names("abc")) for n in range(100))
        if index.place == "reconcile raises"
    )
    silent = {"metadata": {"name": "x"}, "status": {}}
    assert [rule for rule, _ in problems_of(one, silent)] == ["shown"]
    failed = {"lastOperation": {"state": "Error"}, "lastError": {"description": "x" * 9000}}
    assert [rule for rule, _ in problems_of(one, {**silent, "status": failed})] == ["sentence"]


def test_the_report_counts_and_lists():
    report = Report()
    assert all(finding.holds for finding in report.findings)
    assert report.problems == {}
    report.complain("alive", "the manager", "exited")
    broken = [finding.rule for finding in report.findings if not finding.holds]
    assert broken == ["alive"]
    assert "alive" in str(report)
    with pytest.raises(KeyError):
        report.complain("unknown", "the manager", "would be in no finding")


def test_an_error_that_reading_a_webhook_secret_raises_is_found(monkeypatch):
    monkeypatch.setattr("tests.adversary.webhooksecrets.from_secret", lambda _secret: 1 / 0)
    report = Report()
    attack_webhook_secrets(None, 1, range(2), report)
    assert [finding.rule for finding in report.findings if not finding.holds] == ["certificates"]


def test_the_command_refuses_an_unknown_family():
    command = [sys.executable, "-m", "tests.adversary", "--family", "unknown"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "unknown" in done.stderr
