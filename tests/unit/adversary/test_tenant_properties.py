"""Any answer of a tenant's API server: a request ends in time, with objects or our error."""

import json
import random
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest

from generic.kube import tenants as limits
from generic.kube.client import HttpClient
from generic.kube.transport import HttpTransport
from tests.adversary import tenants
from tests.adversary.tenants import AT_ONCE, Input, input_of, serving
from tests.support.cluster.tenant_server import DISCOVERY, LISTS, PHASES, playing, whole

INPUTS = 100


@pytest.fixture(autouse=True)
def _any_memory(monkeypatch):
    """This is no process of its own: tests/e2e/adversary measures the memory."""
    monkeypatch.setattr(tenants, "_MIB", float("inf"))


def broken(inputs):
    """The problems of these inputs, and of requests beside them."""
    found: list[str] = []
    with serving(found.append) as target, ThreadPoolExecutor(4 * AT_ONCE) as pool:
        return [problem for problem in pool.map(target.problem, inputs) if problem] + found


def small(seed):
    """No large answer: they take seconds, and tests/unit/generic/test_tenants.py has them."""
    found = input_of(random.Random(seed))
    return found if found.limit < 10 else small(f"{seed}+")


def test_no_generated_answer_breaks_a_rule():
    assert broken(map(small, range(INPUTS))) == []


def without_a_deadline(patch):
    made = HttpTransport.__init__

    def without_trust(*given, is_trusted, **named):
        made(*given, **named)

    patch.setattr(HttpTransport, "__init__", without_trust)


def with_utf_16(patch):
    patch.setattr(msgspec.json, "decode", json.loads)


EMPTY = playing(whole({"metadata": {"continue": "more"}, "items": []}))
PLANTED = {
    "no deadline": (without_a_deadline, Input("get", 0.2, PHASES["body"]), "goes on"),
    "a deadline for each page": (
        lambda patch: patch.setattr(HttpClient, "_ending", lambda self: self),
        Input("list", 0.5, PHASES["pages"]),
        "goes on",
    ),
    "no limit of pages": (
        lambda patch: patch.setattr(limits, "MOST_PAGES", 10**9),
        Input("ctx.shoot", 2.0, EMPTY),
        "requests",
    ),
    "no limit of versions": (
        lambda patch: patch.setattr(limits, "MOST_PAGES", 10**9),
        Input("patch of a status", 2.0, playing(*DISCOVERY)),
        "requests",
    ),
    "pages without a check": (
        lambda patch: patch.setattr(limits, "check_page", lambda *_: None),
        Input("list", 1.0, playing(whole({"items": ["x"]}))),
        "raises ValueError: ",
    ),
    "text in UTF-16": (with_utf_16, Input("get", 1.0, playing(LISTS["hidden levels"])), "levels"),
}


@pytest.mark.parametrize(("plant", "given", "problem"), PLANTED.values(), ids=PLANTED)
def test_a_planted_mistake_is_seen(monkeypatch, plant, given, problem):
    monkeypatch.setattr(tenants, "SLACK", 0.5)
    plant(monkeypatch)
    [found] = broken([given])
    assert problem in found
