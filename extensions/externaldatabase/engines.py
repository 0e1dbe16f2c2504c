"""Which server class serves which engine."""

from __future__ import annotations

from extensions.externaldatabase import mariadb, postgres
from extensions.externaldatabase.endpoint import Endpoint
from extensions.externaldatabase.kind import Engine
from extensions.externaldatabase.server import Server, Traffic


def server_for(engine: Engine, url: str, traffic: Traffic, ca: str = "") -> Server:
    """The server of that engine at the URL; `ca` as in Endpoint. Raises ConfigurationError."""
    if engine is Engine.POSTGRES:
        return postgres.PostgresServer(Endpoint.parse(url, postgres.PORT, ca), traffic)
    return mariadb.MariaDbServer(Endpoint.parse(url, mariadb.PORT, ca), traffic)
