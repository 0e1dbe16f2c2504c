"""A life with a planted bug for each invariant, and the checks that have to find it.

`rehearse` takes two objects through a life in which one cannot be deleted until it is forced;
`CHECKS` returns the violations of each invariant in the observations. A bug is a wrapper around the
actuator or around the client, as an extension or a framework could have it; the product has no
branch for any of them. The drill plants its own with `--break`, the explorer those that only a
crash shows (faulty_rehearsal.py). Here the same six are found in seconds, the last of the list too,
which neither has: a finalizer that is removed before the cleanup.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import attrs

from actuator import Actuator, ActuatorError, ExternalResource
from actuator.interface import WrappedActuator
from actuator.v1alpha1 import Infrastructure
from generic.kube.delegating import DelegatingClient
from generic.reconciler.orphans import ORPHANS, SHOOT_LABEL
from generic.testing.drill.breaks import BREAKS
from tests.support.cluster.harness import FINALIZER, INFRASTRUCTURES, PATIENCE, Seed, eventually
from tests.support.objects.builders import cluster, infrastructure

__all__ = ["BUGS", "CHECKS", "Bug", "Recorder", "Seen", "Things", "rehearse"]

FOREIGN = "example.org/foreign"
BAD = "bad"
GOOD = "good"
_SHORT = 4.0
"""Seconds of patience with a planted bug, for results that it may prevent."""


class Things(Actuator[Infrastructure]):
    """Makes one thing outside for each object; that of the bad one cannot be deleted."""

    def __init__(self) -> None:
        self.outside: list[str] = []

    def reconcile(self, ctx: Any, obj: Any, cluster: Any) -> None:
        """Makes it, once."""
        if obj.metadata.uid not in self.outside:
            self.outside.append(obj.metadata.uid)

    def delete(self, ctx: Any, obj: Any, cluster: Any) -> None:
        """Removes it, if the outside lets it."""
        if obj.metadata.name == BAD:
            raise ActuatorError("the cloud says no")
        self.outside.remove(obj.metadata.uid)

    def force_delete(self, ctx: Any, obj: Any, cluster: Any) -> None:
        """Leaves it."""

    def external_resources(self, obj: Any) -> Iterable[ExternalResource]:
        """It may be there."""
        return [ExternalResource(type="thing", id=obj.metadata.uid)]


@attrs.define
class Seen:
    """The observations of a life."""

    things: Things
    released: list[str] = attrs.field(factory=list)
    """External resources not recorded when our finalizer was removed: by uid."""
    foreign_lost: list[str] = attrs.field(factory=list)
    outcomes: int = 0
    gone: int = 0
    made: list[str] = attrs.field(factory=list)
    has_reason: bool = False
    good_in_time: bool = False


class Recorder(DelegatingClient):
    """A client that compares resources and records when our finalizer is removed."""

    def __init__(self, client: Any, seed: Seed, seen: Seen) -> None:
        super().__init__(client)
        self._seed = seed
        self._seen = seen

    def patch(
        self, resource: Any, name: str, namespace: str, patch: Any, *, subresource: str = ""
    ) -> Any:
        """See Client."""
        before = self._finalizers(name) if resource == INFRASTRUCTURES else ()
        answer = self._inner.patch(resource, name, namespace, patch, subresource=subresource)
        after = answer["metadata"].get("finalizers") or []
        if FINALIZER in before and FINALIZER not in after:
            self._look(answer["metadata"]["uid"], after)
        return answer

    def _finalizers(self, name: str) -> list[str]:
        return self._seed.get(name)["metadata"].get("finalizers") or []

    def _look(self, uid: str, after: list[str]) -> None:
        if uid in self._seen.things.outside and uid not in _recorded(self._seed):
            self._seen.released.append(uid)
        if FOREIGN not in after:
            self._seen.foreign_lost.append(uid)


def _recorded(seed: Seed) -> set[str]:
    found = seed.client.list(ORPHANS, label_selector=f"{SHOOT_LABEL}={seed.namespace}")
    return {obj["spec"].get("id", "") for obj in found}


@attrs.frozen(kw_only=True)
class Bug:
    """The wrapped parts, and the invariant that this breaks."""

    rule: str
    actuator: Callable[[Actuator[Any]], Actuator[Any]] = lambda actuator: actuator
    client: Callable[[Any], Any] = lambda client: client


class _ReleasesFirst(WrappedActuator):
    """Lets the object go before it cleans up."""

    def delete(self, ctx: Any, obj: Any, cluster: Any, /) -> None:
        """See Actuator."""
        meta = obj.metadata
        rest = [finalizer for finalizer in meta.finalizers if finalizer != FINALIZER]
        patch = {"metadata": {"finalizers": rest}}
        ctx.client.patch(INFRASTRUCTURES, meta.name, meta.namespace, patch)
        self.inner.delete(ctx, obj, cluster)


class _CreatesTwice(WrappedActuator):
    """Makes a thing before it looks whether there is one."""

    def reconcile(self, ctx: Any, obj: Any, cluster: Any, /) -> Any:
        """See Actuator."""
        self.inner.outside.append(obj.metadata.uid)  # type: ignore[attr-defined]
        self.inner.outside.append(obj.metadata.uid)  # type: ignore[attr-defined]


class _HoldsALock(WrappedActuator):
    """Blocks all other calls for as long as one deletion does not succeed."""

    def __init__(self, inner: Actuator[Any]) -> None:
        super().__init__(inner)
        self._lock = threading.Lock()

    def delete(self, ctx: Any, obj: Any, cluster: Any, /) -> None:
        """See Actuator."""
        while not self._lock.acquire(timeout=0.05):
            ctx.check()
        self.inner.delete(ctx, obj, cluster)
        self._lock.release()


def _drilled(rule: str) -> Bug:
    """The drill's own bug against the rule, where it fits any actuator."""
    broken = BREAKS[rule]
    return Bug(rule=rule, actuator=broken.actuator, client=broken.client)


