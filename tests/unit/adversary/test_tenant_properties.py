"""Any answer of a tenant's API server: a request ends in time, with objects or our error."""

import random
from concurrent.futures import ThreadPoolExecutor

from generic.kube import client
from tests.adversary.tenants import AT_ONCE, input_of, serving
from tests.tenantside import playing, whole

INPUTS = 100


def broken(inputs):
    """The problems of these inputs, and of what happens beside them."""
    found = []
    with serving(found.append) as target, ThreadPoolExecutor(4 * AT_ONCE) as pool:
        return [problem for problem in pool.map(target.problem, inputs) if problem] + found


def small(seed):
    """No large answer: they take seconds, and tests/unit/generic/test_tenants.py has them."""
    found = input_of(random.Random(seed))
    return found if found.limit < 10 else small(f"{seed}+")


def test_no_generated_answer_breaks_a_rule():
    assert broken(map(small, range(INPUTS))) == []


def test_an_answer_that_is_not_checked_is_seen(monkeypatch):
    monkeypatch.setattr(client, "check_page", lambda *_: None)
    given = input_of(random.Random(0))
    wrong = type(given)("list", 1.0, playing(whole({"items": ["x"]})))
    assert broken([wrong])[0].startswith("it raises ValueError: ")
