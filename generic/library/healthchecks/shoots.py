"""ShootClients: clients for the API servers of shoots, from the kubeconfigs that gardenlet writes.

Source: Gardener documentation, "Access to the shoot cluster": Secret `gardener-internal` in the
shoot's namespace, else `gardener`. For shoots without either (hibernated, workerless and not yet
up, force-deleted) `client` raises ShootUnreachable.
"""

import base64
import binascii
import os
import threading
from contextlib import suppress
from typing import Any

from actuator.errors import ActuatorError, ConfigurationError, NotFound
from actuator.interface import Client, Resource
from generic.kube.client import connect
from generic.kube.inline_kubeconfig import read_kubeconfig

_SECRETS = Resource("v1", "secrets")
_CONNECTIONS = 4


class ShootUnreachable(ActuatorError):
    """The shoot's API server cannot be reached; the message has the reason, without credentials."""


class ShootClients:
    """One client per shoot, created on first use. Safe to use from any thread."""

    def __init__(self, seed: Client) -> None:
        self._seed = seed
        external = os.environ.get("GARDENER_SHOOT_CLIENT") == "external"
        self._names = ("gardener",) if external else ("gardener-internal", "gardener")
        self._lock = threading.Lock()
        self._known: dict[str, tuple[bytes, Client]] = {}

    def client(self, namespace: str) -> Client:
        """Return a client with the current credentials. Raises ShootUnreachable, ApiError."""
        source, kubeconfig = self._read(namespace)
        with self._lock:
            known, client = self._known.get(namespace, (b"", None))
            if client is None or known != kubeconfig:
                client = _connect(source, kubeconfig)
                self._known[namespace] = kubeconfig, client
            return client

    def forget(self, namespace: str) -> None:
        """Drop the client of a shoot that is deleted or no longer checked."""
        with self._lock:
            self._known.pop(namespace, None)

    def _read(self, namespace: str) -> tuple[str, bytes]:
        for name in self._names:
            with suppress(NotFound):
                secret = self._seed.get(_SECRETS, name, namespace)
                source = f"Secret {namespace}/{name}"
                return source, _kubeconfig(secret, source)
        names = " or ".join(self._names)
        raise ShootUnreachable(f"Secret {names} not found in namespace {namespace}")


def _kubeconfig(secret: Any, source: str) -> bytes:
    encoded = (secret.get("data") or {}).get("kubeconfig")
    if not encoded:
        raise ShootUnreachable(f"{source} has no key kubeconfig")
    try:
        return base64.b64decode(encoded)
    except binascii.Error as error:
        raise ShootUnreachable(f"{source}: its kubeconfig is not base64") from error


def _connect(source: str, kubeconfig: bytes) -> Client:
    """Return a client. Raises ShootUnreachable, never with the kubeconfig's content."""
    try:
        return connect(read_kubeconfig(kubeconfig), connections=_CONNECTIONS)
    except (ConfigurationError, OSError) as error:
        raise ShootUnreachable(f"{source}: {error}") from error
