"""`actuator orphans verify`: credentials of another account are refused, and asked for once."""

from types import SimpleNamespace
from typing import Any

import pytest

from actuator.errors import ActuatorError
from generic.manager.orphans.verification import Accounts
from generic.reconciler.origin import DeletionOrigin


def asking(*answers: Any) -> Any:
    """An actuator with these answers, one for each question."""
    left = list(answers)

    def answer() -> Any:
        found = left.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    return SimpleNamespace(verifying_account=answer, left=left)


def test_another_account_is_refused_for_each_record_and_asked_for_once() -> None:
    accounts = Accounts()
    actuator = asking("222")
    accounts.check(actuator, DeletionOrigin(account="222"))
    for _ in range(2):
        with pytest.raises(ActuatorError, match=r"in account 111, and your .* account 222; use"):
            accounts.check(actuator, DeletionOrigin(account="111"))


@pytest.mark.parametrize(
    ("recorded", "answers"),
    [("", []), ("unknown", []), ("111", ["111"]), ("111", [""]), ("111", [None])],
)
def test_an_unknown_account_is_no_reason_to_refuse(recorded: str, answers: list[Any]) -> None:
    actuator = asking(*answers)
    Accounts().check(actuator, DeletionOrigin(account=recorded))
    assert actuator.left == []


def test_an_error_of_the_question_is_an_error_of_the_record() -> None:
    with pytest.raises(ActuatorError, match="sts says no"):
        Accounts().check(asking(ActuatorError("sts says no")), DeletionOrigin(account="111"))
