"""Options: the settings of a manager. Plain data; `flags` reads them from the command line."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal, TypeVar

import attrs

from actuator.errors import ConfigurationError

T = TypeVar("T")


def _option(default: T, help: str) -> T:
    """Return a field that is also a flag, with this help text."""
    return attrs.field(default=default, metadata={"help": help})


@attrs.frozen(kw_only=True)
class Options:
    """The settings of a manager. Durations in seconds; an address "" or "0" disables a server."""

    kubeconfig: Path | None = _option(  # noqa: RUF009 - a field of attrs
        None, "Path of the kubeconfig. Default: KUBECONFIG, in-cluster, or ~/.kube/config."
    )
    context: str | None = _option(None, "Context of the kubeconfig.")
    master: str = _option("", "URL of the API server; overrides the kubeconfig.")
    leader_election: bool = _option(
        False, "Reconcile only while holding the leader election Lease."
    )
    leader_election_id: str = _option(
        "gardener-actuator-leader-election", "Name of the leader election Lease."
    )
    leader_election_namespace: str = _option("default", "Namespace of the leader election Lease.")
    metrics_bind_address: str = _option(
        "127.0.0.1:8080",
        "Address of /metrics; :8080 binds all interfaces, 0 disables the endpoint.",
    )
    health_bind_address: str = _option(
        "127.0.0.1:8081", "Address of /healthz and /readyz; 0 disables the endpoints."
    )
    metrics_oldest_terminating: int = _option(
        0, "Export per-object metrics for the N oldest terminating objects of each controller."
    )
    metrics_zero_seconds: float = _option(
        75.0,
        "Seconds for which a new counter is exposed as 0, so that Prometheus reads the 0; set more "
        "than the scrape interval.",
    )
    max_concurrent_reconciles: int = _option(
        5,
        "Workers of each controller; --CONTROLLER-max-concurrent-reconciles sets those of one "
        "controller.",
    )
    workers: Mapping[str, int] = attrs.field(factory=dict)
    """The number of workers by controller name, or by prefix of several names."""
    controllers: tuple[str, ...] = _option(
        (), "Comma-separated controllers to run; the others do not start."
    )
    disable_controllers: tuple[str, ...] = _option(
        (), "Comma-separated controllers that do not start."
    )
    ignore_operation_annotation: bool = _option(
        False, "Reconcile whenever a spec changes, without gardenlet's operation annotation."
    )
    processing_status: Literal["slow", "always"] = _option(
        "slow", "Write the state Processing for operations of more than a second, or always."
    )
    force_delete_budget: float | None = _option(
        90.0, "Maximum seconds of a force deletion; none: unlimited."
    )
    orphan_retention_days: float | None = _option(
        400.0, "Days that Orphans in state Closed are kept; none: unlimited."
    )
    gone_orphan_retention_days: float | None = _option(
        400.0, "Days that Orphans in state Gone are kept; none: unlimited."
    )
    force_deletion_retention_days: float | None = _option(
        400.0, "Days that ForceDeletionRecords are kept; none: unlimited."
    )
    outcome_events: Literal["unusual", "all"] = _option(
        "unusual", "Deletion outcomes that are recorded as events: exceptional ones, or all."
    )
    extension_classes: tuple[str, ...] = _option(
        (), "Comma-separated extension classes to serve: shoot (default), seed, garden."
    )
    gardener_version: str = _option("", "Version of the Gardener installation.")
    self_hosted_shoot_cluster: bool = _option(
        False, "Run in the self-hosted shoot that is served; the machine API may be absent."
    )
    heartbeat_namespace: str = _option("", "Namespace of the heartbeat Lease.")
    heartbeat_renew_interval_seconds: int = _option(
        30, "Seconds between two renewals of the heartbeat Lease."
    )
    webhook_config_mode: Literal["service", "url", "url-service"] = _option(
        "service", "How API servers reach the webhooks of the manager."
    )
    webhook_config_url: str = _option("", "HOST or HOST:PORT of the webhooks, for the mode url.")
    webhook_config_service_port: int | None = _option(
        None, "Port of the Service of the webhooks; default: the port of the server."
    )
    webhook_config_namespace: str = _option(
        "",
        "Namespace of the webhooks' Service and certificates; webhooks are served if it is set.",
    )
    webhook_config_owner_namespace: str = _option(
        "",
        "Namespace with which webhook configurations are deleted; default: that of the Service.",
    )
    webhook_config_server_host: str = _option(
        "127.0.0.1", "Address on which the webhook server listens; empty: all interfaces."
    )
    webhook_config_server_port: int = _option(9443, "Port of the webhook server.")
    webhook_config_cert_dir: Path | None = _option(  # noqa: RUF009 - a field of attrs
        None,
        "Folder with tls.crt, tls.key and ca.crt; default: the manager creates certificates.",
    )
    disable_webhooks: tuple[str, ...] = _option(
        (), "Comma-separated webhooks that are not served; * for all."
    )
    log_level: Literal["debug", "info", "error"] = _option("info", "Minimum log level.")
    log_format: Literal["text", "json"] = _option("text", "Log format.")
    shutdown_timeout: float = _option(
        20.0, "Seconds that running operations may take after SIGTERM."
    )

    @property
    def extension(self) -> str:
        """The name of the extension: that of its leader election without the suffix."""
        return self.leader_election_id.removesuffix("-leader-election")

    @property
    def serves_webhooks(self) -> bool:
        """Whether API servers can reach webhooks: by a Service in a namespace, or by a URL."""
        by_url = self.webhook_config_mode == "url"
        return bool(self.webhook_config_url if by_url else self.webhook_config_namespace)

    @property
    def webhook_owner(self) -> str:
        """The namespace with which the webhook configurations are deleted; "": none."""
        return self.webhook_config_owner_namespace or self.webhook_config_namespace

    def workers_of(self, name: str, otherwise: int | None = None) -> int:
        """Return the workers of a controller: from its flag, its author, or the default."""
        for given in sorted(self.workers, key=len, reverse=True):  # the most specific first
            if _covers(given, name):
                return self.workers[given]
        return otherwise or self.max_concurrent_reconciles

    def is_named(self, name: str) -> bool:
        """Whether `controllers` contains this controller's name or a prefix of it."""
        return any(_covers(given, name) for given in self.controllers)

    def enabled(self, names: Iterable[str]) -> frozenset[str]:
        """Return the controllers of these names that run.

        Raises ConfigurationError if a flag names an unknown controller.
        """
        known = list(names)
        wanted = matching("--controllers", self.controllers, known) or set(known)
        unwanted = matching("--disable-controllers", self.disable_controllers, known)
        matching("--CONTROLLER-max-concurrent-reconciles", self.workers, known)
        return frozenset(wanted - unwanted)

    def enabled_webhooks(self, names: Iterable[str]) -> frozenset[str]:
        """Return the webhooks of these names that are served. Raises ConfigurationError."""
        known = set(names)
        unknown = sorted(set(self.disable_webhooks) - known - {"*"})
        if unknown:
            there = ", ".join(sorted(known)) or "none"
            raise ConfigurationError(
                f"--disable-webhooks: unknown webhook {unknown[0]!r}; set one of: {there}, or *"
            )
        return frozenset(() if "*" in self.disable_webhooks else known - {*self.disable_webhooks})


def matching(flag: str, given: Iterable[str], known: Iterable[str]) -> set[str]:
    """Return the controllers with these names or prefixes: `healthcheck` matches all of them.

    Raises ConfigurationError if none matches.
    """
    names = sorted(known)
    found: set[str] = set()
    for item in given:
        covered = {item} if item in names else {name for name in names if _covers(item, name)}
        if not covered:
            there = ", ".join(names) or "none"
            raise ConfigurationError(f"{flag}: unknown controller {item!r}; set one of: {there}")
        found |= covered
    return found


def _covers(given: str, name: str) -> bool:
    return name == given or name.startswith(f"{given}-")
