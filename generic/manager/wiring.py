"""Wiring: connects registrations to informers, controllers and reconcilers.

It builds the path of an event: informer → store → controller → reconciler → actuator. Actuators for
the same resource share its informer and store. Not here: starting the parts, and its order
(`running`).
"""

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from actuator.interface import Client, Clock, Resource, resource_of
from actuator.meta import ClusterNeed, Kind, parse_time
from generic.controller.controller import Controller
from generic.controller.mappers import Target
from generic.controller.metrics import Metrics, Terminating
from generic.controller.predicates import (
    Predicate,
    all_of,
    answer_predicate,
    default_predicate,
    filtered,
    first_sight,
    selection,
)
from generic.controller.watch import Watch
from generic.kube.client import HttpClient
from generic.kube.clusters import CLUSTERS, Clusters
from generic.kube.events import EventRecorder
from generic.kube.headers import ClusterHeader, Event, Header, Request, header
from generic.kube.informer import Informer
from generic.kube.problems import ProblemLog
from generic.kube.remote import Remote
from generic.kube.store import Store
from generic.kube.timers import Timers
from generic.kube.writer import Writer
from generic.manager.registry import CheckRegistration, Registration, Registry
from generic.reconciler.calls import AbandonedCalls
from generic.reconciler.deletion.watchdog import DeletionWatchdog
from generic.reconciler.reconciler import Dependencies, Reconciler
from generic.reconciler.reporter import Listener, Sinks

logger = logging.getLogger(__name__)


class Shared(Struct, frozen=True, kw_only=True):
    """The dependencies of a running manager that do not depend on its start."""

    connection: HttpClient
    """The client of the informers and of the lease."""
    intercept: Callable[[Client], Client]
    """Wraps the client of all other parts."""
    cluster_store: Store[ClusterHeader]
    metrics: Metrics
    clock: Clock
    stop: threading.Event
    listeners: Sequence[Listener] = ()


class Served(NamedTuple):
    """A controller for the objects of a resource, and the watchdog of its reconciler."""

    controller: Controller
    watchdog: DeletionWatchdog

    def on_event(self, event: Event[Header]) -> None:
        """Pass an event to the controller as a trigger, and to the watchdog."""
        if event.relisted and event.new is not None:  # any change may have been missed
            self.controller.on_event(first_sight(event.request, event.new))
        else:
            self.controller.on_event(event)
        header = event.old if event.new is None else event.new
        if not self.controller.started or header is None:
            return
        if self.controller.serves(event.request, header) and self.watchdog.observe(event):
            self.controller.queue.add(event.request, urgent=True)
        if event.new is None:  # also of an object that predicates no longer match
            self.watchdog.forget(event.request, header.uid)

    def observe_forced(self, request: Request) -> None:
        """Notify the watchdog that an object may be under forced deletion from now on."""
        if self.watchdog.observe_forced(request):
            self.controller.queue.add(request, urgent=True)

    def tick(self) -> None:
        """End overdue calls, even while workers are unresponsive."""
        over, abandoned, resumed = self.watchdog.tick()
        for request in resumed:
            self.controller.queue.add(request)
        for request in over:
            self.controller.enqueue_urgent(request)
        for request in abandoned:
            self.controller.replace_worker(request)

    def terminating(self, store: Store[Header]) -> Iterator[Terminating]:
        """Yield its objects under deletion, from the store; none before the start."""
        for request, seen in store.headers() if self.controller.started else ():
            since = seen.deletion_timestamp
            if since is not None and self.controller.serves(request, seen):
                state = self.watchdog.terminating(request, seen)
                moment = parse_time(since).timestamp()
                yield Terminating(request.namespace, request.name, state, moment)


class Watched(Struct):
    """One resource: its store, the controllers of its objects, and other listeners."""

    store: Store[Any]
    controllers: list[Served] = field(default_factory=list)
    listeners: list[Callable[[Event[Any]], None]] = field(default_factory=list)
    selections: list[Predicate] = field(default_factory=list)
    """They accept the objects whose bytes the store keeps."""

    def notify(self, event: Event[Any]) -> None:
        """Pass an event to all controllers and listeners."""
        for tell in (*(served.on_event for served in self.controllers), *self.listeners):
            try:
                tell(event)
            except Exception:  # for example an author's mapper; the others must still get the event
                fields = {"object": str(event.request)}
                logger.exception("event handler failed", extra={"fields": fields})


