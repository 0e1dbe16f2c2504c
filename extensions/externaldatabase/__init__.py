"""The ExternalDatabase sample: a kind outside Gardener, with real databases behind it.

    actuator crds extensions.externaldatabase:ExternalDatabase | kubectl apply -f -
    actuator run extensions.externaldatabase:extension
    actuator drill extensions.externaldatabase.rehearsal:DatabaseRehearsal

Read in this order: `kind` (the API for users), `actuator` (the author's side), `connection` (the
Secret for users), `server` (the interface to a database server) with `postgres`, and with `mysql`
and its `dialects`, `names` (names in SQL), `endpoint`. `rehearsal` and `servers` are for drills.
"""

import os

import generic
from actuator import ConfigurationError
from extensions.externaldatabase.actuator import DatabaseActuator
from extensions.externaldatabase.endpoint import DatabaseEndpoint
from extensions.externaldatabase.kind import Engine, ExternalDatabase
from extensions.externaldatabase.server import DatabaseServer, Traffic

__all__ = ["DatabaseActuator", "ExternalDatabase", "extension", "server_for"]

_URLS = {Engine.POSTGRES: "DATABASES_POSTGRES_URL", Engine.MYSQL: "DATABASES_MYSQL_URL"}
_CAS = {Engine.POSTGRES: "DATABASES_POSTGRES_CA", Engine.MYSQL: "DATABASES_MYSQL_CA"}
_GIVE_UP = "DATABASES_GIVE_UP_AFTER"
_RATE = "DATABASES_REQUESTS_PER_SECOND"
_DAY = 24 * 3600.0
_WORKERS = 4


def extension(manager: generic.Manager) -> None:
    """Add the actuator to a manager, configured by environment variables.

    DATABASES_POSTGRES_URL and DATABASES_MYSQL_URL, of which at least one is required, are the
    servers as scheme://user:password@host:port. DATABASES_POSTGRES_CA and DATABASES_MYSQL_CA are
    the PEM bundles that verify them (default: the system's CAs). DATABASES_GIVE_UP_AFTER is the
    time in seconds after which a failing deletion is no longer retried (86400),
    DATABASES_REQUESTS_PER_SECOND the maximum rate per server (20). Raises ConfigurationError.
    """
    rate = _number(_RATE, 20.0)
    servers = {engine: _server(engine, rate) for engine in Engine if os.environ.get(_URLS[engine])}
    if not servers:
        raise ConfigurationError(f"set {' or '.join(_URLS.values())}: there is no database server")
    manager.add(
        DatabaseActuator(servers),
        workers=_WORKERS,
        give_up_after={None: _number(_GIVE_UP, _DAY)},
    )


def server_for(engine: Engine, url: str, traffic: Traffic, ca: str = "") -> DatabaseServer:
    """Return the engine's server at the URL; `ca` as in Endpoint. Raises ConfigurationError."""
    # Only the engines that are used: each driver takes 0.1 s to import.
    if engine is Engine.POSTGRES:
        from extensions.externaldatabase import postgres

        return postgres.PostgresServer(DatabaseEndpoint.parse(url, postgres.PORT, ca), traffic)
    from extensions.externaldatabase import mysql

    return mysql.MySqlServer(DatabaseEndpoint.parse(url, mysql.PORT, ca), traffic)


def _server(engine: Engine, rate: float) -> DatabaseServer:
    url = os.environ[_URLS[engine]]
    ca = os.environ.get(_CAS[engine], "")
    try:
        return server_for(engine, url, Traffic(rate), ca)
    except ConfigurationError as error:
        raise ConfigurationError(f"{_URLS[engine]}, {_CAS[engine]}: {error}") from None


def _number(variable: str, default: float) -> float:
    text = os.environ.get(variable, "")
    try:
        number = float(text or default)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise ConfigurationError(f"{variable}={text}: set it to a number above 0")
    return number
