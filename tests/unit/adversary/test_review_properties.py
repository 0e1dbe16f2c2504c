"""Any request to the webhook server: answered, and nothing else is disturbed."""

import json
import random

import pytest

from generic.library.webhooks.jsonpatch import difference
from generic.library.webhooks.review import ReviewAnswer
from tests.adversary.inputs import MARK
from tests.adversary.reviews import patched, request, serving

INPUTS = 300
WRONG = b'{"response": {"uid": "of another review", "allowed": true}}'


def test_no_generated_request_breaks_a_rule():
    reviews = 0
    with serving() as target:
        for seed in range(INPUTS):
            sent = request(random.Random(seed))
            assert target.problem(sent) is None, f"input {seed}: {sent.sent[:2000]!r}"
            reviews += sent.review is not None
        assert target.end() is None
    assert reviews > INPUTS / 2


@pytest.mark.parametrize(
    ("planted", "problem"),
    [(WRONG, "an invalid response"), (MARK.encode(), "a part of the object leaves")],
    ids=["another uid", "secret"],
)
def test_a_wrong_answer_is_found(monkeypatch, planted, problem):
    inputs = (request(random.Random(seed)) for seed in range(INPUTS))
    sent = next(found for found in inputs if found.review is not None)
    monkeypatch.setattr(ReviewAnswer, "encode", lambda _answer: planted)
    with serving() as target:
        assert problem in str(target.problem(sent))


@pytest.mark.parametrize("seed", range(20))
def test_a_patch_turns_any_document_into_any_other(seed):
    rng = random.Random(seed)
    before = json.loads(_document(rng))
    after = json.loads(_document(rng))
    assert patched(before, list(difference(before, after))) == after


def _document(rng):
    from tests.adversary import texts

    while len(found := f'{{"a":{texts.value(rng, 4)},"b/~":{texts.value(rng, 4)}}}') > 20_000:
        pass
    return found
