"""Running: a manager between start and stop. It defines only the order of the start:

metrics and health → informers → leadership → workers and runnables; the stop is the reverse.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from actuator.interface import Client, Clock
from generic.controller.health import Check, HealthServer, Remarks, parse_address
from generic.controller.metrics import Metrics, Stream
from generic.kube.client import HttpClient
from generic.kube.headers import ClusterHeader
from generic.kube.store import Store
from generic.kube.timers import Timers
from generic.manager.leaderelection import LeaderElector
from generic.manager.options import Options
from generic.manager.probes import Probes
from generic.manager.registry import Registry
from generic.manager.runnables import Runner
from generic.manager.wiring import Shared, Wiring
from generic.reconciler.calls import AbandonedCalls
from generic.reconciler.orphans.probe import OrphanProbe
from generic.reconciler.reporter import Listener

if TYPE_CHECKING:
    from generic.manager.webhooks import WebhookService

logger = logging.getLogger(__name__)

_SWEEP_SECONDS = 0.5
_LOOK_SECONDS = 0.05
DRAIN_SECONDS = 5.0
"""Seconds after SIGTERM in which webhooks still accept connections: until then, API servers may not
know that the pod leaves its Service (Kubernetes documentation, "Pod Lifecycle")."""
LEASE_PATIENCE = 4.0
"""Timeout of a request for the lease: leaves time for a second attempt before the deadline."""


class Running:
    """The parts of a running manager; used once."""

    def __init__(
        self,
        connection: HttpClient,
        registry: Registry,
        cluster_store: Store[ClusterHeader],
        metrics: Metrics,
        clock: Clock,
        intercept: Callable[[Client], Client],
        stop: threading.Event,
        listeners: Sequence[Listener] = (),
    ) -> None:
        """Connect all parts, and start none of them."""
        self.abandoned = AbandonedCalls()
        self.timers = Timers("later", clock)
        self.lost = False
        """Whether the lease is lost: another process may lead."""
        self._options = options = registry.options
        self._metrics = metrics
        self._stop = stop
        self._elector = self._make_elector(connection, clock) if options.leader_election else None
        client = intercept(connection.gated(self._gate))
        shared = Shared(
            connection=connection,
            client=client,
            cluster_store=cluster_store,
            options=options,
            metrics=metrics,
            clock=clock,
            abandoned=self.abandoned,
            timers=self.timers,
            gate=self._gate,
            listeners=listeners,
        )
        self.wiring = Wiring(shared, registry)
        metrics.show_streams(self._streams)
        self._runner = Runner(registry.runnables, client, stop)
        orphans = OrphanProbe(connection, clock) if registry.registrations else None
        wired = self.wiring
        self.webhooks = _webhooks(registry, connection, clock, metrics)
        self.probes = Probes(
            wired.informers, wired.controllers, self._runner, orphans, registry, self.webhooks
        )
        self._servers: list[HealthServer] = []

    def start(self) -> None:
        """Start everything and return. Raises ConfigurationError."""
        self._servers = _serve(
            self._options,
            self._metrics,
            self.probes.alive(),
            self.probes.ready(),
            self.probes.remarks,
        )
        if self.webhooks is not None:
            _run_thread("webhook-service", partial(self.webhooks.run, self._stop))
        for informer in self.wiring.informers:
            thread = _run_thread("informer", partial(informer.run, self._stop))
            self.probes.threads.append(thread)
        if self._elector is None:
            _run_thread("starter", self._start_workers)
        else:
            _run_thread("elector", partial(self._elector.run, self._stop))

    def stop(self) -> bool:
        """Shut down gracefully; return False if operations were still running at the end."""
        controllers = [controller for controller, _ in self.wiring.controllers]
        for controller in controllers:
            controller.stop()
        begin = time.monotonic()
        if self.webhooks is not None:
            self.webhooks.server.drain()
        patience = 0.0 if self.lost else self._options.shutdown_timeout  # another may lead
        end = begin + patience
        finished = [c.join(max(0.0, end - time.monotonic())) for c in controllers]
        if self.webhooks is not None:
            if self.lost and not all(finished):  # the process must end now
                self.webhooks.stop(0)
            else:
                drained = begin + min(DRAIN_SECONDS, self._options.shutdown_timeout)
                time.sleep(max(0.0, drained - time.monotonic()))
                finished.append(self.webhooks.stop(max(1.0, end - time.monotonic())))
        self.timers.stop()
        if self._elector is not None and all(finished):
            self._elector.release()  # else it expires, and running calls end first
        for server in self._servers:
            server.stop()
        return all(finished)

    def wait_synced(self, timeout: float) -> bool:
        """Wait until every cache is filled or its CRD is known to be absent.

        Return False when `timeout` seconds were not enough.
        """
        end = time.monotonic() + timeout
        informers = self.wiring.informers
        return all(i.wait_settled(max(0.0, end - time.monotonic())) for i in informers)

    def _streams(self) -> list[Stream]:
        """Return the state of the informers, for metrics."""
        types = self.wiring.unserved
        return [
            Stream(one.plural, one.synced, one.absent, one.age(), one.unreadable, types(one.name))
            for one in self.wiring.informers
        ]

    def _make_elector(self, connection: HttpClient, clock: Clock) -> LeaderElector:
        return LeaderElector(
            connection.within(LEASE_PATIENCE),
            self._options.leader_election_namespace,
            self._options.leader_election_id,
            on_started=self._start_workers,
            on_lost=self._lose,
            clock=clock,
            metrics=self._metrics,
        )

    def _start_workers(self) -> None:
        """Start each controller once its caches are filled: no kind may delay another."""
        _run_thread("sweeper", self._sweep)
        self._runner.start()
        waiting = list(self.wiring.controllers)
        while waiting and not self._stop.is_set():
            synced = [one for one in waiting if self.wiring.is_synced(one[0])]
            for controller, workers in synced:
                controller.start(workers)
                self.wiring.begin(controller)
            waiting = [one for one in waiting if one not in synced]
            if waiting:
                self._stop.wait(_LOOK_SECONDS)

    def _sweep(self) -> None:
        """Tick regularly, even while every worker is unresponsive."""
        while not self._stop.wait(_SWEEP_SECONDS):
            try:
                self.wiring.tick()
            except Exception:
                logger.exception("sweep failed")

    def _lose(self) -> None:
        """Stop this process: another replica may act from now on."""
        logger.error("lease lost")
        self.lost = True
        self._stop.set()

    def _gate(self) -> None:
        if self._elector is not None:
            self._elector.check()


def _webhooks(
    registry: Registry, connection: HttpClient, clock: Clock, metrics: Metrics
) -> "WebhookService | None":
    if not registry.webhooks:
        return None
    if not registry.options.serves_webhooks:
        missing = "url" if registry.options.webhook_config_mode == "url" else "namespace"
        logger.info("webhooks are not served: set --webhook-config-%s", missing)
        return None
    from generic.manager.webhooks import WebhookService

    return WebhookService(registry, connection, clock, metrics)


def _run_thread(name: str, target: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=target, name=name, daemon=True)
    thread.start()
    return thread


def _serve(
    options: Options,
    metrics: Metrics,
    healthz: Mapping[str, Check],
    readyz: Mapping[str, Check],
    remarks: Remarks,
) -> list[HealthServer]:
    """Start the servers for metrics and health; equal addresses share one.

    Raises ConfigurationError.
    """
    at = parse_address(options.metrics_bind_address)
    probes_at = parse_address(options.health_bind_address)
    servers: dict[str, HealthServer] = {}
    if at is not None and at == probes_at:
        both = HealthServer(
            at, healthz=healthz, readyz=readyz, remarks=remarks, metrics=metrics.expose
        )
        servers = {"metrics": both, "health": both}
    else:
        if at is not None:
            servers["metrics"] = HealthServer(at, metrics=metrics.expose)
        if probes_at is not None:
            servers["health"] = HealthServer(
                probes_at, healthz=healthz, readyz=readyz, remarks=remarks
            )
    started = list(dict.fromkeys(servers.values()))
    for server in started:
        server.start()
    if started:
        fields = {name: str(server.address) for name, server in servers.items()}
        logger.info("serving", extra={"fields": fields})
    return started
