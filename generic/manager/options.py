"""Options: the settings of a manager. Plain data; the flags that set it are in `flags`."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

import attrs

from actuator.errors import ConfigurationError


@attrs.frozen(kw_only=True)
class Options:
    """The settings of a manager. Durations in seconds; an address "" or "0" disables a server."""

    kubeconfig: Path | None = None
    context: str | None = None
    master: str = ""
    """The URL of the API server, instead of the one in the kubeconfig."""
    leader_election: bool = False
    leader_election_id: str = "gardener-actuator-leader-election"
    leader_election_namespace: str = "default"
    metrics_bind_address: str = "127.0.0.1:8080"
    health_bind_address: str = "127.0.0.1:8081"
    metrics_oldest_terminating: int = 0
    """The number of the oldest terminating objects of each controller with their own series."""
    max_concurrent_reconciles: int = 5
    workers: Mapping[str, int] = attrs.field(factory=dict)
    """The number of workers by controller name, or by prefix of several names."""
    controllers: tuple[str, ...] = ()
    """The names of the controllers to run; empty for all."""
    disable_controllers: tuple[str, ...] = ()
    ignore_operation_annotation: bool = False
    processing_status: Literal["slow", "always"] = "slow"
    force_delete_budget: float | None = 90.0
    """Seconds for one force deletion from its detection on; None: unlimited."""
    orphan_retention_days: float | None = 30.0
    """Days for which Orphans with state Closed or Gone are kept; None: without limit."""
    outcome_events: Literal["unusual", "all"] = "unusual"
    """The outcomes of deletions that become events: unusual ones only, or all."""
    extension_classes: tuple[str, ...] = ()
    gardener_version: str = ""
    self_hosted_shoot_cluster: bool = False
    """Whether the manager runs inside the shoot that it serves."""
    heartbeat_namespace: str = ""
    heartbeat_renew_interval_seconds: int = 30
    webhook_config_mode: Literal["service", "url", "url-service"] = "service"
    webhook_config_url: str = ""
    """HOST or HOST:PORT at which API servers reach the webhooks, for the mode url."""
    webhook_config_service_port: int | None = None
    """The port of the Service; None: that of the server."""
    webhook_config_namespace: str = ""
    """The namespace of the Service and of the Secret with the certificates."""
    webhook_config_owner_namespace: str = ""
    """The namespace with which the webhook configurations are deleted; "": the one above."""
    webhook_config_server_host: str = "127.0.0.1"
    """The address to listen on; "": all interfaces."""
    webhook_config_server_port: int = 9443
    webhook_config_cert_dir: Path | None = None
    """A folder with tls.crt, tls.key and ca.crt; None: the manager creates certificates."""
    disable_webhooks: tuple[str, ...] = ()
    """The names of the webhooks that are not served; "*": all."""
    log_level: Literal["debug", "info", "error"] = "info"
    log_format: Literal["text", "json"] = "text"
    shutdown_timeout: float = 20.0

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
        return (
            frozenset()
            if "*" in self.disable_webhooks
            else frozenset(known.difference(self.disable_webhooks))
        )


def matching(flag: str, given: Iterable[str], known: Iterable[str]) -> set[str]:
    """Return the controllers with these names or prefixes: `healthcheck` matches all of them.

    Raises ConfigurationError if none matches.
    """
    names = sorted(known)
    found: set[str] = set()
    for one in given:
        covered = {one} if one in names else {name for name in names if _covers(one, name)}
        if not covered:
            there = ", ".join(names) or "none"
            raise ConfigurationError(f"{flag}: unknown controller {one!r}; set one of: {there}")
        found |= covered
    return found


def _covers(given: str, name: str) -> bool:
    return name == given or name.startswith(f"{given}-")
