"""Manager: puts the pieces together and keeps them running until it is told to stop.

An event's way is set up here: informer → store → controller → reconciler → actuator. Nothing is
decided here but the order of starting and stopping:
metrics and health → client → informers → leadership → workers, and back again.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from types import FrameType
from typing import Any, NoReturn

import attrs

from actuator.interface import Actuator, Client, Clock, object_class, resource_of
from actuator.meta import ClusterNeed, Kind, Object
from generic import logs, options
from generic.calls import Aside, Calls
from generic.client import HttpClient, connect
from generic.clock import SystemClock
from generic.clusters import CLUSTERS, Clusters
from generic.controller import Controller
from generic.events import EventRecorder
from generic.health import HealthServer, parse_address
from generic.informer import Informer
from generic.leaderelection import LeaderElector
from generic.metrics import Metrics
from generic.options import Options
from generic.predicates import (
    Predicate,
    all_of,
    default_predicate,
    has_class,
    has_type,
)
from generic.reconciler import Machinery, Reconciler
from generic.store import (
    ClusterHeader,
    Event,
    EventType,
    Header,
    Request,
    Store,
    cluster_header,
    header,
)
from generic.timers import Timers
from generic.writer import Writer

__all__ = ["Manager", "Registration"]

logger = logging.getLogger(__name__)

LEASE_PATIENCE = 4.0
"""Seconds for a request about the lease: time for a second try before the renew deadline."""
STALE_STREAM = 180.0
"""Seconds without a sign of life after which a stream counts as dead: more than two watchdogs."""


@attrs.frozen(kw_only=True)
class Registration:
    """An actuator as it was added: what the generated Role is made from."""

    name: str
    actuator: Actuator[Any]
    cls: type[Object]
    types: tuple[str, ...]
    workers: int
    predicates: tuple[Predicate, ...]

    @property
    def kind(self) -> Kind:
        """The actuator's kind."""
        return self.cls.KIND


@attrs.define
class _Watched:
    """One resource: its store, and the controllers that hear of it."""

    store: Store[Header]
    controllers: list[tuple[Controller, Reconciler]] = attrs.field(factory=list)

    def notify(self, event: Event[Header]) -> None:
        """Hands an event to the controllers, and ends calls that a forced deletion overtakes."""
        for controller, reconciler in self.controllers:
            controller.on_event(event)
            if event.new is not None and event.new.deletion_timestamp is not None:
                reconciler.preempt(event.request)


