"""Finalizers: ours goes on before anything is made outside, and off when nothing is left.

Two halves. The first is pure: the patches that put a finalizer on an object and take it off.
The second is `finalizer`, the four-state protocol for anyone who writes a controller without
our Manager.

Guarantees of `finalizer`:
- `apply` runs only while the finalizer is on the object, acknowledged by the API server.
- The finalizer comes off only after `cleanup` returned.
- Finalizers of others are kept, whatever happens in between: a patch tests the whole list.

Assumptions: `apply` and `cleanup` are idempotent; either may run again after a crash.
Caveats: `obj` is as fresh as its caller made it. A stale one costs a Stale error, never data.
Errors: whatever `apply` and `cleanup` raise; Stale where the object changed meanwhile (read it
again and start over); ApiError; ValueError for a finalizer that is not qualified. That the object
is gone already is no error.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TypeVar

from actuator.errors import Invalid, NotFound
from actuator.interface import Client, Resource
from actuator.meta import Raw
from actuator.qualified import require_qualified
from generic.kube.patches import add, remove, replace, test, tests_hold

__all__ = ["Stale", "finalizer", "patch_tested", "put_on", "take_off"]

T = TypeVar("T")


class Stale(Exception):
    """The object is no longer what a patch was built upon; `fresh` is what it is now."""

    def __init__(self, message: str, fresh: Raw) -> None:
        super().__init__(message)
        self.fresh = fresh


def put_on(name: str, uid: str, finalizers: Sequence[str]) -> list[Raw]:
    """The patch that adds finalizer `name` to the list as it was read; never while deleting.

    Raises ValueError where the name is not qualified.
    """
    return [
        test("/metadata/uid", uid),
        test("/metadata/deletionTimestamp", None),
        test("/metadata/finalizers", list(finalizers) or None),
        add("/metadata/finalizers", [*finalizers, require_qualified(name)]),
    ]


def take_off(names: Collection[str], uid: str, finalizers: Sequence[str]) -> list[Raw]:
    """The patch that removes finalizers from the list as it was read; others stay."""
    rest = [other for other in finalizers if other not in names]
    path = "/metadata/finalizers"
    return [
        test("/metadata/uid", uid),
        test(path, list(finalizers) or None),
        replace(path, rest) if rest else remove(path),
    ]


def patch_tested(
    client: Client,
    resource: Resource,
    name: str,
    namespace: str,
    patch: Sequence[Raw],
    *,
    subresource: str = "",
) -> Raw:
    """Applies a JSON patch and tells a failed test from a real refusal.

    Raises Stale where a test no longer holds, NotFound where the object, or that object, is
    gone, and Invalid where everything was as expected and the API server still said no.
    """
    try:
        return client.patch(resource, name, namespace, patch, subresource=subresource)
    except Invalid:
        fresh = client.get(resource, name, namespace)
        uid = fresh["metadata"]["uid"]
        expected = next(op["value"] for op in patch if op["path"] == "/metadata/uid")
        if uid != expected:
            message = f"{resource} {name} is another object now"
            raise NotFound(404, message, reason="NotFound") from None
        if tests_hold(patch, fresh):
            raise
        raise Stale(f"{resource} {namespace}/{name} changed meanwhile", fresh) from None


def finalizer(
    client: Client,
    resource: Resource,
    name: str,
    obj: Raw,
    *,
    apply: Callable[[Raw], T],
    cleanup: Callable[[Raw], None],
) -> T | None:
    """Runs `apply` or `cleanup` for `obj`, as its finalizer and deletionTimestamp ask for."""
    meta = obj["metadata"]
    current: list[str] = meta.get("finalizers") or []
    where = (client, resource, meta["name"], meta.get("namespace", ""))
    match (name in current, meta.get("deletionTimestamp") is not None):
        case (False, False):
            guarded = patch_tested(*where, put_on(name, meta["uid"], current))
            return apply(guarded)
        case (True, False):
            return apply(obj)
        case (True, True):
            cleanup(obj)
            try:
                patch_tested(*where, take_off([name], meta["uid"], current))
            except NotFound:
                pass  # somebody else took it off, and nothing else held the object
            return None
        case _:
            return None  # deleting, and not ours to hold
