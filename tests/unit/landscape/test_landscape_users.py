"""The view of the owner of a Shoot."""

import pytest

from actuator.errors import Forbidden, Invalid, NotFound, Unavailable
from generic.testing.landscape import users
from generic.testing.landscape.users import ShootOwner, first_task, is_gone, is_ready, view_of
from tests.support.objects.stand_ins import StandIn

META = {"name": "mine", "generation": 2}


def shoot(state="Succeeded", generation=2, **status):
    operation = {"type": "Create", "state": state, "progress": 7, "description": "A, B, C"}
    seen = {"observedGeneration": generation, "lastOperation": operation, **status}
    return {"metadata": META, "status": seen}


@pytest.mark.parametrize(
    ("found", "ready"),
    [
        (shoot(), True),
        (shoot("Processing"), False),
        (shoot("Error"), False),
        (shoot(generation=1), False),
        ({"metadata": META}, False),
        ({"metadata": META, "status": {}}, False),
    ],
)
def test_a_shoot_is_ready_once_its_newest_spec_succeeded(found, ready):
    assert is_ready(view_of(found)) is ready
    assert not is_gone(view_of(found))


def test_a_shoot_that_does_not_exist_is_gone():
    assert is_gone(None)
    assert not is_ready(None)


def test_codes_and_errors_of_all_tasks_are_shown_once():
    errors = [
        {"description": "no key", "codes": ["ERR_A", "ERR_B"]},
        {"description": "no zone", "codes": ["ERR_A"]},
        {"description": "no code"},
    ]
    view = view_of(shoot("Error", lastErrors=errors))
    assert view.codes == ("ERR_A", "ERR_B")
    lines = ["Create Error 7 %: A and 2 more", "  ERR_A, ERR_B"]
    lines += ["  no key", "  no zone", "  no code"]
    assert str(view).splitlines() == lines


@pytest.mark.parametrize(
    ("description", "short"),
    [("", ""), ("One task", "One task"), ("One, Two", "One and 1 more")],
)
def test_the_tasks_of_an_operation_are_counted(description, short):
    assert first_task(description) == short


class Garden(StandIn):
    """Answers each look at a Shoot with the next answer, the last one again and again."""

    def __init__(self, *answers):
        self.answers = list(answers)

    def get(self, *_where):
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def _fast(monkeypatch):
    monkeypatch.setattr(users, "_POLL_SECONDS", 0.0)
    monkeypatch.setattr(users, "AWAY_SECONDS", 0.05)


@pytest.mark.usefixtures("_fast")
def test_a_wait_ends_when_nothing_more_will_happen():
    said: list[str] = []
    failed = Garden(shoot("Processing"), shoot("Failed"))
    assert not ShootOwner(failed, "mine").wait_until(is_ready, 60, said.append)
    assert len(said) == 2
    old = Garden(shoot("Failed", generation=1), shoot())
    assert ShootOwner(old, "mine").wait_until(is_ready, 60, said.append), "of the spec before"


@pytest.mark.usefixtures("_fast")
def test_a_wait_outlasts_a_restart_and_no_refusal():
    away = Garden(Unavailable(0, "away"), shoot())
    assert ShootOwner(away, "mine").wait_until(is_ready, 60, print)
    with pytest.raises(Unavailable):
        ShootOwner(Garden(Unavailable(0, "gone")), "mine").wait_until(is_ready, 60, print)
    with pytest.raises(Forbidden):
        ShootOwner(Garden(Forbidden(403, "no")), "mine").wait_until(is_ready, 60, print)


class Refusing(Garden):
    """Refuses the annotation of force deletion until the Shoot shows an error code."""

    def patch(self, *_arguments, **_options):
        if view_of(self.answers[0]).codes:
            return self.answers[0]
        raise Invalid(422, "does not contain one of these error codes")


STUCK = shoot("Error", lastErrors=[{"description": "no key", "codes": ["ERR_A"]}])
DELETING = {**shoot("Processing"), "metadata": {**META, "deletionTimestamp": "now"}}


@pytest.mark.usefixtures("_fast")
@pytest.mark.parametrize(
    ("looks", "seconds", "refused"),
    [
        ([STUCK], 60, False),
        ([DELETING, DELETING, STUCK], 60, False),
        ([DELETING, NotFound(404, "gone")], 60, False),
        ([DELETING], 0.01, True),
        ([DELETING, DELETING, STUCK], 0, True),
        ([shoot("Processing")], 60, True),
    ],
    ids=["at once", "later", "gone meanwhile", "never", "without waiting", "not deleted"],
)
def test_a_deletion_is_forced_once_its_error_code_is_shown(looks, seconds, refused):
    said: list[str] = []
    refusal = ShootOwner(Refusing(*looks), "mine").force_delete_once_stuck(seconds, said.append)
    assert bool(refusal) is refused
    assert any("waiting" in text for text in said) is (looks[0] is DELETING and seconds > 0)
