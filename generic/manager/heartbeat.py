"""Heartbeat: the Lease that shows gardenlet that an extension is alive.

Source: Gardener documentation, "Heartbeat Controller". gardenlet reads renewTime of the Lease
`gardener-extension-heartbeat` in the extension's namespace; if it is older than five minutes, the
conditions that the extension reports count as Unknown.

It is independent of leader election, but only the leading replica must renew it.
"""

import logging
import math
import threading
from collections.abc import Callable

import attrs

from actuator.errors import LeaseLost
from actuator.interface import Client, Clock, Permission
from actuator.meta import Raw
from generic.controller.workqueue import Backoff
from generic.kube.clock import SystemClock
from generic.library.manifests import manifest
from generic.manager.leaderelection import LEASES, micro_time

logger = logging.getLogger(__name__)

LEASE_NAME = "gardener-extension-heartbeat"


@attrs.frozen
class Heartbeat:
    """Renews the Lease every `interval_seconds` for the extension `name`, in its `namespace`.

    Raises ValueError unless the interval is a number above 0.
    """

    name: str = attrs.field(validator=attrs.validators.min_len(1))
    namespace: str = attrs.field(validator=attrs.validators.min_len(1))
    interval_seconds: float = attrs.field(
        default=30.0, validator=[attrs.validators.gt(0), attrs.validators.lt(math.inf)]
    )
    clock: Clock = attrs.field(factory=SystemClock, kw_only=True)
    renewed: Callable[[bool], None] = attrs.field(default=lambda _ok: None, kw_only=True)
    """Called after each attempt with whether the Lease was renewed."""

    @property
    def permissions(self) -> tuple[Permission, ...]:
        """The permissions of `run`: server-side apply needs create and patch."""
        patch = LEASES.permission("patch", namespace=self.namespace)
        create = LEASES.permission("create", namespace=self.namespace)
        return (create, attrs.evolve(patch, names=[LEASE_NAME]))

    def run(self, client: Client, stop: threading.Event) -> None:
        """Renew until `stop` is set, or until this process no longer leads."""
        backoff = Backoff(first=1.0, cap=self.interval_seconds)
        failures = 0
        while not stop.is_set():
            try:
                client.apply(LEASES, self._lease())
                failures = 0
                self.renewed(True)
            except LeaseLost:
                return
            except Exception as error:  # any error: the next attempt may succeed
                failures += 1
                self.renewed(False)
                fields = {"lease": f"{self.namespace}/{LEASE_NAME}", "error": str(error)}
                level = logging.WARNING if failures > 3 else logging.DEBUG  # only if it persists
                logger.log(level, "heartbeat renewal failed", extra={"fields": fields})
            stop.wait(backoff.delay(failures) if failures else self.interval_seconds)

    def _lease(self) -> Raw:
        spec = {
            "holderIdentity": self.name,
            "leaseDurationSeconds": math.ceil(self.interval_seconds),
            "renewTime": micro_time(self.clock.now()),
        }
        return manifest(LEASES.api_version, "Lease", LEASE_NAME, self.namespace, spec=spec)