BUGS = {
    "finalizer removed before cleanup": Bug(rule="I1", actuator=_ReleasesFirst),
    "orphan not recorded": _drilled("I1"),
    "foreign finalizer dropped": _drilled("I2"),
    "no outcome": _drilled("I3"),
    "double create": Bug(rule="I4", actuator=_CreatesTwice),
    "silent block": _drilled("I5"),
    "one object blocks the others": Bug(rule="I6", actuator=_HoldsALock),
}

CHECKS: dict[str, Callable[[Seen], bool]] = {
    "I1": lambda seen: not seen.released,
    "I2": lambda seen: not seen.foreign_lost,
    "I3": lambda seen: seen.outcomes == seen.gone,
    "I4": lambda seen: len(seen.made) == len(set(seen.made)),
    "I5": lambda seen: seen.has_reason,
    "I6": lambda seen: seen.good_in_time,
}
"""For each invariant, whether it held."""


def rehearse(seed: Seed, start: Callable[..., Any], bug: Bug | None) -> Seen:
    """Two objects, ready, deleted, one of them stuck until forced; return the observations."""
    patience = PATIENCE if bug is None else _SHORT
    things = Things()
    seen = Seen(things)
    bug = bug or Bug(rule="")
    manager = start(
        bug.actuator(things), intercept=lambda client: Recorder(bug.client(client), seed, seen)
    )
    for name in (BAD, GOOD):
        seed.create(infrastructure(seed.namespace, seed.namespace, name, finalizers=[FOREIGN]))
    for name in (BAD, GOOD):
        eventually(lambda name=name: seed.is_ready(name))
    seen.made = list(things.outside)
    seed.delete(BAD)
    seen.has_reason = _comes(lambda: seed.status(BAD).get("lastError"), patience)
    seed.delete(GOOD)
    seen.good_in_time = _comes(partial(_is_released, seed, GOOD), patience)
    seed.update_cluster(cluster(seed.namespace, force="true"))
    for name in (BAD, GOOD):
        _comes(partial(_is_released, seed, name), PATIENCE)  # whichever bug there is
    seen.gone = sum(_is_released(seed, name) for name in (BAD, GOOD))
    _comes(lambda: _final(manager) == seen.gone, patience)
    seen.outcomes = _final(manager)
    for name in (BAD, GOOD):
        if not seed.is_gone(name):
            seed.patch({"metadata": {"finalizers": None}}, name)
    return seen


def _is_released(seed: Seed, name: str) -> bool:
    """Whether our finalizer is removed."""
    if seed.is_gone(name):
        return True
    return FINALIZER not in (seed.get(name)["metadata"].get("finalizers") or [])


def _comes(check: Callable[[], Any], seconds: float) -> bool:
    try:
        eventually(check, seconds)
    except AssertionError:
        return False
    return True


def _final(manager: Any) -> int:
    counted = manager.metrics.total("actuator_deletions_total", "outcome")
    return sum(counted.get(item, 0) for item in ("deleted", "force_deleted", "orphaned"))
