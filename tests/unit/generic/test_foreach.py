"""The error of one object stops no other; names that are too long stay different."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actuator.errors import ActuatorError, Cancelled, Conflict
from generic.library.foreach import for_each
from generic.library.manifests import MAX_LABEL, shortened

NAMES = st.from_regex(r"[a-z0-9]([a-z0-9.-]{0,250}[a-z0-9])?", fullmatch=True)


@given(st.lists(st.sampled_from([None, ActuatorError("a"), Conflict(409, "c")])))
def test_all_are_acted_on_and_the_first_error_is_raised(errors):
    seen = []

    def act(error):
        seen.append(error)
        if error:
            raise error

    first = next(filter(None, errors), None)
    if first is None:
        for_each(errors, act)
    else:
        with pytest.raises(type(first)) as raised:
            for_each(errors, act)
        assert raised.value is first
    assert seen == errors


def test_a_cancelled_call_ends_at_once():
    seen = []

    def act(item):
        seen.append(item)
        raise Cancelled

    with pytest.raises(Cancelled):
        for_each([1, 2], act)
    assert seen == [1]


@given(NAMES, NAMES)
def test_shortened_names_fit_and_stay_different(one, other):
    for most in (MAX_LABEL, 253):
        short = shortened(one, most)
        assert len(short) <= most
        assert short[0].isalnum()
        assert short[-1].isalnum()
        assert (short == shortened(other, most)) is (one == other)
        assert len(one) > most or short == one
