"""Wiring: connects registrations to informers, controllers and reconcilers.

It builds the path of an event: informer → store → controller → reconciler → actuator. Actuators for
the same resource share its informer and store. Not here: what happens to an event at run time
(`routing`), starting the parts, and its order (`running`).
"""

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from actuator.interface import Client, Clock, Resource
from actuator.meta import ClusterNeed, Kind
from generic.controller import predicates
from generic.controller.controller import Controller
from generic.controller.mappers import KnownObjects
from generic.controller.watch import Watch
from generic.kube.client import HttpClient
from generic.kube.clusters import CLUSTERS, Clusters
from generic.kube.events import EventRecorder
from generic.kube.headers import ClusterHeader, Event, header
from generic.kube.informer import Informer
from generic.kube.problems import ProblemLog
from generic.kube.remote import Remote
from generic.kube.seedidentity import SeedIdentity
from generic.kube.store import Store
from generic.kube.timers import Timers
from generic.kube.writer import Writer
from generic.manager.registry import CheckRegistration, Registration, Registry
from generic.manager.routing import Routes, Served, Watched
from generic.reconciler.calls import AbandonedCalls
from generic.reconciler.reconciler import Dependencies, Reconciler
from generic.reconciler.reporter import Listener, Sinks
from generic.serving.metrics import Metrics

logger = logging.getLogger(__name__)

_IDENTITY_SECONDS = 2.0
"""Seconds for the request of the seed's identity."""


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
        self._s = shared
        self._options = registry.options
        self._client = client
        self._gate = gate
        self._problems = ProblemLog(self.timers)
        self._clusters = Clusters(shared.cluster_store, client)
        self.routes = Routes(self._clusters)
        on_cluster = self.routes.on_cluster
        self._cluster_news = Watched(shared.cluster_store, listeners=[on_cluster])
        self._others: dict[str, Watched] = {}
        self._events = EventRecorder(client, "gardener-actuator", shared.clock)
        self._remote = Remote(client)
        self.seed_identity = SeedIdentity(shared.connection.within(_IDENTITY_SECONDS), shared.clock)
        added = [(registration, self._add(registration)) for registration in registry.registrations]
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
        for watched in self.routes.ours.values():
            yield self._informer(self._s.connection, watched)
        for watched in self._others.values():
            yield self._informer(self._s.connection.metadata_only(), watched)

    def _informer(self, client: HttpClient, watched: Watched) -> Informer:
        relisted = self._s.metrics.relisted
        problems = self._problems
        return Informer(client, watched.store, watched.notify, relisted=relisted, problems=problems)

    def _writer(self, watched: Watched) -> Writer:
        return Writer(self._client, watched.store, watched.notify)

    def _add(self, registration: Registration) -> Controller:
        shared = self._s
        name = registration.name
        kind = registration.kind
        watched = self.routes.of(kind)
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
            seed_identity=self.seed_identity.read,
            processing_after=1.0 if self._options.processing_status == "slow" else None,
            force_delete_budget=budget,
            give_up_after=registration.give_up_after,
        )
        reconciler = Reconciler(registration.actuator, dependencies)
        mode = self._options.ignore_operation_annotation
        default = predicates.default_predicate(kind, ignore_operation_annotation=mode)
        classes = self._options.extension_classes
        serves = registration.selection(classes)
        watched.selections.append(
            predicates.selection(registration.types, classes, registration.namespaces)
        )
        limited = partial(predicates.filtered, kind, registration.predicates)
        controller = Controller(
            name,
            reconciler.reconcile,
            predicates.all_of(serves, limited(default)),
            watched.store,
            shared.clock,
            bound,
            answer=predicates.answer_predicate(kind),
            accepts=predicates.all_of(serves, limited(predicates.all_of())),
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
        from generic.library.healthchecks.reconciler import HealthReconciler, wants_check

        shared = self._s
        checks = added.checks
        watched = self.routes.of(checks.cls.KIND)
        selected = predicates.selection(checks.types, self._options.extension_classes)
        watched.selections.append(selected)
        # The outcome of a deletion is reported by the actuator's controller.
        writer = replace(self._writer(watched), forgets=False)
        reconciler = HealthReconciler(checks, writer, self._clusters, self._client, shared.clock)
        controller = Controller(
            added.name,
            reconciler.reconcile,
            predicates.all_of(selected, wants_check),
            watched.store,
            shared.clock,
            shared.metrics.controller(added.name, checks.cls.KIND.name, added.workers),
        )
        watched.listeners.append(lambda event: controller.on_event(replace(event, own=False)))
        self.controllers.append((controller, added.workers))

    def _follow(self, watch: Watch, kind: Kind, controller: Controller) -> None:
        """Trigger objects by the events of another resource."""
        known = KnownObjects(kind, self.routes.of(kind).store)

        def bring(event: Event[Any]) -> None:
            if controller.started:  # on its start, it enqueues its objects itself
                for request in watch.requests(event, known):
                    controller.look_at(request)

        self._followed(watch.resource).listeners.append(bring)

    def _followed(self, resource: Resource) -> Watched:
        """Return a resource that is already watched, or a new one that reads metadata only."""
        if resource == self._s.cluster_store.resource:
            return self._cluster_news
        ours = self.routes.ours.get(str(resource))
        if ours is not None:
            return ours
        watched = Watched(Store(resource, header, keeps=lambda _request, _header: False))
        return self._others.setdefault(str(resource), watched)

    def is_synced(self, controller: Controller) -> bool:
        """Whether the Clusters and the controller's objects are synced, or their CRD is absent.

        Objects that appear later, with their CRD, are events like any other.
        """
        needed = {str(CLUSTERS), controller.watches}
        return all(
            informer.settled.is_set() for informer in self.informers if informer.name in needed
        )
