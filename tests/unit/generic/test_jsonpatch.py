"""The computed patch turns the first value into the second, and is empty for equal ones."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generic.library.webhooks.jsonpatch import difference

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | st.floats(0, 2) | st.sampled_from(["", "a"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["a", "b/c", "~d", "~1", "0", ""]), inner, max_size=4)
    ),
    max_leaves=12,
)


def applied(value: Any, patch: list[dict[str, Any]]) -> Any:
    """Apply a patch, by the rules of RFC 6902 for add, remove and replace."""
    root = {"": value}
    for operation in patch:
        *parents, last = [
            step.replace("~1", "/").replace("~0", "~") for step in operation["path"].split("/")
        ]
        holder: Any = root
        for step in parents:
            holder = holder[int(step) if isinstance(holder, list) else step]
        if isinstance(holder, list):
            if operation["op"] == "add":
                assert last == "-"
                holder.append(operation["value"])
                continue
            last = int(last)
        if operation["op"] == "remove":
            del holder[last]
        else:
            assert (operation["op"] == "replace") == (isinstance(last, int) or last in holder)
            holder[last] = operation["value"]
    return root[""]


def text(value: Any) -> bytes:
    return msgspec.json.encode(value, order="sorted")


@given(VALUES, VALUES)
def test_a_patch_turns_one_value_into_the_other(before, after):
    patch = list(difference(before, after))
    copy = msgspec.json.decode(msgspec.json.encode(before))
    assert text(applied(copy, patch)) == text(after)


@given(VALUES)
def test_equal_values_need_no_operation(value):
    assert list(difference(value, msgspec.json.decode(msgspec.json.encode(value)))) == []


@pytest.mark.parametrize("after", [1.0, True, "1", [1], {"a": 1}, None])
def test_a_value_of_another_type_is_replaced(after):
    assert list(difference({"a": 1}, {"a": after})) == [
        {"op": "replace", "path": "/a", "value": after}
    ]
