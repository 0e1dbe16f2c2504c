"""JSON patches: the few operations we need, and tests of the state that they were built on.

Each of our patches tests metadata.uid, so that it never changes another object of the same name,
and every other value it relies on. A test of `null` holds for a missing value (RFC 6902 as the API
server implements it).
"""

from collections.abc import Iterable
from typing import Any

from actuator.meta import Raw, value_at


def escape(key: str) -> str:
    """Return a key as one step of a JSON pointer (RFC 6901)."""
    return key.replace("~", "~0").replace("/", "~1")


def test(path: str, value: Any) -> Raw:
    """Return a test that fails the whole patch unless `path` is exactly `value`."""
    return {"op": "test", "path": path, "value": value}


def test_version(obj: Raw) -> Raw:
    """Return a test that fails the whole patch if the object changed since it was read.

    For patches built on texts or lists of other controllers: the API server compares their
    encoding, which depends on its version.
    """
    return test("/metadata/resourceVersion", obj["metadata"]["resourceVersion"])


def add(path: str, value: Any) -> Raw:
    """Return the operation that sets `path`, existing or not; its parent must exist."""
    return {"op": "add", "path": path, "value": value}


def replace(path: str, value: Any) -> Raw:
    """Return the operation that sets `path`, which must exist."""
    return {"op": "replace", "path": path, "value": value}


def remove(path: str) -> Raw:
    """Return the operation that removes `path`, which must exist."""
    return {"op": "remove", "path": path}


def tests_hold(patch: Iterable[Raw], obj: Raw) -> bool:
    """Whether all tests of the patch hold for `obj`: a refusal then had another reason."""
    return all(_at(obj, op["path"]) == op["value"] for op in patch if op["op"] == "test")


def _at(obj: Raw, pointer: str) -> Any:
    steps = pointer.split("/")[1:]
    return value_at(obj, *(step.replace("~1", "/").replace("~0", "~") for step in steps))