class Manager:
    """Runs actuators against one API server.

    `add` first, then `run` (a program: until SIGTERM), or `start` and `stop` (inside another).
    Two managers in one process do not know of each other.
    """

    def __init__(
        self,
        settings: Options | None = None,
        *,
        clock: Clock | None = None,
        intercept: Callable[[Client], Client] | None = None,
    ) -> None:
        """`intercept` wraps the client of everything but informers and the lease: for faults."""
        self.options = settings or Options()
        self.metrics = Metrics()
        self.registrations: list[Registration] = []
        self._clock: Clock = clock or SystemClock()
        self._intercept = intercept or (lambda client: client)
        self._aside = Aside()
        self._stop = threading.Event()
        self._lost = False
        self._controllers: list[tuple[Controller, int]] = []
        self._informers: list[Informer] = []
        self._threads: list[threading.Thread] = []
        self._watched: dict[str, _Watched] = {}
        self._elector: LeaderElector | None = None
        self._soon = Timers("soon", self._clock)
        self._later = Timers("later", self._clock)
        self._servers: list[HealthServer] = []

    @classmethod
    def from_args(cls, args: Sequence[str] | None = None) -> Manager:
        """A manager set up from the command line and the environment, logging configured."""
        settings = options.from_args(args)
        logs.configure(settings.log_level, settings.log_format)
        return cls(settings)

    def add(
        self,
        actuator: Actuator[Any],
        *,
        type: str | Sequence[str] = (),
        name: str = "",
        workers: int | None = None,
        predicates: Sequence[Predicate] = (),
    ) -> None:
        """Adds an actuator for objects of its kind and these types.

        Raises TypeError where the actuator does not say its kind, ValueError where a Gardener
        kind comes without a type, or a name is taken.
        """
        cls = object_class(actuator)
        types = (type,) if isinstance(type, str) else tuple(type)
        if cls.KIND.has_operation_annotation and not types:
            raise ValueError(f"add({actuator.__class__.__name__}()): say which type=… it serves")
        chosen = name or cls.KIND.name.lower()
        if any(registration.name == chosen for registration in self.registrations):
            raise ValueError(f"there is a controller {chosen!r} already; give this one a name=…")
        self.registrations.append(
            Registration(
                name=chosen,
                actuator=actuator,
                cls=cls,
                types=types,
                workers=workers or self.options.max_concurrent_reconciles,
                predicates=tuple(predicates),
            )
        )

    def run(self) -> NoReturn:
        """Runs until SIGTERM or SIGINT, then exits: 0 after an orderly stop, 1 otherwise."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)
        code = 1
        try:
            self.start()
            while not self._stop.wait(1.0):
                pass
            code = 1 if self._lost else 0
        except KeyboardInterrupt:
            code = 0
        except Exception as error:
            logger.error("cannot start", extra={"fields": {"error": str(error)}})
        finally:
            if not self.stop():
                code = code or 1
            logging.shutdown()
            os._exit(code)  # calls that were set aside must not hold the process up

    def start(self) -> None:
        """Starts everything and returns. Raises ConfigurationError or ApiError."""
        workers = sum(registration.workers for registration in self.registrations)
        client = connect(
            self.options.kubeconfig,
            self.options.context,
            connections=workers + 8,
            observe=self.metrics.request,
        )
        self._build(client)
        self._serve()
        for informer in self._informers:
            self._run_thread("informer", partial(informer.run, self._stop))
        if self._elector is None:
            self._run_thread("starter", self._start_workers)
        else:
            self._run_thread("elector", partial(self._elector.run, self._stop))

    def _run_thread(self, name: str, target: Callable[[], None]) -> None:
        thread = threading.Thread(target=target, name=name, daemon=True)
        if name == "informer":
            self._threads.append(thread)
        thread.start()

    def stop(self) -> bool:
        """Stops in good order; False when operations were still running at the end."""
        self._stop.set()
        for controller, _ in self._controllers:
            controller.stop()
        patience = 0.0 if self._lost else self.options.shutdown_timeout  # another may lead by now
        end = time.monotonic() + patience
        finished = [c.join(max(0.0, end - time.monotonic())) for c, _ in self._controllers]
        self._soon.stop()
        self._later.stop()
        if self._elector is not None and all(finished):
            self._elector.release()  # else it runs out, once what still runs is over for good
        for server in self._servers:
            server.stop()
        return all(finished)

    def wait_synced(self, timeout: float = 30.0) -> bool:
        """Waits until every cache is filled; False when `timeout` seconds were not enough."""
        end = time.monotonic() + timeout
        return all(i.wait_synced(max(0.0, end - time.monotonic())) for i in self._informers)

    def check_health(self) -> dict[str, Callable[[], str | None]]:
        """What /healthz asks: a process that answers None to all of these does its work."""
        return {"informers": self._dead_thread, "workers": self._dead_worker}

    def check_ready(self) -> dict[str, Callable[[], str | None]]:
        """What /readyz asks: the health checks, and whether every stream is alive and synced."""
        return {**self.check_health(), "streams": self._stale_stream}

    def _build(self, connection: HttpClient) -> None:
        """Puts informers, controllers and reconcilers together; starts nothing."""
        opts = self.options
        if opts.leader_election:
            self._elector = LeaderElector(
                connection.within(LEASE_PATIENCE),
                opts.leader_election_namespace,
                opts.leader_election_id,
                on_started=self._start_workers,
                on_lost=self._lose,
                clock=self._clock,
                metrics=self.metrics,
            )
        client = self._intercept(connection.gated(self._gate))
        cluster_store = Store(CLUSTERS, cluster_header)
        clusters = Clusters(cluster_store, client)
        if any(r.kind.cluster is not ClusterNeed.NEVER for r in self.registrations):
            self._watch(connection, cluster_store, lambda event: self._on_cluster(clusters, event))
        events = EventRecorder(client, "gardener-actuator", self._clock)
        for registration in self.registrations:
            self._add_controller(registration, client, clusters, events)
        for watched in self._watched.values():
            self._watch(connection, watched.store, watched.notify)

    def _add_controller(
        self, registration: Registration, client: Client, clusters: Clusters, events: EventRecorder
    ) -> None:
        resource = resource_of(registration.kind)
        watched = self._watched.setdefault(str(resource), _Watched(Store(resource, header)))
        bound = self.metrics.controller(
            registration.name, registration.kind.name, registration.workers
        )
        slow = self.options.processing_status == "slow"
        machinery = Machinery(
            client=client,
            writer=Writer(client, watched.store, watched.notify),
            clusters=clusters,
            events=events,
            metrics=bound,
            clock=self._clock,
            calls=Calls(self._aside),
            soon=self._soon,
            later=self._later,
            gate=self._gate,
            processing_after=1.0 if slow else None,
        )
        reconciler = Reconciler(registration.actuator, registration.cls, machinery)
        controller = Controller(
            registration.name,
            reconciler.reconcile,
            self._predicate(registration),
            watched.store,
            self._clock,
            bound,
        )
        reconciler.replace_worker = controller.replace_worker
        watched.controllers.append((controller, reconciler))
        self._controllers.append((controller, registration.workers))

    def _predicate(self, registration: Registration) -> Predicate:
        trigger = default_predicate(
            registration.kind,
            ignore_operation_annotation=self.options.ignore_operation_annotation,
        )
        filters = list(registration.predicates)
        if registration.types:
            filters.append(has_type(*registration.types))
            filters.append(has_class(*self.options.extension_classes))
        return all_of(*filters, trigger)

    def _watch(self, client: HttpClient, store: Store[Any], notify: Callable[[Any], None]) -> None:
        self._informers.append(Informer(client, store, notify, metrics=self.metrics))

    def _on_cluster(self, clusters: Clusters, event: Event[ClusterHeader]) -> None:
        """A Cluster that appears, or says something new, is news for all of its namespace."""
        if not clusters.on_event(event):
            return
        namespace = event.request.name
        for watched in self._watched.values():
            for request in watched.store.requests(namespace):
                self._renew(watched, request)

    def _renew(self, watched: _Watched, request: Request) -> None:
        """Puts an object that has something to do ahead of the queue, its backoff forgotten."""
        entry = watched.store.get(request)
        if entry is None:
            return
        seen = Event(EventType.ADDED, request, None, entry.header)
        for controller, reconciler in watched.controllers:
            if controller.started and controller.wants(seen):
                controller.queue.add(request, urgent=True)
                reconciler.preempt(request)

    def _start_workers(self) -> None:
        """Starts the workers once the caches are filled: decisions need the Clusters."""
        while not self.wait_synced(1.0):
            if self._stop.is_set():
                return
        for controller, workers in self._controllers:
            controller.start(workers)

    def _serve(self) -> None:
        """Serves metrics and health; on one address they share a server."""
        metrics = parse_address(self.options.metrics_bind_address)
        health = parse_address(self.options.health_bind_address)
        alive, ready = self.check_health(), self.check_ready()
        expose = self.metrics.expose
        servers: dict[str, HealthServer] = {}
        if metrics is not None and metrics == health:
            both = HealthServer(metrics, healthz=alive, readyz=ready, metrics=expose)
            servers = {"metrics": both, "health": both}
        else:
            if metrics is not None:
                servers["metrics"] = HealthServer(metrics, metrics=expose)
            if health is not None:
                servers["health"] = HealthServer(health, healthz=alive, readyz=ready)
        for server in dict.fromkeys(servers.values()):
            server.start()
            self._servers.append(server)
        if servers:
            fields = {name: str(server.address) for name, server in servers.items()}
            logger.info("serving", extra={"fields": fields})

    def _dead_thread(self) -> str | None:
        dead = sum(not thread.is_alive() for thread in self._threads)
        return f"{dead} of {len(self._threads)} informers ended" if dead else None

    def _dead_worker(self) -> str | None:
        for controller, workers in self._controllers:
            if controller.started and controller.working() < workers:
                return f"{controller.name}: {controller.working()} of {workers} workers are alive"
        return None

    def _stale_stream(self) -> str | None:
        for informer in self._informers:
            if not informer.synced:
                return f"{informer.name} is not synced: {informer.problem or 'the list is running'}"
            if informer.age() > STALE_STREAM:
                return f"{informer.name}: no sign of life for {informer.age():.0f} s"
        return None

    def _lose(self) -> None:
        """Another replica may act from now on: this process must not, and ends."""
        logger.error("lost the lease")
        self._lost = True
        self._stop.set()

    def _gate(self) -> None:
        if self._elector is not None:
            self._elector.check()

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self._stop.set()
