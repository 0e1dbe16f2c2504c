"""Each worker begins with long tests, and no test is lost."""

import attrs
import pytest
from spreading import spread


@attrs.frozen
class Item:
    """What `spread` asks of a test."""

    nodeid: str
    long: bool

    def get_closest_marker(self, name):
        return self if self.long and name == "long" else None


LONG = [Item(f"{module}.py::{n}", long=True) for module in "abc" for n in range(2)]
SHORT = [Item(f"z.py::{n}", long=False) for n in range(17)]


@pytest.mark.parametrize("workers", [1, 2, 3, 5])
def test_each_worker_begins_with_the_long_tests_of_whole_modules(workers):
    items = [*SHORT[:5], *LONG, *SHORT[5:]]
    ordered = spread(items, workers)
    assert sorted(one.nodeid for one in ordered) == sorted(one.nodeid for one in items)
    rest, parts = list(ordered), []
    for number in range(workers):
        count = len(rest) // (workers - number)
        parts.append(rest[:count])
        rest = rest[count:]
    for part in parts[:3]:
        assert part[0].long
        assert part == sorted(part, key=lambda one: not one.long)
    where = [{one.nodeid[0] for one in part if one.long} for part in parts]
    assert sum(map(len, where)) == 3
    assert spread(items, workers) == ordered


def test_where_all_are_long_none_is_lost():
    assert sorted(one.nodeid for one in spread(LONG, 4)) == [one.nodeid for one in LONG]
