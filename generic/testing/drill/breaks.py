"""`--break RULE`: ways to violate each invariant, to prove that its check can fail.

Wrappers around the client or an actuator, used only by the drill; the product has no branch for
them. Each simulates a bug of an extension or of the framework.
"""

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Any

import attrs

from actuator.codec import decode, encode
from actuator.errors import ActuatorError
from actuator.interface import (
    Actuator,
    Client,
    ExternalResource,
    Resource,
    Result,
    WrappedActuator,
    kind_of,
    resource_of,
)
from actuator.meta import Object, Raw
from generic.kube.delegating import DelegatingClient

_FINALIZERS = "/metadata/finalizers"


@attrs.frozen(kw_only=True)
class Break:
    """The wrappers of one bug, and its description."""

    text: str = ""
    client: Callable[[Client], Client] = lambda client: client
    actuator: Callable[[Actuator[Any]], Actuator[Any]] = lambda actuator: actuator
    forgets_a_record: bool = False
    exempts_no_deletion: bool = False


class _Silent(WrappedActuator):
    """Reports no external resources."""

    def external_resources(self, obj: Any, /) -> Iterable[ExternalResource]:
        return ()


class _TakesOwnFinalizer(WrappedActuator):
    """Removes the finalizer itself, without the framework, then fails."""

    def force_delete(self, ctx: Any, obj: Any, cluster: Any, /) -> None:
        self.inner.force_delete(ctx, obj, cluster)
        kind = kind_of(self)
        meta = obj.metadata
        rest = [f for f in meta.finalizers if f != kind.finalizer]
        patch = {"metadata": {"finalizers": rest}}
        ctx.client.patch(resource_of(kind), meta.name, meta.namespace, patch)
        raise RuntimeError("and then it failed")


class _MakesTwo(WrappedActuator):
    """Creates all external resources of an object twice, under another name."""

    def reconcile(self, ctx: Any, obj: Any, cluster: Any, /) -> Any:
        result = self.inner.reconcile(ctx, obj, cluster)
        _make_twin(self.inner, ctx, obj, cluster)
        return result


def _make_twin(inner: Actuator[Any], ctx: Any, obj: Any, cluster: Any) -> None:
    """Create all external resources of an object again, as if for another shoot."""
    raw = {k: v for k, v in encode(obj).items() if k != "status"}
    twin: Any = decode(type(obj), raw)
    name = f"{twin.metadata.namespace}-twin"
    twin.metadata = attrs.evolve(twin.metadata, namespace=name)
    other = decode(type(cluster), encode(cluster))
    shoot = {**other.shoot, "status": {"technicalID": name}}
    other.metadata = attrs.evolve(other.metadata, name=name)
    other.spec = attrs.evolve(other.spec, shoot=shoot)
    with suppress(Exception):  # its namespace does not exist
        inner.reconcile(_Unsaved(ctx), twin, other)


class _Unsaved:
    """A context whose `save` does nothing."""

    def __init__(self, ctx: Any) -> None:
        self._ctx = ctx

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ctx, name)

    def save(self, _obj: Object) -> None:
        """Do nothing."""


class _WaitsForTheInvalid(WrappedActuator):
    """Waits for a lock that an invalid object keeps, so a reconciliation never begins."""

    def reconcile(self, ctx: Any, obj: Any, cluster: Any, /) -> Any:
        while True:
            ctx.check()
            time.sleep(0.2)


class _RewritingClient(DelegatingClient):
    """A client that rewrites patches; `rewrite` returns None to skip one and report success."""

    def __init__(self, inner: Client, rewrite: Callable[[Raw], Raw | None]) -> None:
        super().__init__(inner)
        self._rewrite = rewrite

    def patch(
        self, resource: Resource, name: str, namespace: str, patch: Any, *, subresource: str = ""
    ) -> Raw:
        sent = patch
        if not isinstance(patch, dict):
            sent = [self._rewrite(op) for op in patch]
        if None in sent:
            return self._inner.get(resource, name, namespace)
        return self._inner.patch(resource, name, namespace, sent, subresource=subresource)


