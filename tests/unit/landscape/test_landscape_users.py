"""What the owner of a Shoot sees."""

import pytest

from generic.testing.landscape.users import first_task, is_gone, is_ready, view_of

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
