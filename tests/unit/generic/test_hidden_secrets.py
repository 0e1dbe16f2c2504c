"""Errors of clouds that quote credentials: no value of a Secret stays in their texts."""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actuator.errors import ActuatorError
from actuator.meta import Raw
from generic.kube.errorinfo import describe
from generic.reconciler.known_secrets import hide

PRINTABLE = st.characters(min_codepoint=33, max_codepoint=126)
VALUES = st.text(PRINTABLE, min_size=8, max_size=60)
WORDS = st.text("abcdefghijklmnopqrstuvwxyz0123456789+/_-", min_size=16, max_size=40)


def secret(**data: bytes) -> Raw:
    return {"data": {key: base64.b64encode(value).decode() for key, value in data.items()}}


@given(VALUES, st.text(max_size=20), st.text(max_size=20), st.sampled_from(["", "\n", " ", "\r\n"]))
def test_a_value_is_hidden_wherever_an_error_quotes_it(
    value: str, before: str, after: str, end: str
) -> None:
    known = secret(Z=(value + end).encode())
    encoded = base64.b64encode(value.encode()).decode()
    error = ActuatorError(f"{before}{value}{after} {known['data']['Z']}")
    shown = hide(describe(error), [known])
    assert "<Z>" in shown
    assert value not in shown or value in before + after + "<Z> <Z>"
    assert encoded not in shown or end


@given(WORDS, st.booleans())
def test_a_token_in_a_kubeconfig_or_a_key_file_is_hidden(token: str, is_yaml: bool) -> None:
    config = {"users": [{"user": {"token": token}}]}
    text = f"users:\n- user:\n    token: {token}\n" if is_yaml else json.dumps(config)
    known = secret(K=text.encode())
    assert hide(f"401 for {token}: denied", [known]) == "401 for <K>: denied"
    assert token not in hide(describe(RuntimeError(text)), [known])


@pytest.mark.parametrize(
    ("known", "text"),
    [
        ([], "denied: abcdefgh"),
        ([{}], "denied: abcdefgh"),
        ([{"data": None}], "denied: abcdefgh"),
        ([secret(region=b"eu-1"), secret(x=b"")], "the region eu-1 is down"),
        ([secret(x=b"\xff\xfe\xff\xfe\xff\xfe\xff\xfe")], "denied"),
        ([{"data": {"x": "no base64 at all"}}], "denied"),
    ],
)
def test_short_values_and_secrets_without_texts_change_nothing(known: list[Raw], text: str) -> None:
    assert hide(text, known) == text


def test_the_longest_value_is_replaced_first() -> None:
    known = [secret(user=b"operator", password=b"operator-secret-1")]
    assert hide("operator: operator-secret-1", known) == "<user>: <password>"
