"""Probes: health checks of the parts of a manager. Not here: the HTTP server (`running`)."""

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, field

from actuator.meta import ClusterNeed
from generic.controller.controller import Controller
from generic.controller.watch import MACHINES
from generic.kube.clusters import CLUSTERS
from generic.kube.informer import Informer
from generic.kube.problems import ABSENT
from generic.manager.registry import Registry
from generic.manager.runnables import Runner
from generic.reconciler.orphans.probe import OrphanProbe
from generic.serving.health import Check

if TYPE_CHECKING:
    from generic.manager.webhooks import WebhookService

STALE_STREAM = 180.0
"""Seconds without data after which a stream counts as dead: more than two idle timeouts."""
FAILING_STREAM = 60.0
"""Seconds of watches that break soon after opening, after which a manager is not ready."""


class Probes(Struct):
    """Checks informers and their threads, and controllers and their workers."""

    informers: Sequence[Informer]
    controllers: Sequence[tuple[Controller, int]]
    runner: Runner
    orphans: OrphanProbe | None
    """None if no actuator is registered."""
    registry: Registry
    webhooks: "WebhookService | None" = None
    threads: list[threading.Thread] = field(default_factory=list)

    def alive(self) -> dict[str, Check]:
        """Return the checks for liveness: all return None in a healthy process."""
        return {
            "informers": self._dead_informers,
            "workers": self._dead_workers,
            "runnables": self.runner.problem,
        }

    def ready(self) -> dict[str, Check]:
        """Return the checks for readiness: also live, synced streams, and writable Orphans.

        A kind whose CRD is absent fails only if `--controllers` names a controller that needs it.
        """
        more = {"kinds": self._missing_kinds, "streams": self._stale_stream}
        return {
            **self.alive(),
            **more,
            **({"orphans": self.orphans.problem} if self.orphans else {}),
            **({"webhooks": self.webhooks.problem} if self.webhooks else {}),
        }

    def _dead_informers(self) -> str | None:
        dead = sum(not thread.is_alive() for thread in self.threads)
        return f"{dead} of {len(self.threads)} informers ended" if dead else None

    def _dead_workers(self) -> str | None:
        for controller, workers in self.controllers:
            if controller.staffed and controller.working() < workers:
                return f"{controller.name}: {controller.working()} of {workers} workers are alive"
        return None

    def remarks(self) -> list[str]:
        """Return the kinds without a CRD that `--controllers` does not require."""
        absent = [
            informer.name
            for informer in self.informers
            if informer.absent and not self._demanded_by(informer)
        ]
        if self.registry.options.self_hosted_shoot_cluster:  # few of these have the machine API
            absent = [name for name in absent if not name.endswith(MACHINES.resource.group)]
        return [f"{name}: {ABSENT}" for name in absent]

    def _missing_kinds(self) -> str | None:
        missing = [
            f"{informer.name}: {ABSENT}, but --controllers includes {', '.join(demanded)}"
            for informer in self.informers
            if informer.absent and (demanded := self._demanded_by(informer))
        ]
        remedy = "install the CRD, or remove the controller from --controllers"
        return "; ".join([*missing, remedy]) if missing else None

    def _demanded_by(self, informer: Informer) -> list[str]:
        """Return the controllers in `--controllers` that cannot work without the kind."""
        names = [
            controller.name
            for controller, _ in self.controllers
            if controller.watches == informer.name
        ]
        if informer.name == str(CLUSTERS):
            kinds = self.registry.kinds
            names += [name for name, kind in kinds if kind.cluster is ClusterNeed.REQUIRED]
        return [name for name in names if self.registry.options.is_named(name)]

    def _stale_stream(self) -> str | None:
        for informer in self.informers:
            if informer.problem == ABSENT:
                continue  # _missing_kinds decides
            if not informer.synced:
                return f"{informer.name} is not synced: {informer.problem or 'list in progress'}"
            if informer.age() > STALE_STREAM:
                return f"{informer.name}: no event or bookmark for {informer.age():.0f} s"
            if informer.failing() > FAILING_STREAM:
                return f"{informer.name}: the watch fails repeatedly: {informer.problem}"
        return None
