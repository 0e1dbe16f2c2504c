"""`--break RULE`: ways to break each invariant, so that its check is seen to fail.

Wrappers around the client or an actuator, put in by the drill alone; the product has no branch
for any of them. Each says what a buggy extension or framework would do.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Any

import attrs

from actuator.codec import decode, encode
from actuator.interface import Actuator, Client, ExternalResource, Resource, WrappedActuator
from actuator.meta import Object, Raw

__all__ = ["BREAKS", "FINALIZERS", "Break", "RewritingClient", "make_twin"]

FINALIZERS = "/metadata/finalizers"


@attrs.frozen(kw_only=True)
class Break:
    """What is wrapped; `text` says what is wrong then."""

    text: str
    client: Callable[[Client], Any] = lambda client: client
    actuator: Callable[[Actuator[Any]], Actuator[Any]] = lambda actuator: actuator
    forgets_a_record: bool = False


class _Silent(WrappedActuator):
    """Says that nothing is left outside."""

    def external_resources(self, obj: Any, /) -> Iterable[ExternalResource]:
        """See Actuator."""
        return ()


class _TakesOwnFinalizer(WrappedActuator):
    """Lets the object go behind the framework's back, then fails."""

    def force_delete(self, ctx: Any, obj: Any, cluster: Any, /) -> None:
        """See Actuator."""
        self.inner.force_delete(ctx, obj, cluster)
        kind, meta = obj.KIND, obj.metadata
        rest = [f for f in meta.finalizers if f != kind.finalizer]
        patch = {"metadata": {"finalizers": rest}}
        resource = Resource(kind.api_version, kind.plural)
        ctx.client.patch(resource, meta.name, meta.namespace, patch)
        raise RuntimeError("and then it failed")


class _MakesTwo(WrappedActuator):
    """Makes everything of an object a second time, under another name."""

    def reconcile(self, ctx: Any, obj: Any, cluster: Any, /) -> Any:
        """See Actuator."""
        result = self.inner.reconcile(ctx, obj, cluster)
        make_twin(self.inner, ctx, obj, cluster)
        return result


def make_twin(inner: Actuator[Any], ctx: Any, obj: Any, cluster: Any) -> None:
    """Makes everything of an object a second time, as if it belonged to another shoot."""
    raw = {k: v for k, v in encode(obj).items() if k != "status"}
    twin: Any = decode(type(obj), raw)
    name = f"{twin.metadata.namespace}-twin"
    twin.metadata = attrs.evolve(twin.metadata, namespace=name)
    other = decode(type(cluster), encode(cluster))
    shoot = {**other.shoot, "status": {"technicalID": name}}
    other.metadata = attrs.evolve(other.metadata, name=name)
    other.spec = attrs.evolve(other.spec, shoot=shoot)
    with suppress(Exception):  # its namespace does not even exist
        inner.reconcile(_Unsaved(ctx), twin, other)


class _Unsaved:
    """A context that saves nothing."""

    def __init__(self, ctx: Any) -> None:
        self._ctx = ctx

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ctx, name)

    def save(self, _obj: Object) -> None:
        """Forgets it."""


class _OneAtATime(WrappedActuator):
    """Keeps a lock for ever once a call has failed."""

    lock = threading.Lock()

    def reconcile(self, ctx: Any, obj: Any, cluster: Any, /) -> Any:
        """See Actuator."""
        while not self.lock.acquire(timeout=0.2):
            ctx.check()
        result = self.inner.reconcile(ctx, obj, cluster)
        self.lock.release()
        return result


class RewritingClient:
    """A client that sends other patches than it was asked to; None: none, but says it did."""

    def __init__(self, inner: Client, rewrite: Callable[[Raw], Raw | None]) -> None:
        self._inner = inner
        self._rewrite = rewrite

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def patch(
        self, resource: Resource, name: str, namespace: str, patch: Any, *, subresource: str = ""
    ) -> Raw:
        """See Client."""
        sent = patch
        if not isinstance(patch, dict):
            sent = [self._rewrite(op) for op in patch]
        if None in sent:
            return self._inner.get(resource, name, namespace)
        return self._inner.patch(resource, name, namespace, sent, subresource=subresource)


def _wiping_finalizers(op: Raw) -> Raw | None:
    """Takes everybody's finalizer off together with ours, as Go's library does on migrate."""
    if op["op"] == "replace" and op["path"] == FINALIZERS:
        return {"op": "remove", "path": FINALIZERS}
    return op


def _hiding_errors(op: Raw) -> Raw | None:
    """Does not write what went wrong."""
    value = op.get("value")
    error = op["path"] == "/status/lastError" and bool(value)
    return None if error or (op["path"] == "/status" and "lastError" in (value or {})) else op


BREAKS: dict[str, Break] = {
    "I1": Break(text="what is left outside is not recorded", actuator=_Silent),
    "I2": Break(
        text="foreign finalizers are wiped",
        client=partial(RewritingClient, rewrite=_wiping_finalizers),
    ),
    "I3": Break(text="objects go without an outcome", actuator=_TakesOwnFinalizer),
    "I4": Break(text="everything is made twice", actuator=_MakesTwo),
    "I5": Break(
        text="errors are not written into the status",
        client=partial(RewritingClient, rewrite=_hiding_errors),
    ),
    "I6": Break(text="one bad object blocks the others", actuator=_OneAtATime),
    "report": Break(text="the report leaves out a record", forgets_a_record=True),
}
