"""Each worker begins with long tests, and no test is lost."""

from typing import Any

import pytest

from tests.support.objects.stand_ins import StandIn
from tests.support.suite.order import spread


class Item(StandIn):
    """The part of a test that `spread` reads."""

    def __init__(self, nodeid, *, long):
        self.nodeid = nodeid
        self.long = long

    def get_closest_marker(self, name):
        return self if self.long and name == "long" else None


LONG = [Item(f"{module}.py::{n}", long=True) for module in "abc" for n in range(2)]
SHORT = [Item(f"z.py::{n}", long=False) for n in range(17)]


@pytest.mark.parametrize("workers", [1, 2, 3, 5])
def test_each_worker_begins_with_the_long_tests_of_whole_modules(workers):
    items = [*SHORT[:5], *LONG, *SHORT[5:]]
    ordered: list[Any] = spread(items, workers)
    assert sorted(item.nodeid for item in ordered) == sorted(item.nodeid for item in items)
    rest = list(ordered)
    parts = []
    for number in range(workers):
        count = len(rest) // (workers - number)
        parts.append(rest[:count])
        rest = rest[count:]
    for part in parts[:3]:
        assert part[0].long
        assert part == sorted(part, key=lambda item: not item.long)
    where = [{item.nodeid[0] for item in part if item.long} for part in parts]
    assert sum(map(len, where)) == 3
    assert spread(items, workers) == ordered


def test_no_test_is_lost_where_all_are_long():
    assert sorted(item.nodeid for item in spread(LONG, 4)) == [item.nodeid for item in LONG]
