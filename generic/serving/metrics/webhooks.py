"""The metrics of webhooks, named as in controller-runtime, and their outcomes and certificate."""

from collections.abc import Iterable
from datetime import datetime

from prometheus_client import CollectorRegistry, Gauge

from generic.serving.metrics.exposition import Families

OUTCOMES = ("allowed", "denied", "failed")
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class WebhookMetrics:
    """The metrics of the webhooks of one manager."""

    def __init__(self, registry: CollectorRegistry, names: Iterable[str]) -> None:
        """Register the metrics, with all children at 0."""
        new = Families(registry, "webhook")
        self._seconds = new.histogram(
            "controller_runtime_webhook_latency_seconds", "Time of the webhook's answers.", _SECONDS
        )
        self._in_flight = new.gauge(
            "controller_runtime_webhook_requests_in_flight",
            "Number of requests that the webhook is answering.",
        )
        self._requests = new.counter(
            "controller_runtime_webhook_requests_total",
            "Total number of admission requests, by status code; 500: the webhook failed.",
            "code",
        )
        self._outcomes = new.counter(
            "actuator_webhook_outcomes_total",
            "Total number of admission requests, by outcome: allowed, denied or failed.",
            "outcome",
        )
        self._expiry = Gauge(
            "actuator_webhook_certificate_expiry_timestamp_seconds",
            "Time at which the serving certificate expires; 0 before there is one.",
            registry=registry,
        )
        self._conflicts = Gauge(
            "actuator_webhook_configurations_in_conflict",
            "Number of webhook configurations that another client changed.",
            registry=registry,
        )
        for name in names:
            self._seconds.labels(name)
            self._in_flight.labels(name)
            for outcome in OUTCOMES:
                self._outcomes.labels(name, outcome)
            for code in ("200", "500"):
                self._requests.labels(name, code)

    def began(self, webhook: str) -> None:
        """Count a request that begins."""
        self._in_flight.labels(webhook).inc()

    def ended(self, webhook: str, seconds: float, outcome: str) -> None:
        """Count a request that ended with one of OUTCOMES."""
        self._in_flight.labels(webhook).dec()
        self._seconds.labels(webhook).observe(seconds)
        self._outcomes.labels(webhook, outcome).inc()
        self._requests.labels(webhook, "500" if outcome == "failed" else "200").inc()

    def certificate(self, expires: datetime) -> None:
        """Set the time at which the serving certificate expires."""
        self._expiry.set(expires.timestamp())

    def conflicts(self, number: int) -> None:
        """Set the number of configurations that another client changed."""
        self._conflicts.set(number)