class Wiring:
    """The connected parts of a manager."""

    def __init__(
        self, shared: Shared, registry: Registry, client: Client, gate: Callable[[], None]
    ) -> None:
        """Connect all parts; `client` sends the requests of controllers, if `gate` returns."""
        self.abandoned = AbandonedCalls()
        self.timers = Timers("later", shared.clock)
        self.controllers: list[tuple[Controller, int]] = []
        """Each with its number of workers."""
        self.ours: dict[str, Watched] = {}
        self._s = shared
        self._options = registry.options
        self._client = client
        self._gate = gate
        self._problems = ProblemLog(self.timers)
        self._clusters = Clusters(shared.cluster_store, client)
        self._cluster_news = Watched(shared.cluster_store, listeners=[self._on_cluster])
        self._others: dict[str, Watched] = {}
        self._events = EventRecorder(client, "gardener-actuator", shared.clock)
        self._remote = Remote(client)
        added = [(one, self._add(one)) for one in registry.registrations]
        for checks in registry.health_checks:
            self._add_health_checks(checks)
        for registration, controller in added:  # now all of our own resources are known
            for watch in registration.watches:
                self._follow(watch, registration.kind, controller)
        self.informers: list[Informer] = list(self._make_informers(registry))
        """One informer per resource."""

    def _make_informers(self, registry: Registry) -> Iterator[Informer]:
        asked_for = any(kind.cluster is not ClusterNeed.NEVER for _, kind in registry.kinds)
        if asked_for or len(self._cluster_news.listeners) > 1:
            yield self._informer(self._s.connection, self._cluster_news)
        for watched in self.ours.values():
            yield self._informer(self._s.connection, watched)
        for watched in self._others.values():
            yield self._informer(self._s.connection.metadata_only(), watched)

    def _informer(self, client: HttpClient, watched: Watched) -> Informer:
        relisted, problems = self._s.metrics.relisted, self._problems
        return Informer(client, watched.store, watched.notify, relisted=relisted, problems=problems)

    def _watched(self, kind: Kind) -> Watched:
        """Return one of our own resources."""
        resource, selections = resource_of(kind), list[Predicate]()

        def keeps(request: Request, header: Header) -> bool:
            event = first_sight(request, header)
            return any(accepts(event) for accepts in selections)

        watched = Watched(Store(resource, header, keeps=keeps), selections=selections)
        return self.ours.setdefault(str(resource), watched)

    def _writer(self, watched: Watched) -> Writer:
        return Writer(self._client, watched.store, watched.notify)

    def _add(self, registration: Registration) -> Controller:
        shared, name, kind = self._s, registration.name, registration.kind
        watched = self._watched(kind)
        bound = shared.metrics.controller(name, kind.name, registration.workers)
        budget = self._options.force_delete_budget
        sinks = Sinks(
            events=self._events,
            metrics=bound,
            listeners=shared.listeners,
            all_outcomes=self._options.outcome_events == "all",
        )
        dependencies = Dependencies(
            client=self._client,
            writer=self._writer(watched),
            clusters=self._clusters,
            sinks=sinks,
            clock=shared.clock,
            abandoned=self.abandoned,
            timers=self.timers,
            gate=self._gate,
            remote=self._remote.shared_by(registration.workers),
            processing_after=1.0 if self._options.processing_status == "slow" else None,
            force_delete_budget=budget,
            escalations=registration.escalations,
        )
        reconciler = Reconciler(registration.actuator, dependencies)
        mode = self._options.ignore_operation_annotation
        default = default_predicate(kind, ignore_operation_annotation=mode)
        classes = self._options.extension_classes
        serves = registration.selection(classes)
        watched.selections.append(selection(registration.types, classes, registration.namespaces))
        limited = partial(filtered, kind, registration.predicates)
        controller = Controller(
            name,
            reconciler.reconcile,
            all_of(serves, limited(default)),
            watched.store,
            shared.clock,
            bound,
            answer=answer_predicate(kind),
            accepts=all_of(serves, limited(all_of())),
            serves=serves,
        )
        seed_objects = [str(group.resource) for group in registration.actuator.seed_objects]
        shared.metrics.controllers.describe(
            name, kind.name, registration.types, kind.finalizer, seed_objects, budget
        )
        served = Served(controller, reconciler.watchdog)
        shared.metrics.terminating.add(name, kind.name, partial(served.terminating, watched.store))
        watched.controllers.append(served)
        self.controllers.append((controller, registration.workers))
        return controller

    def _add_health_checks(self, added: CheckRegistration) -> None:
        """Add a controller besides those of the kind's actuators, whose writes trigger it."""
        from generic.library.healthchecks import HealthReconciler, wants_check

        shared, checks = self._s, added.checks
        watched = self._watched(checks.cls.KIND)
        selected = selection(checks.types, self._options.extension_classes)
        watched.selections.append(selected)
        # The outcome of a deletion is reported by the actuator's controller.
        writer = replace(self._writer(watched), forgets=False)
        reconciler = HealthReconciler(checks, writer, self._clusters, self._client, shared.clock)
        controller = Controller(
            added.name,
            reconciler.reconcile,
            all_of(selected, wants_check),
            watched.store,
            shared.clock,
            shared.metrics.controller(added.name, checks.cls.KIND.name, added.workers),
        )
        watched.listeners.append(lambda event: controller.on_event(replace(event, own=False)))
        self.controllers.append((controller, added.workers))

    def _follow(self, watch: Watch, kind: Kind, controller: Controller) -> None:
        """Trigger objects by the events of another resource."""
        target = Target(kind, self._watched(kind).store)

        def bring(event: Event[Any]) -> None:
            if controller.started:  # on its start, it enqueues its objects itself
                for request in watch.requests(event, target):
                    controller.look_at(request)

        self._followed(watch.resource).listeners.append(bring)

    def _followed(self, resource: Resource) -> Watched:
        """Return a resource that is already watched, or a new one that reads metadata only."""
        if resource == self._s.cluster_store.resource:
            return self._cluster_news
        ours = self.ours.get(str(resource))
        if ours is not None:
            return ours
        watched = Watched(Store(resource, header, keeps=lambda _request, _header: False))
        return self._others.setdefault(str(resource), watched)

    def _on_cluster(self, event: Event[ClusterHeader]) -> None:
        """Enqueue the objects of a namespace when its Cluster appears or its verdict changes.

        A changed Cluster also requeues objects reconciled against its previous version.
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
        """Enqueue an object urgently if it has work, and reset its backoff."""
        entry = watched.store.get(request)
        if entry is None:
            return
        for served in watched.controllers:
            controller = served.controller
            if controller.started and controller.wants(request, entry.header):
                controller.queue.add(request, urgent=True)
                served.observe_forced(request)

    def _repeat(self, watched: Watched, request: Request, cluster_version: int) -> None:
        """Requeue an object whose reconcile began with an older version of the Cluster.

        Watches are not ordered among each other: a request that gardenlet made after writing the
        Cluster may have been handled with the previous version.
        """
        for controller, watchdog in watched.controllers:
            if watchdog.began_after(request, cluster_version):
                controller.look_at(request)

    def unserved(self, name: str) -> Iterator[str]:
        """Yield the type of each object that neither we nor others handle; `name`: plural.group."""
        if watched := self.ours.get(name):
            for request, seen in watched.store.headers():
                served = (one.serves(request, seen) for one, _ in watched.controllers)
                if seen.type and seen.is_untouched and not any(served):
                    yield seen.type

    def is_synced(self, controller: Controller) -> bool:
        """Whether the Clusters and the controller's objects are synced, or their CRD is absent.

        Objects that appear later, with their CRD, are events like any other.
        """
        needed = {str(CLUSTERS), controller.watches}
        return all(one.settled.is_set() for one in self.informers if one.name in needed)

    def begin(self, controller: Controller) -> None:
        """Start the budgets of force deletions that began before this controller."""
        for watched in self.ours.values():
            for served in watched.controllers:
                if served.controller is not controller:
                    continue
                for request, seen in watched.store.headers():
                    if seen.deletion_timestamp and controller.serves(request, seen):
                        served.observe_forced(request)

    def tick(self) -> None:
        """Run the periodic work of all controllers, even while workers are unresponsive."""
        for watched in self.ours.values():
            for served in watched.controllers:
                served.tick()
