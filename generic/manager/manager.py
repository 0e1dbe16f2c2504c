"""Manager: registers actuators, and runs them until it is stopped.

Not here: the registrations (`registry`), the state between start and stop (`running`) and its
assembly (`wiring`).
"""

import gc
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import NoReturn

from actuator.cluster import Verdict
from actuator.errors import ConfigurationError
from actuator.interface import Client, Clock
from actuator.meta import Raw
from generic.kube.client import HttpClient, connect
from generic.kube.clock import SystemClock, WatchedClock
from generic.kube.clusters import CLUSTERS
from generic.kube.headers import Request, cluster_header
from generic.kube.store import Store
from generic.manager.options import Options
from generic.manager.orphans.keeper import Keeper, Retention
from generic.manager.registry import Registry
from generic.manager.running import Running
from generic.manager.wiring import Shared
from generic.reconciler.reporter import Listener
from generic.serving import logs
from generic.serving.health import Check
from generic.serving.metrics import Metrics

logger = logging.getLogger(__name__)

_GARBAGE = 10_000
"""New objects after which a program looks for unreachable cycles; Python's 700 take a tenth of its
CPU time while caches fill, and cycles are rare."""
_CONNECTIONS = 256
"""Maximum idle connections: more than the concurrent requests of nearly all managers."""


class Manager(Registry):
    """Runs actuators against one API server.

    `add` first, then `run` (a program: until SIGTERM), or `start` and `stop` (inside another).
    Two managers in one process are independent.
    """

    def __init__(
        self,
        options: Options | None = None,
        *,
        clock: Clock | None = None,
        intercept: Callable[[Client], Client] | None = None,
        listeners: Sequence[Listener] = (),
    ) -> None:
        """Create a manager that serves nothing yet.

        `intercept` wraps the client of everything but informers and the lease, for faults.
        `listeners` receive the outcome of every pass over an object under deletion.
        """
        super().__init__(options or Options())
        self._clock: Clock = WatchedClock(clock or SystemClock())
        self.metrics = Metrics(
            clock=self._clock,
            oldest_terminating=self.options.metrics_oldest_terminating,
            extension=self.options.extension,
            zero_seconds=self.options.metrics_zero_seconds,
        )
        self._intercept = intercept or (lambda client: client)
        self._listeners = listeners
        self._clusters = Store(CLUSTERS, cluster_header, compressed=True)
        self._stop = threading.Event()
        self._running: Running | None = None
        if self.options.heartbeat_namespace:
            self._add_heartbeat()

    @classmethod
    def from_args(cls, args: Sequence[str] | None = None) -> "Manager":
        """Create a manager from the command line and the environment, and configure logging."""
        from generic.manager import flags  # with click, only for a program

        settings = flags.from_args(args)
        logs.configure(settings.log_level, settings.log_format)
        return cls(settings)

    def verdict(self, namespace: str) -> Verdict:
        """Return the verdict of a namespace's Cluster; before the start, that of a missing one."""
        entry = self._clusters.get(Request("", namespace))
        return entry.header.verdict if entry else Verdict()

    def has_seen(self, namespace: str, version: int) -> bool:
        """Return whether the namespace's Cluster is in the cache in that resourceVersion or later.

        True for a manager that was stopped.
        """
        entry = self._clusters.get(Request("", namespace))
        is_there = entry is not None and entry.header.resource_version >= version
        return is_there or self._stop.is_set()

    def shoot_webhooks(self) -> list[Raw] | None:
        """Return the configurations of the webhooks for shoots, or None if they are not served.

        For `GenericControlPlane.shoot_webhooks`. Raises RequeueAfter before the first certificate.
        """
        service = None if self._running is None else self._running.webhooks
        return None if service is None else service.shoot_manifests()

    def run(self) -> NoReturn:
        """Run until SIGTERM or SIGINT, then exit: 0 after a graceful shutdown, 1 otherwise.

        Exits with 2 if a flag names an unknown controller.
        """
        try:
            self.enabled()
        except ConfigurationError as error:
            print(f"Error: {error}", file=sys.stderr)  # noqa: T201 - the answer to a command
            raise SystemExit(2) from None
        for number in (signal.SIGTERM, signal.SIGINT):  # this thread may hold the event's lock
            signal.signal(number, lambda *_: threading.Thread(target=self._stop.set).start())
        gc.freeze()  # modules and classes stay for good
        gc.set_threshold(_GARBAGE)
        code = 1
        try:
            self.start()
            while not self._stop.wait(1.0):
                pass
            code = 1 if self._running is None or self._running.lost else 0
        except KeyboardInterrupt:
            code = 0
        except Exception as error:
            logger.error("start failed", extra={"fields": {"error": str(error)}})
        finally:
            if not self.stop():
                code = code or 1
            logging.shutdown()
            os._exit(code)  # abandoned calls must not delay the exit

    def start(self) -> None:
        """Start everything and return. Raises ConfigurationError or ApiError."""
        enabled = self.enabled()
        shared = Shared(
            connection=self._connect(),
            intercept=self._intercept,
            cluster_store=self._clusters,
            metrics=self.metrics,
            clock=self._clock,
            stop=self._stop,
            listeners=self._listeners,
        )
        self._running = Running(shared, enabled)
        self._running.start()

    def _connect(self) -> HttpClient:
        return connect(
            self.options.kubeconfig,
            self.options.context,
            server=self.options.master,
            connections=_CONNECTIONS,
            observe=self.metrics.request,
        )

    def stop(self) -> bool:
        """Shut down gracefully; return False if operations were still running at the end."""
        self._stop.set()
        return self._running is None or self._running.stop()

    def wait_synced(self, timeout: float = 30.0) -> bool:
        """Wait until every cache is filled or its CRD is known to be absent.

        Return False when `timeout` seconds were not enough.
        """
        end = time.monotonic() + timeout
        running = self._running
        return running is not None and all(
            informer.settled.wait(max(0.0, end - time.monotonic()))
            for informer in running.wiring.informers
        )

    def check_ready(self) -> dict[str, Check]:
        """Return the checks of /readyz: all return None in a manager that works."""
        return {} if self._running is None else self._running.probes.ready()

    def _prepare(self) -> None:
        """Add the keeper for the records of all actuators, including those added later."""
        options = self.options
        retention = Retention.of_days(
            closed=options.orphan_retention_days,
            gone=options.gone_orphan_retention_days,
            force_deletions=options.force_deletion_retention_days,
        )
        keeper = Keeper(
            self.registrations,
            self.metrics.registry,
            retention=retention,
            clock=self._clock,
        )
        self.add_runnable("orphans", keeper.run, permissions=keeper.permissions)

    def _add_heartbeat(self) -> None:
        """Add the heartbeat; the extension's name is the prefix of NAME-leader-election."""
        from generic.manager.heartbeat import Heartbeat

        heartbeat = Heartbeat(
            self.options.extension,
            self.options.heartbeat_namespace,
            self.options.heartbeat_renew_interval_seconds,
            clock=self._clock,
            renewed=self.metrics.heartbeat,
        )
        self.add_runnable("heartbeat", heartbeat.run, permissions=heartbeat.permissions)
