"""Old mistakes, each put back into the product of the process that calls it: see test_adversary."""

# To replace methods of the product is the purpose.
# mypy: disable-error-code="method-assign"

from __future__ import annotations

import json
import logging
import re
import time
from json.scanner import py_make_scanner  # type: ignore[attr-defined]
from typing import Any

import actuator.codec
import generic.kube.client
import generic.kube.errorinfo
import generic.kube.informer
import generic.library.healthchecks.builtin
import generic.reconciler.deletion.force_deletion
import generic.reconciler.invoker
import generic.reconciler.status
import generic.reconciler.stripping
from actuator import Result
from actuator.errors import ApiError, api_error
from generic.kube.documents import Document
from generic.kube.patches import test
from generic.kube.tenants import Share
from generic.kube.transport import _KeptConnection
from generic.reconciler.invoker import CallFailed, Invoker
from generic.reconciler.operation import Operation
from tests.adversary.inputs import MARK


def frozen_status() -> None:
    """A patch of the status tests the conditions, as Python encodes them and not as Go does."""
    patch = generic.reconciler.status.patch

    def write(self: Any, method: str, path: str, body: Any, content_type: str, query=None) -> bytes:
        encoded = json.dumps(body, separators=(",", ":")).encode()
        managed = {"fieldManager": "actuator"} if query is None else query
        return self.send(method, path, query=managed, body=encoded, content_type=content_type)

    def tested(obj: Any, fields: Any) -> Any:
        status = obj.get("status")
        asked = isinstance(status, dict) and "conditions" in fields
        more = [test("/status/conditions", status.get("conditions"))] if asked else []
        return [*patch(obj, fields)[:1], *more, *patch(obj, fields)[1:]]

    generic.kube.client.HttpClient._write = write
    generic.reconciler.status.patch = tested


def deep_objects() -> None:
    """A line of the watch is read by recursion, and one that is too deep ends the watch.

    The reader is Python code: C code of Python 3.13 recurses deeper than the API server stores.
    """
    reader = json.JSONDecoder()
    vars(reader)["scan_once"] = py_make_scanner(reader)

    def parse(line: bytes) -> tuple[str, Document]:
        event = reader.decode(line.decode())
        if event["type"] == "ERROR":
            raise api_error(int(event["object"].get("code") or 500), event["object"])
        return event["type"], Document(event["object"])

    generic.kube.informer._parse = parse


def cyclic_causes() -> None:
    """The chain of causes is followed without limit."""

    def blocked_reason(error: BaseException, own: str) -> str:
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, ApiError):
                break
            cause = cause.__cause__
            time.sleep(0.001)  # it is for ever, but leaves the CPU to other tests
        return own or "Error"

    generic.kube.errorinfo._blocked_reason = blocked_reason


def all_namespaces() -> None:
    """Namespaced seed objects of an object without a namespace are looked for everywhere."""

    def delete(client: Any, namespace: str, groups: Any, on_stripped: Any, **_: Any) -> None:
        for group in groups:
            generic.reconciler.stripping._delete_group(client, namespace, group, on_stripped)

    vars(generic.reconciler.stripping)["delete_seed_objects"] = delete
    vars(generic.reconciler.invoker)["delete_seed_objects"] = delete


def careless_deletions() -> None:
    """A deletion that fails is done, with its Secret in the log; a forced one records nothing."""
    invoke = Invoker.invoke
    kept: list[bytes] = []

    def forgiving(self: Invoker, call: Any, *given: Any) -> Result:
        try:
            return invoke(self, call, *given)
        except CallFailed:
            if call.operation is not Operation.DELETE:
                raise
            kept[:] = [b"x" * 2**27]
            logging.getLogger(__name__).error(MARK)
            return Result()

    Invoker.invoke = forgiving  # type: ignore[assignment]
    vars(generic.reconciler.deletion.force_deletion)["record_all"] = lambda *_: ()


def uncounted_values() -> None:
    """The values of a tenant's answer are not counted before it is decoded."""
    Share.grow_for = lambda *_: None


def early_bodies() -> None:
    """The body of a status below 200 is kept until the answer itself arrives."""

    def on_body(self: Any, data: bytes) -> None:
        self.pieces.append(data)
        self._size = 0

    _KeptConnection.on_body = on_body


def strings_read_again() -> None:
    """A string without an end is read again from each of its quotes."""
    actuator.codec._TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"|([\[\]{}])', re.DOTALL)


def long_messages() -> None:
    """A health check searches in all of a message."""
    generic.library.healthchecks.builtin._MAX_SHOWN = 10**9
