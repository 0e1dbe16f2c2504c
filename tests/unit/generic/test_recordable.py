"""The resources of one object that become Orphans: all of them, within the limits of a process."""

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import chain, count, repeat
from typing import Any

import pytest

from actuator import Actuator, ExternalResource
from actuator.errors import ApiError, Forbidden, NotFound, TooManyRequests, Unavailable
from actuator.v1alpha1 import Infrastructure
from generic.kube.client import Silence
from generic.reconciler.orphans import UNKNOWN, OrphanedFrom, OrphanReason, record_all, recordable


class Reporting(Actuator[Infrastructure]):
    def __init__(self, found: Iterable[object]) -> None:
        self.found = found

    def reconcile(self, ctx, obj, cluster): ...
    def delete(self, ctx, obj, cluster): ...

    def external_resources(self, obj):
        yield from self.found


def disks(numbers: Iterable[int], size: int = 0) -> Iterable[ExternalResource]:
    return (ExternalResource(type="Disk", id=f"{number}-{'x' * size}") for number in numbers)


def failing() -> Iterable[ExternalResource]:
    yield from disks(range(200))
    raise RuntimeError("the status is damaged")


@pytest.mark.parametrize("number", [0, 1, 99, 100, 101, 250, 9_999, 10_000])
def test_each_resource_is_recorded(number):
    found, problem = recordable(Reporting(disks(range(number))), Infrastructure())
    assert (found, problem) == ([*disks(range(number))], "")


@pytest.mark.parametrize(
    ("listed", "number", "words"),
    [
        (disks(count()), 10_000, "at most 10000 ExternalResources"),
        (disks(range(10_001)), 10_000, "at most 10000 ExternalResources"),
        (
            chain([7], disks(range(150)), [None], disks(range(150, 300))),
            300,
            "invalid int as number 1",
        ),
        (chain(disks(range(9)), repeat(None)), 9, "an invalid NoneType as number 10; it must"),
        (repeat(ExternalResource(type="")), 0, "an invalid ExternalResource as number 1"),
        ("shoot--a--b", 0, "Reporting.external_resources yields an invalid str as number 1"),
        (repeat(ExternalResource(type="Disk")), 1, "at most 10000 ExternalResources"),
        (disks(count(), 16_000), 525, "8388608 together"),
        (failing(), 200, "the status is damaged (test_recordable.py:"),
    ],
    ids=[
        "endless",
        "one more",
        "some wrong",
        "others wrong",
        "no type",
        "a text",
        "the same",
        "long texts",
        "an error",
    ],
)
def test_a_record_of_an_unknown_resource_stands_for_the_others(listed, number, words):
    found, problem = recordable(Reporting(listed), Infrastructure())
    assert found[-1] == UNKNOWN
    assert len(found) == number + 1
    assert words in problem


class Refusing:
    """An API server that has no Orphan, and refuses each request a number of times."""

    def __init__(self, times: int, error: ApiError) -> None:
        self.times = times
        self.error = error
        self.refused: Counter[str] = Counter()
        self.created: list[str] = []

    def get(self, _resource, name):
        self._refuse(f"get {name}")
        raise NotFound(404, "no Orphan")

    def create(self, _resource, obj):
        self._refuse(f"create {obj['metadata']['name']}")
        self.created.append(obj["spec"]["id"])
        return obj

    def _refuse(self, request):
        self.refused[request] += 1
        if self.refused[request] <= self.times:
            raise self.error


def recorded(client):
    former = OrphanedFrom(kind="Infrastructure", namespace="shoot--a--b", name="x", uid="1")
    found = disks(range(30))
    return record_all(client, former, found, OrphanReason.FORCED, "", datetime.now(UTC))


def test_one_attempt_records_dozens_of_resources_of_which_each_is_refused_once():
    """An API server that refuses a tenth of all requests would else end few attempts."""
    client: Any = Refusing(1, Unavailable(503, "busy"))
    assert [orphan.spec.id for orphan in recorded(client)] == client.created
    assert len(client.created) == 30


@pytest.mark.parametrize(
    ("error", "tries"),
    [
        pytest.param(Unavailable(503, "busy"), 4, id="busy"),
        pytest.param(TooManyRequests(429, "later", retry_after=3), 1, id="later"),
        pytest.param(Silence(0, "no answer"), 1, id="no answer"),
        pytest.param(Forbidden(403, "no permission"), 1, id="no permission"),
    ],
)
def test_an_attempt_ends_after_some_tries_or_a_refusal_that_lasts(error, tries):
    client: Any = Refusing(100, error)
    with pytest.raises(type(error)):
        recorded(client)
    assert client.refused.total() == tries
