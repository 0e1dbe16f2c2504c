"""JSON patches: the few operations we need, and the test of what they were built upon.

Every patch of ours tests metadata.uid, so that it never hits another object of the same name;
what else it relies on it tests too. A test of `null` holds where there is nothing (RFC 6902 as
the API server implements it).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from actuator.meta import Raw


def escape(key: str) -> str:
    """A key as one step of a JSON pointer (RFC 6901)."""
    return key.replace("~", "~0").replace("/", "~1")


def test(path: str, value: Any) -> Raw:
    """Fails the whole patch where `path` does not hold exactly `value`."""
    return {"op": "test", "path": path, "value": value}


def test_version(obj: Raw) -> Raw:
    """Fails the whole patch where the object changed since it was read.

    For patches built upon texts or lists of others: the API server compares those as they are
    encoded, which depends on its version.
    """
    return test("/metadata/resourceVersion", obj["metadata"]["resourceVersion"])


def add(path: str, value: Any) -> Raw:
    """Sets `path`, whether or not there was something; its parent has to exist."""
    return {"op": "add", "path": path, "value": value}


def replace(path: str, value: Any) -> Raw:
    """Sets `path`, which has to exist."""
    return {"op": "replace", "path": path, "value": value}


def remove(path: str) -> Raw:
    """Removes `path`, which has to exist."""
    return {"op": "remove", "path": path}


def tests_hold(patch: Iterable[Raw], obj: Raw) -> bool:
    """Whether all tests of the patch hold for `obj`: then a refusal had another reason."""
    return all(_at(obj, op["path"]) == op["value"] for op in patch if op["op"] == "test")


def _at(obj: Any, pointer: str) -> Any:
    for step in pointer.split("/")[1:]:
        if not isinstance(obj, dict):
            return None
        obj = obj.get(step.replace("~1", "/").replace("~0", "~"))
    return obj
