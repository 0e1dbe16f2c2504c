"""Accounts that author hooks return, and `orphans verify` with credentials of another account."""

import asyncio
import warnings
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actuator import Actuator
from actuator.errors import ActuatorError, ErrorCode
from actuator.v1alpha1 import Infrastructure
from generic.kube.errorinfo import describe
from generic.manager.orphans.verification import Accounts
from generic.reconciler.invoker import WrongResult, checked_account
from generic.reconciler.origin import DeletionOrigin
from tests.support.cluster.harness import Script


class Asking(Script):
    """An actuator with these answers, one for each question."""

    def __init__(self, *answers: Any) -> None:
        super().__init__()
        self.left = list(answers)

    def verifying_account(self) -> str:
        found: Any = self.left.pop(0)
        if isinstance(found, Exception):
            raise found
        return found


class Loud(str):
    """A text that claims to be printable."""

    __slots__ = ()

    def isprintable(self) -> bool:
        return True

    def __len__(self) -> int:
        return 1

    def __str__(self) -> str:
        raise ValueError("no text")


def test_another_account_is_refused_for_each_record_and_asked_for_once() -> None:
    accounts = Accounts()
    actuator = Asking("222")
    accounts.check(actuator, DeletionOrigin(account="222"))
    for _ in range(2):
        with pytest.raises(ActuatorError, match=r"in account 111, and your .* account 222; use"):
            accounts.check(actuator, DeletionOrigin(account="111"))


@pytest.mark.parametrize(
    ("recorded", "answers"), [("", []), ("unknown", []), ("111", ["111"]), ("111", [""])]
)
def test_an_unknown_account_is_no_reason_to_refuse(recorded: str, answers: list[Any]) -> None:
    actuator = Asking(*answers)
    Accounts().check(actuator, DeletionOrigin(account=recorded))
    assert actuator.left == []


def test_an_error_of_the_question_is_an_error_of_the_record() -> None:
    with pytest.raises(ActuatorError, match="sts says no"):
        Accounts().check(Asking(ActuatorError("sts says no")), DeletionOrigin(account="111"))


def wrong() -> st.SearchStrategy[Any]:
    """Values that are no account: other types, long texts, and texts that are not printable."""
    marks = st.sampled_from("\n\r\t\x00\x1b\x7f\x9b\u200b\u202e\u2066\u2028\ud800")
    texts = st.tuples(st.text(max_size=20), marks, st.text(max_size=20)).map("".join)
    values = st.none() | st.integers() | st.booleans() | st.binary(max_size=9) | st.floats()
    lists = st.lists(st.text(max_size=9), max_size=3) | st.dictionaries(st.text(), st.none())
    return texts | texts.map(Loud) | st.text(min_size=254, max_size=300) | values | lists


@given(wrong(), st.sampled_from(["cloud_account", "verifying_account"]))
def test_a_wrong_account_is_refused_in_one_sentence_without_its_text(
    account: Any, method: str
) -> None:
    with pytest.raises(WrongResult) as found:
        checked_account(Asking(), method, account)
    said = describe(found.value)
    name = type(account).__name__
    assert said.startswith(f"Asking.{method} returned {name}; it must return a text of at most 253")
    assert said.isprintable()
    assert found.value.codes == (ErrorCode.ERR_CONFIGURATION_PROBLEM,)


@given(st.text(st.characters(categories=["L", "N", "P", "S"]), max_size=253))
def test_a_printable_account_is_kept_as_it_is(account: str) -> None:
    found = checked_account(Asking(), "cloud_account", account)
    assert (found, type(found)) == (account, str)


def test_a_coroutine_is_refused_without_a_warning() -> None:
    class Async(Actuator[Infrastructure]):
        async def verifying_account(self) -> str:  # type: ignore[override]
            await asyncio.sleep(0)
            return "111"

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        actuator: Any = Asking()
        with pytest.raises(WrongResult, match="returned coroutine; it must return a text"):
            checked_account(actuator, "verifying_account", Async.verifying_account(actuator))


@pytest.mark.parametrize("answer", [None, 111, "111\n", "1" * 254], ids=ascii)
def test_a_wrong_answer_is_an_error_of_each_record(answer: Any) -> None:
    with pytest.raises(ActuatorError, match=r"^Asking\.verifying_account returned .*; it must "):
        Accounts().check(Asking(answer), DeletionOrigin(account="111"))
