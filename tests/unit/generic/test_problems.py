"""The problems of watches in the log."""

import logging

import pytest

from actuator.errors import Forbidden, Unavailable
from generic.kube.clock import SystemClock
from generic.kube.problems import ABSENT, ProblemLog, describe_problem
from generic.kube.timers import Timers

PATH = "/apis/example.org/v1/things"


class Held(Timers):
    """Timers whose actions run when the test wants."""

    def __init__(self):
        super().__init__("held", SystemClock())
        self.actions = []

    def call_later(self, seconds, action):
        self.actions.append(action)


def test_equal_problems_of_several_kinds_are_one_line_with_the_remedy(caplog):
    timers = Held()
    log = ProblemLog(timers)
    for resource in ("things", "others"):
        log.say(logging.WARNING, resource, ABSENT)
    log.say(logging.WARNING, "things", "connection refused")
    assert caplog.records == []
    for action in timers.actions:
        action()
    first, second = (record.fields for record in caplog.records)
    assert first["resources"] == ["others", "things"]
    assert "`actuator crds`" in first["remedy"]
    assert second == {"resources": ["things"], "problem": "connection refused"}
    log.say(logging.WARNING, "others", ABSENT)
    assert len(timers.actions) == 3, "later problems are a new line"


def test_a_problem_that_another_thread_has_logged_is_not_logged_again(caplog):
    timers = Held()
    log = ProblemLog(timers)
    log.say(logging.WARNING, "things", ABSENT)
    for action in timers.actions * 2:
        action()
    assert len(caplog.records) == 1


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (Unavailable(0, f"GET {PATH}: connection refused"), "connection refused"),
        (
            Forbidden(403, f'GET {PATH}: things is forbidden: User "eve" cannot list resource x'),
            'forbidden: User "eve" cannot list or watch',
        ),
        (Forbidden(403, f"GET {PATH}: the proxy refuses"), "the proxy refuses"),
        (ValueError("no JSON"), "no JSON"),
    ],
)
def test_a_problem_is_described_without_the_kind(error, text):
    assert describe_problem(error, PATH) == text


def test_a_missing_role_comes_with_the_command_that_prints_it(caplog):
    ProblemLog().say(logging.WARNING, "things", 'forbidden: User "eve" cannot list or watch')
    (record,) = caplog.records
    assert record.message == "watch ended"
    assert record.fields["remedy"] == "grant the roles that `actuator rbac` prints"