def _wiping_finalizers(op: Raw) -> Raw | None:
    """Remove all finalizers together with ours, as Gardener's Go library does on migrate."""
    if op["op"] == "replace" and op["path"] == _FINALIZERS:
        return {"op": "remove", "path": _FINALIZERS}
    return op


def _hiding_errors(op: Raw) -> Raw | None:
    """Do not write errors."""
    return None if _written_error(op) else op


def _written_error(op: Raw) -> Raw:
    """Return the lastError that a step of a patch writes, or an empty one."""
    value = op.get("value") or {}
    if op["path"] == "/status":
        value = value.get("lastError") or {}
    return value if op["path"] in ("/status", "/status/lastError") else {}


BREAKS: dict[str, Break] = {
    "I1": Break(text="the actuators report no external resources", actuator=_Silent),
    "I2": Break(
        text="the manager removes all finalizers together with its own",
        client=partial(_RewritingClient, rewrite=_wiping_finalizers),
    ),
    "I3": Break(
        text="each force_delete removes the manager's finalizer, then fails",
        actuator=_TakesOwnFinalizer,
    ),
    "I4": Break(text="the actuators create each external resource twice", actuator=_MakesTwo),
    "I5": Break(
        text="the manager writes no errors",
        client=partial(_RewritingClient, rewrite=_hiding_errors),
    ),
    "I6": Break(
        text="an invalid object keeps a lock that all reconciliations need",
        actuator=_WaitsForTheInvalid,
    ),
    "webhooks": Break(text="the webhooks do not exempt deletions", exempts_no_deletion=True),
    "report": Break(text="the report omits a record", forgets_a_record=True),
}


class _NeverRestores(WrappedActuator):
    """Fails to restore."""

    def restore(self, ctx: Any, obj: Any, cluster: Any, /) -> Result | None:
        raise ActuatorError("cannot restore")


class _MakesTwoOnRestore(WrappedActuator):
    """Creates all external resources again in the destination."""

    def restore(self, ctx: Any, obj: Any, cluster: Any, /) -> Result | None:
        result = self.inner.restore(ctx, obj, cluster)
        _make_twin(self.inner, ctx, obj, cluster)
        return result


class _DeletesOnMigrate(WrappedActuator):
    """Deletes on migration."""

    def migrate(self, ctx: Any, obj: Any, cluster: Any, /) -> None:
        self.inner.migrate(ctx, obj, cluster)
        self.inner.delete(ctx, obj, cluster)


class _ForgetsState(WrappedActuator):
    """Restores without the state."""

    def restore(self, ctx: Any, obj: Any, cluster: Any, /) -> Result | None:
        obj.status.state = None
        return self.inner.restore(ctx, obj, cluster)


class _DeletesNothing(WrappedActuator):
    """Reports a successful deletion without deleting."""

    def delete(self, ctx: Any, obj: Any, cluster: Any, /) -> None:
        """See Actuator."""


def _keeping_finalizers(op: Raw) -> Raw | None:
    """Never remove a finalizer."""
    return None if op["op"] in ("replace", "remove") and op["path"] == _FINALIZERS else op


MIGRATION_BREAKS: dict[str, Break] = {
    "M1": Break(text="the actuators fail to restore", actuator=_NeverRestores),
    "M2": Break(
        text="the actuators create each external resource again when they restore",
        actuator=_MakesTwoOnRestore,
    ),
    "M3": Break(text="the actuators delete when they migrate", actuator=_DeletesOnMigrate),
    "M4": Break(text="the actuators restore without the state", actuator=_ForgetsState),
    "M5": Break(
        text="the managers never remove a finalizer",
        client=partial(_RewritingClient, rewrite=_keeping_finalizers),
    ),
    "M6": Break(text="the actuators report deletions without deleting", actuator=_DeletesNothing),
}
