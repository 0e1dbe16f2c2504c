"""Options: how a manager runs. Plain data; the command line flags that fill it are `flags`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

import attrs

from actuator.errors import ConfigurationError


@attrs.frozen(kw_only=True)
class Options:
    """How a manager runs. Durations in seconds; an address "" or "0" switches a server off."""

    kubeconfig: Path | None = None
    context: str | None = None
    master: str = ""
    """URL of the API server, in place of the one in the kubeconfig."""
    leader_election: bool = False
    leader_election_id: str = "gardener-actuator-leader-election"
    leader_election_namespace: str = "default"
    metrics_bind_address: str = "127.0.0.1:8080"
    health_bind_address: str = "127.0.0.1:8081"
    metrics_oldest_terminating: int = 0
    """So many objects under deletion of each controller have a series of their own."""
    max_concurrent_reconciles: int = 5
    workers: Mapping[str, int] = attrs.field(factory=dict)
    """By name of a controller, or of several that begin with it: how many at a time."""
    controllers: tuple[str, ...] = ()
    """What runs, by name; all where it is empty."""
    disable_controllers: tuple[str, ...] = ()
    ignore_operation_annotation: bool = False
    processing_status: Literal["slow", "always"] = "slow"
    force_delete_budget: float | None = 90.0
    """For one force deletion, from the moment it is seen; None: as long as it takes."""
    orphan_retention_days: float | None = 30.0
    """How long Orphans that are closed, or gone, are kept; None: for ever."""
    outcome_events: Literal["unusual", "all"] = "unusual"
    """Which outcomes of deletions become events: those out of the order, or all."""
    extension_classes: tuple[str, ...] = ()
    gardener_version: str = ""
    self_hosted_shoot_cluster: bool = False
    """Whether this runs inside the shoot that it serves."""
    heartbeat_namespace: str = ""
    heartbeat_renew_interval_seconds: int = 30
    ignored_flags: tuple[str, ...] = ()
    """Flags that Gardener's charts pass and that have no effect here."""
    log_level: Literal["debug", "info", "error"] = "info"
    log_format: Literal["text", "json"] = "text"
    shutdown_timeout: float = 20.0

    def workers_of(self, name: str, otherwise: int | None = None) -> int:
        """How many workers a controller gets: its own flag, what its author said, the default."""
        for given in sorted(self.workers, key=len, reverse=True):  # the one that says most
            if _covers(given, name):
                return self.workers[given]
        return otherwise or self.max_concurrent_reconciles

    def is_named(self, name: str) -> bool:
        """Whether `controllers` names this controller, or what its name begins with."""
        return any(_covers(given, name) for given in self.controllers)

    def enabled(self, names: Iterable[str]) -> frozenset[str]:
        """Which of these controllers run.

        Raises ConfigurationError where a flag names a controller that there is not.
        """
        known = list(names)
        wanted = matching("--controllers", self.controllers, known) or set(known)
        unwanted = matching("--disable-controllers", self.disable_controllers, known)
        matching("--CONTROLLER-max-concurrent-reconciles", self.workers, known)
        return frozenset(wanted - unwanted)


def matching(flag: str, given: Iterable[str], known: Iterable[str]) -> set[str]:
    """The controllers of these names, or that begin with them: `healthcheck` is all of them.

    Raises ConfigurationError where there is none.
    """
    names = sorted(known)
    found: set[str] = set()
    for one in given:
        covered = {one} if one in names else {name for name in names if _covers(one, name)}
        if not covered:
            there = ", ".join(names) or "none"
            raise ConfigurationError(f"{flag}: there is no controller {one!r}; there are: {there}")
        found |= covered
    return found


def _covers(given: str, name: str) -> bool:
    return name == given or name.startswith(f"{given}-")
