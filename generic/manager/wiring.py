"""Wiring: what was added, made into informers, controllers and reconcilers that know each other.

An event's way is set up here: informer → store → controller → reconciler → actuator. Several
actuators for one resource share its informer and store. Nothing in here is started; that, and
in which order, is `manager`'s business.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import attrs

from actuator.interface import Client, Clock, Resource, resource_of
from actuator.meta import ClusterNeed, Kind, parse_time
from generic.controller.controller import Controller
from generic.controller.mappers import Target
from generic.controller.metrics import Metrics, Terminating
from generic.controller.predicates import (
    Predicate,
    all_of,
    contained,
    default_predicate,
    has_class,
    has_type,
)
from generic.controller.watch import Watch
from generic.kube.client import HttpClient
from generic.kube.clusters import CLUSTERS, Clusters
from generic.kube.events import EventRecorder
from generic.kube.headers import ClusterHeader, Event, Header, Request, header
from generic.kube.informer import Informer
from generic.kube.store import Store
from generic.kube.timers import Timers
from generic.kube.writer import Writer
from generic.manager.options import Options
from generic.manager.registry import CheckRegistration, Registration, Registry
from generic.reconciler.calls import AbandonedCalls
from generic.reconciler.deletion.watchdog import DeletionWatchdog
from generic.reconciler.reconciler import Dependencies, Reconciler
from generic.reconciler.reporter import Listener, Sinks

logger = logging.getLogger(__name__)


@attrs.frozen(kw_only=True)
class Shared:
    """What all controllers of a manager have in common."""

    connection: HttpClient
    """For informers."""
    client: Client
    """For everything else."""
    cluster_store: Store[ClusterHeader]
    options: Options
    metrics: Metrics
    clock: Clock
    abandoned: AbandonedCalls
    timers: Timers
    gate: Callable[[], None]
    listeners: Sequence[Listener] = ()


class Served(NamedTuple):
    """A controller for the objects of a resource, and the watchdog of its reconciler."""

    controller: Controller
    watchdog: DeletionWatchdog

    def on_event(self, event: Event[Header]) -> None:
        """To the controller as a trigger, to the watchdog for what it means beyond that."""
        self.controller.on_event(event)
        header = event.old if event.new is None else event.new
        if not self.controller.started or header is None:
            return
        if self.controller.serves(event.request, header) and self.watchdog.observe(event):
            self.controller.queue.add(event.request, urgent=True)

    def observe_forced(self, request: Request) -> None:
        """Tell the watchdog that an object may be under forced deletion from now on."""
        if self.watchdog.observe_forced(request):
            self.controller.queue.add(request, urgent=True)

    def tick(self) -> None:
        """End what is overdue, whatever hangs."""
        over, abandoned = self.watchdog.tick()
        for request in over:
            self.controller.enqueue_urgent(request)
        for request in abandoned:
            self.controller.replace_worker(request)

    def terminating(self, store: Store[Header]) -> Iterator[Terminating]:
        """What of it is under deletion, as the store has it; nothing before the start."""
        for request, seen in store.headers() if self.controller.started else ():
            since = seen.deletion_timestamp
            if since is not None and self.controller.serves(request, seen):
                state = self.watchdog.terminating(request, seen)
                moment = parse_time(since).timestamp()
                yield Terminating(request.namespace, request.name, state, moment)


@attrs.define
class Watched:
    """One resource: its store, the controllers of its objects, and who else hears of them."""

    store: Store[Any]
    controllers: list[Served] = attrs.field(factory=list)
    listeners: list[Callable[[Event[Any]], None]] = attrs.field(factory=list)

    def notify(self, event: Event[Any]) -> None:
        """Hands an event to all of them."""
        for tell in (*(served.on_event for served in self.controllers), *self.listeners):
            try:
                tell(event)
            except Exception:  # a mapper of an author's, say; the others have to hear of it
                logger.exception("an event could not be handled", extra=_about(event))


def _about(event: Event[Any]) -> dict[str, object]:
    return {"fields": {"object": str(event.request)}}


class Wiring:
    """The parts of a manager, connected."""

    def __init__(self, shared: Shared, registry: Registry) -> None:
        self.controllers: list[tuple[Controller, int]] = []
        """Each with its number of workers."""
        self.ours: dict[str, Watched] = {}
        self._s = shared
        self._clusters = Clusters(shared.cluster_store, shared.client)
        self._cluster_news = Watched(shared.cluster_store, listeners=[self._on_cluster])
        self._others: dict[str, Watched] = {}
        self._events = EventRecorder(shared.client, "gardener-actuator", shared.clock)
        added = [(one, self._add(one)) for one in registry.registrations]
        for checks in registry.health_checks:
            self._add_health_checks(checks)
        for registration, controller in added:  # now all of our own resources are known
            for watch in registration.watches:
                self._follow(watch, registration.kind, controller)
        self.informers: list[Informer] = list(self._make_informers(registry))
        """One for each resource."""

    def _make_informers(self, registry: Registry) -> Iterator[Informer]:
        asked_for = any(kind.cluster is not ClusterNeed.NEVER for _, kind in registry.kinds)
        if asked_for or len(self._cluster_news.listeners) > 1:
            yield self._informer(self._s.connection, self._cluster_news)
        for watched in self.ours.values():
            yield self._informer(self._s.connection, watched)
        for watched in self._others.values():
            yield self._informer(self._s.connection.metadata_only(), watched)

    def _informer(self, client: HttpClient, watched: Watched) -> Informer:
        return Informer(client, watched.store, watched.notify, metrics=self._s.metrics)

    def _watched(self, kind: Kind) -> Watched:
        """One of our own resources."""
        resource = resource_of(kind)
        return self.ours.setdefault(str(resource), Watched(Store(resource, header)))

    def _writer(self, watched: Watched) -> Writer:
        return Writer(self._s.client, watched.store, watched.notify)

    def _add(self, registration: Registration) -> Controller:
        shared, watched = self._s, self._watched(registration.kind)
        bound = shared.metrics.controller(
            registration.name, registration.kind.name, registration.workers
        )
        slow = shared.options.processing_status == "slow"
        sinks = Sinks(
            events=self._events,
            metrics=bound,
            listeners=shared.listeners,
            all_outcomes=shared.options.outcome_events == "all",
        )
        dependencies = Dependencies(
            client=shared.client,
            writer=self._writer(watched),
            clusters=self._clusters,
            sinks=sinks,
            clock=shared.clock,
            abandoned=shared.abandoned,
            timers=shared.timers,
            gate=shared.gate,
            processing_after=1.0 if slow else None,
            force_delete_budget=shared.options.force_delete_budget,
            escalations=registration.escalations,
        )
        reconciler = Reconciler(registration.actuator, dependencies)
        own = map(contained, registration.predicates)
        serves = all_of(self._is_ours(registration.types), *own)
        controller = Controller(
            registration.name,
            reconciler.reconcile,
            all_of(serves, self._trigger(registration.kind)),
            watched.store,
            shared.clock,
            bound,
            serves=serves,
        )
        shared.metrics.controllers.describe(
            registration.name,
            registration.kind.name,
            registration.types,
            registration.kind.finalizer,
            (str(group.resource) for group in registration.actuator.seed_objects),
            shared.options.force_delete_budget,
        )
        served = Served(controller, reconciler.watchdog)
        shared.metrics.terminating.add(
            registration.name, registration.kind.name, partial(served.terminating, watched.store)
        )
        watched.controllers.append(served)
        self.controllers.append((controller, registration.workers))
        return controller

    def _add_health_checks(self, added: CheckRegistration) -> None:
        """A controller beside those of the kind's actuators; to it their writes are news."""
        from generic.library.healthchecks import HealthReconciler, wants_check

        shared, checks = self._s, added.checks
        watched = self._watched(checks.cls.KIND)
        # How an object ended is for its actuator's controller to find out.
        writer = attrs.evolve(self._writer(watched), forgets=False)
        reconciler = HealthReconciler(checks, writer, self._clusters, shared.client, shared.clock)
        controller = Controller(
            added.name,
            reconciler.reconcile,
            all_of(self._is_ours(checks.types), wants_check),
            watched.store,
            shared.clock,
            shared.metrics.controller(added.name, checks.cls.KIND.name, added.workers),
        )
        watched.listeners.append(lambda event: controller.on_event(attrs.evolve(event, own=False)))
        self.controllers.append((controller, added.workers))

    def _is_ours(self, types: tuple[str, ...]) -> Predicate:
        if not types:
            return all_of()
        return all_of(has_type(*types), has_class(*self._s.options.extension_classes))

    def _trigger(self, kind: Kind) -> Predicate:
        mode = self._s.options.ignore_operation_annotation
        return default_predicate(kind, ignore_operation_annotation=mode)

    def _follow(self, watch: Watch, kind: Kind, controller: Controller) -> None:
        """What happens to something else is brought to the objects that it is about."""
        target = Target(kind, self._watched(kind).store)

        def bring(event: Event[Any]) -> None:
            if controller.started:  # as it starts, it looks at its objects itself
                for request in watch.requests(event, target):
                    controller.look_at(request)

        self._followed(watch.resource).listeners.append(bring)

    def _followed(self, resource: Resource) -> Watched:
        """A resource that is watched already, or one of which only metadata will be read."""
        if resource == self._s.cluster_store.resource:
            return self._cluster_news
        ours = self.ours.get(str(resource))
        if ours is not None:
            return ours
        watched = Watched(Store(resource, header, headers_only=True))
        return self._others.setdefault(str(resource), watched)

    def _on_cluster(self, event: Event[ClusterHeader]) -> None:
        """A Cluster that appears, or says something new, is news for all of its namespace.

        One that we are told of late is news for what may have missed it.
        """
        is_news = self._clusters.on_event(event)
        changed = None if event.old is None else event.new
        for watched in self.ours.values():
            for request in watched.store.requests(event.request.name):
                if is_news:
                    self._renew(watched, request)
                if changed is not None:
                    self._repeat(watched, request, changed.resource_version)

    def _renew(self, watched: Watched, request: Request) -> None:
        """Puts an object that has something to do ahead of the queue, its backoff forgotten."""
        entry = watched.store.get(request)
        if entry is None:
            return
        for served in watched.controllers:
            controller = served.controller
            if controller.started and controller.wants(request, entry.header):
                controller.queue.add(request, urgent=True)
                served.observe_forced(request)

    def _repeat(self, watched: Watched, request: Request, cluster_version: int) -> None:
        """Looks again at what was begun without a Cluster that had been written before.

        Watches have no order among each other: what gardenlet asked for after it wrote the Cluster
        may have been done with the one of before.
        """
        for controller, watchdog in watched.controllers:
            if watchdog.began_after(request, cluster_version):
                controller.look_at(request)

    def is_synced(self, controller: Controller) -> bool:
        """Whether the Clusters and the objects of the controller are known, or their CRD is absent.

        Objects that appear with their CRD later are events like any other.
        """
        needed = {str(CLUSTERS), controller.watches}
        return all(one.settled for one in self.informers if one.name in needed)

    def begin(self, controller: Controller) -> None:
        """Forced deletions that were there before it have their budget from now on."""
        for watched in self.ours.values():
            for served in watched.controllers:
                if served.controller is not controller:
                    continue
                for request, seen in watched.store.headers():
                    if seen.deletion_timestamp and controller.serves(request, seen):
                        served.observe_forced(request)

    def tick(self) -> None:
        """What has to happen in time, whatever hangs."""
        for watched in self.ours.values():
            for served in watched.controllers:
                served.tick()
