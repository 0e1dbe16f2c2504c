"""Serving: the HTTP servers of a manager for metrics and health, at the addresses in Options."""

import logging
from collections.abc import Mapping

from generic.controller.health import Check, HealthServer, Remarks, parse_address
from generic.controller.metrics import Metrics
from generic.manager.options import Options

logger = logging.getLogger(__name__)


def serve(
    options: Options,
    metrics: Metrics,
    healthz: Mapping[str, Check],
    readyz: Mapping[str, Check],
    remarks: Remarks,
) -> list[HealthServer]:
    """Start and return the servers; equal addresses share one. Raises ConfigurationError."""
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
