"""Running: a manager between start and stop. It defines only the order of the start:

metrics and health → informers → leadership → workers and runnables; the stop is the reverse.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

from actuator.interface import Clock
from generic.kube.client import HttpClient
from generic.kube.clock import trusted_now
from generic.manager.leaderelection import LeaderElector
from generic.manager.options import Options
from generic.manager.probes import Probes
from generic.manager.registry import Registry, Runnable, served
from generic.manager.runnables import Runner
from generic.manager.wiring import Shared, Wiring
from generic.reconciler.origin import version_of
from generic.reconciler.orphans.probe import OrphanProbe
from generic.serving.health import HealthServer
from generic.serving.httpserver import Address, parse_address
from generic.serving.metrics import Metrics

if TYPE_CHECKING:
    from generic.manager.webhooks import WebhookService

logger = logging.getLogger(__name__)

_SWEEP_SECONDS = 0.5
_LOOK_SECONDS = 0.05
DRAIN_SECONDS = 5.0
"""Seconds after SIGTERM in which webhooks still accept connections: until then, API servers may not
know that the pod leaves its Service (Kubernetes documentation, "Pod Lifecycle")."""
LEASE_WAIT_SECONDS = 4.0
"""Timeout of a request for the lease: leaves time for a second attempt before the deadline."""


class Running:
    """The parts of a running manager; used once."""

    def __init__(self, shared: Shared, registry: Registry) -> None:
        """Connect all parts, and start none of them."""
        self.lost = False
        """Whether the lease is lost: another process may lead."""
        connection = shared.connection
        clock = shared.clock
        metrics = shared.metrics
        self._options = registry.options
        self._serves = served(registry.registrations)
        self._actuators = [registration.actuator for registration in registry.registrations]
        self._metrics = metrics
        self._clock = clock
        self._stop = shared.stop
        elects = registry.options.leader_election
        self._elector = self._make_elector(connection, clock) if elects else None
        client = shared.intercept(connection.gated(self._gate))
        self.wiring = wiring = Wiring(shared, registry, client, self._gate)
        metrics.show_streams(wiring.informers, wiring.routes.unserved)
        runnables = [*registry.runnables, *_guards(registry, connection.gated(self._gate))]
        self._runner = Runner(runnables, client, shared.stop)
        orphans = OrphanProbe(connection, clock) if registry.registrations else None
        self.webhooks = _webhooks(registry, connection, clock, metrics)
        self.probes = Probes(
            wiring.informers, wiring.controllers, self._runner, orphans, registry, self.webhooks
        )
        self._servers: list[HealthServer] = []

    def start(self) -> None:
        """Start everything and return. Raises ConfigurationError."""
        self._servers = _serve(self._options, self._metrics, self.probes)
        _run_thread("sweeper", self._sweep)
        if self.webhooks is not None:
            _run_thread("webhook-service", partial(self.webhooks.run, self._stop))
        for informer in self.wiring.informers:
            thread = _run_thread("informer", partial(informer.run, self._stop))
            self.probes.threads.append(thread)
        if self._serves:
            _run_thread("origins", self._prepare_origins)
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
            self.webhooks.server.draining = True
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
        self.wiring.timers.stop()
        if self._elector is not None and all(finished):
            self._elector.release()  # else it expires, and running calls end first
        for server in self._servers:
            server.stop()
        return all(finished)

    def _make_elector(self, connection: HttpClient, clock: Clock) -> LeaderElector:
        return LeaderElector(
            connection.within(LEASE_WAIT_SECONDS),
            self._options.leader_election_namespace,
            self._options.leader_election_id,
            on_started=self._start_workers,
            on_lost=self._lose,
            clock=clock,
            metrics=self._metrics,
            serves=self._serves,
        )

    def _prepare_origins(self) -> None:
        """Read once what records name: no deletion has to wait for it."""
        self.wiring.seed_identity.read()
        for actuator in self._actuators:
            version_of(actuator)

    def _start_workers(self) -> None:
        """Start each controller once its caches are filled: no kind may delay another."""
        self._runner.start()
        waiting = list(self.wiring.controllers)
        while waiting and not self._stop.is_set():
            synced = [item for item in waiting if self.wiring.is_synced(item[0])]
            for controller, workers in synced:
                controller.start(workers)
                self.wiring.routes.begin(controller)
            waiting = [item for item in waiting if item not in synced]
            if waiting:
                self._stop.wait(_LOOK_SECONDS)

    def _sweep(self) -> None:
        """Tick regularly, even while every worker is unresponsive, or no replica leads."""
        while not self._stop.wait(_SWEEP_SECONDS):
            try:
                trusted_now(self._clock)  # a sample of the clocks, for all who decide by them
                self.wiring.routes.tick()
            except Exception:
                logger.exception("sweep failed")

    def _lose(self) -> None:
        """Stop this process: another replica may act from now on."""
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


def _guards(registry: Registry, client: HttpClient) -> Iterable[Runnable]:
    if not registry.registrations:
        return ()
    from generic.manager.guards import runnables  # with the first actuator

    return runnables(registry, client)


def _run_thread(name: str, target: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=target, name=name, daemon=True)
    thread.start()
    return thread


def check_ports(options: Options, *, webhooks: bool) -> None:
    """Raise ConfigurationError, with the flag, if a port of the manager is in use."""
    addresses = _addresses(options)
    if webhooks:
        host = options.webhook_config_server_host
        port = options.webhook_config_server_port
        addresses[Address(host, port)] = "--webhook-config-server-port"
    for address, flag in addresses.items():
        server = HealthServer(address)
        server.remedy = f"set another {flag}"
        server.start()
        server.stop()


def _addresses(options: Options) -> dict[Address, str]:
    """Return the addresses of health and metrics, which may be equal, with their flags."""
    flags = {
        "--health-bind-address": options.health_bind_address,
        "--metrics-bind-address": options.metrics_bind_address,
    }
    return {found: flag for flag, text in flags.items() if (found := parse_address(text))}


def _serve(options: Options, metrics: Metrics, probes: Probes) -> list[HealthServer]:
    """Start the servers for metrics and health; equal addresses share one.

    Raises ConfigurationError.
    """
    at = parse_address(options.metrics_bind_address)
    probes_at = parse_address(options.health_bind_address)
    servers: dict[Address, HealthServer] = {}
    for address, flag in _addresses(options).items():
        servers[address] = HealthServer(
            address,
            healthz=probes.alive() if address == probes_at else None,
            readyz=probes.ready() if address == probes_at else None,
            remarks=probes.remarks,
            metrics=metrics.expose if address == at else None,
        )
        servers[address].remedy = f"set another {flag}"
        servers[address].start()
    if servers:
        named = {"metrics": at, "health": probes_at}
        fields = {name: str(servers[item].address) for name, item in named.items() if item}
        logger.info("serving", extra={"fields": fields})
    return list(servers.values())
