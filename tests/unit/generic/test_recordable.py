"""The resources of one object that become Orphans: all of them, within the limits of a process."""

from collections.abc import Iterable
from itertools import chain, count, repeat

import pytest

from actuator import Actuator, ExternalResource
from actuator.v1alpha1 import Infrastructure
from generic.reconciler.orphans import UNKNOWN, recordable


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
        (chain([None], disks(range(150)), [7], disks(range(150, 300))), 300, "each with a type"),
        (repeat(None), 0, "each with a type"),
        (repeat(ExternalResource(type="Disk")), 1, "at most 10000 ExternalResources"),
        (disks(count(), 16_000), 525, "8388608 together"),
        (failing(), 200, "the status is damaged"),
    ],
    ids=["endless", "one more", "some wrong", "all wrong", "the same", "long texts", "an error"],
)
def test_a_record_of_an_unknown_resource_stands_for_the_others(listed, number, words):
    found, problem = recordable(Reporting(listed), Infrastructure())
    assert found[-1] == UNKNOWN
    assert len(found) == number + 1
    assert words in problem
