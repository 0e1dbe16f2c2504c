"""Metrics: all metrics of one manager, and their exposition."""

import platform
from collections import Counter as Counts
from collections.abc import Callable, Iterable
from functools import cache
from typing import TYPE_CHECKING

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Metric,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from actuator.interface import Clock
from generic.kube.clock import SystemClock
from generic.kube.informer import Informer
from generic.serving.metrics.controllers import ControllerFamilies, ControllerMetrics
from generic.serving.metrics.exposition import Bounded, Exposition, Families, GuardedCollector
from generic.serving.metrics.queues import QueueFamilies, QueueMetrics
from generic.serving.metrics.terminating import TerminatingObjects
from generic.serving.metrics.values import RelistReason

if TYPE_CHECKING:
    from generic.serving.metrics.webhooks import WebhookMetrics

_BUILD = ("actuator_build_info", "Version of this process and of Python; always 1.")


class Metrics:
    """The metrics of one manager, in a registry where authors may register their own."""

    def __init__(
        self,
        *,
        clock: Clock | None = None,
        oldest_terminating: int = 0,
        extension: str = "",
        zero_seconds: float = 0.0,
    ) -> None:
        """`extension` is a label of each exposed series; `zero_seconds`: see Exposition."""
        self.registry = CollectorRegistry(auto_describe=True)
        self._clock = clock or SystemClock()
        self._exposition = Exposition(self.registry, self._clock, extension, zero_seconds)
        ProcessCollector(registry=self.registry)
        new = Families(self.registry)
        self.controllers = ControllerFamilies(self.registry)
        self._queues = QueueFamilies(self.registry)
        self._requests = new.counter(
            "rest_client_requests_total",
            "Total number of requests to the API server, by status code, method and host.",
            "code",
            "method",
            "host",
        )
        self._leader = new.gauge(
            "leader_election_master_status",
            "1 if this process holds the Lease, otherwise 0.",
            "name",
        )
        self._relists = new.counter(
            "actuator_informer_relists_total",
            "Total number of full lists of an informer, by reason.",
            "kind",
            "reason",
        )
        self._heartbeats = new.counter(
            "actuator_heartbeat_renewals_total",
            "Total number of renewals of the heartbeat Lease that gardenlet checks, by result.",
            "result",
        )
        self._heartbeat = new.gauge(
            "actuator_heartbeat_last_renewal_timestamp_seconds",
            "Time of the last renewal of the heartbeat Lease; 0 before the first one.",
        )
        self._collector_errors = new.counter(
            "actuator_collector_errors_total",
            "Total number of failed metrics collections, by collector.",
            "collector",
        )
        self.registry.register(_Build())
        self.terminating = TerminatingObjects(self._clock, oldest_terminating)
        self._collect("terminating", self.terminating.families)

    def controller(self, name: str, kind: str, workers: int) -> ControllerMetrics:
        """Register a controller; all its known children exist from now on, at 0."""
        return self.controllers.bind(name, kind, workers, QueueMetrics(self._queues, name))

    def webhooks(self, names: Iterable[str]) -> "WebhookMetrics":
        """Register the webhooks with these names; call it once."""
        from generic.serving.metrics.webhooks import WebhookMetrics  # of few managers

        return WebhookMetrics(self.registry, names)

    def show_streams(
        self, informers: Iterable[Informer], unserved: Callable[[str], Iterable[str]]
    ) -> None:
        """Collect the state of the informers at every scrape; call it once.

        `unserved` returns the types of the objects of an informer that no controller serves here.
        """
        self._collect("informers", lambda: _stream_families(informers, unserved))

    def request(self, method: str, host: str, code: str) -> None:
        """Count a request to the API server; `code` is "<error>" without an answer."""
        self._requests.labels(code, method, host).inc()

    def leader(self, name: str, leading: bool) -> None:
        """Set whether this process leads by the Lease of that name."""
        self._leader.labels(name).set(int(leading))

    def relisted(self, kind: str, reason: str) -> None:
        """Count a complete list of an informer. Raises ValueError unless it is a RelistReason."""
        for known in RelistReason:
            self._relists.labels(kind, known.value)
        self._relists.labels(kind, RelistReason(reason).value).inc()

    def heartbeat(self, renewed: bool) -> None:
        """Count whether the heartbeat Lease was renewed."""
        for known in ("success", "error"):
            self._heartbeats.labels(known)
        self._heartbeats.labels("success" if renewed else "error").inc()
        if renewed:
            self._heartbeat.set(self._clock.now().timestamp())

    def total(self, name: str, by: str, **labels: str) -> dict[str, int]:
        """Return the samples of a counter with these labels, summed by one label."""
        sums: dict[str, int] = {}
        for family in self.registry.collect():
            for sample in family.samples:
                if sample.name == name and labels.items() <= sample.labels.items():
                    key = sample.labels[by]
                    sums[key] = sums.get(key, 0) + int(sample.value)
        return sums

    def expose(self) -> tuple[bytes, str]:
        """Return the body and the content type of an answer to Prometheus."""
        return generate_latest(self._exposition), CONTENT_TYPE_LATEST

    def _collect(self, name: str, families: Callable[[], list[Metric]]) -> None:
        self.registry.register(GuardedCollector(families, self._collector_errors.labels(name)))


def _stream_families(
    informers: Iterable[Informer], unserved_by: Callable[[str], Iterable[str]]
) -> list[Metric]:
    def gauge(name: str, text: str) -> GaugeMetricFamily:
        return GaugeMetricFamily(name, text, labels=("kind",))

    synced = gauge("actuator_informer_synced", "1 if the initial list is complete, otherwise 0.")
    absent = gauge(
        "actuator_informer_kind_absent",
        "1 if the API server does not serve the kind because its CRD is not installed, else 0.",
    )
    age = gauge(
        "actuator_informer_stream_age_seconds",
        "Time since the last event or bookmark of the watch.",
    )
    unreadable = gauge(
        "actuator_unreadable_objects",
        "Number of objects that are nested too deeply to be read in full.",
    )
    unserved = GaugeMetricFamily(
        "actuator_unserved_objects",
        "Number of objects that no controller has worked on or serves here, by type.",
        labels=("kind", "type"),
    )
    for informer in informers:
        kind = (informer.plural,)
        synced.add_metric(kind, int(informer.synced))
        absent.add_metric(kind, int(informer.absent))
        age.add_metric(kind, informer.age())
        unreadable.add_metric(kind, informer.unreadable)
        for type, count in Counts(map(Bounded(), unserved_by(informer.name))).items():
            unserved.add_metric((*kind, type), count)
    return [synced, absent, age, unreadable, unserved]


class _Build(Collector):
    """The version of this process, which is looked up at the first scrape."""

    def describe(self) -> Iterable[Metric]:
        """See Collector."""
        return [GaugeMetricFamily(*_BUILD)]

    def collect(self) -> Iterable[Metric]:
        """See Collector."""
        family = GaugeMetricFamily(*_BUILD, labels=("version", "python_version"))
        family.add_metric((version(), platform.python_version()), 1)
        return [family]


@cache
def version() -> str:
    """Return the installed version, or "unknown"."""
    from importlib import metadata

    try:
        return metadata.version("gardener-actuator")
    except metadata.PackageNotFoundError:
        return "unknown"
