"""Clients for other API servers: those of the shoots, and that of the garden.

Sources: Gardener's extension library, `NewClientForShoot` (Secret `gardener-internal` in the
namespace of the shoot, else `gardener`; gardenlet writes both and renews their tokens), and
Gardener documentation, "Access to the Garden Cluster for Extensions".
"""

import base64
import binascii
import os
import threading
from contextlib import suppress
from copy import copy
from pathlib import Path
from typing import Any

from actuator.errors import ConfigurationError, Forbidden, NotFound, ShootUnreachable
from actuator.interface import SECRETS, SHOOT_ACCESS, Client
from generic.kube.client import HttpClient, connect
from generic.kube.kubeconfig import read_kubeconfig

_CONNECTIONS = 2
"""Maximum idle connections of each client."""
_MAX_SHOOTS = 256
"""Maximum clients of shoots; the one that was not used for the longest time is dropped."""


class Remote:
    """The clients of one manager, created on first use. Safe to use from any thread."""

    def __init__(self, seed: Client) -> None:
        self._seed = seed
        external = os.environ.get("GARDENER_SHOOT_CLIENT") == "external"
        self._names = SHOOT_ACCESS.names[1:] if external else SHOOT_ACCESS.names
        self._lock = threading.Lock()
        self._known: dict[str, tuple[bytes, HttpClient]] = {}
        self._garden: HttpClient | None = None
        self.patience = threading.Semaphore()  # held by each request to a shoot that may take long

    def shared_by(self, workers: int) -> "Remote":
        """Return these clients for a controller, half of whose workers may wait long for shoots."""
        twin = copy(self)
        twin.patience = threading.Semaphore(max(1, workers // 2))
        return twin

    def garden(self) -> HttpClient:
        """Return the client for the garden, whose kubeconfig is read again when it changes.

        Raises ConfigurationError without access.
        """
        if self._garden is None:  # of two threads, both may create one
            path = os.environ.get("GARDEN_KUBECONFIG", "")
            if not Path(path).is_file():
                missing = f"file {path} does not exist" if path else "the variable is not set"
                raise ConfigurationError(
                    f"GARDEN_KUBECONFIG: {missing}, so the extension has no access to the "
                    "garden; set injectGardenKubeconfig: true in its registration"
                )
            self._garden = connect(Path(path), connections=_CONNECTIONS)
        return self._garden

    def shoot(self, namespace: str) -> HttpClient:
        """Return the client of a shoot with its current credentials.

        Sends one request to the seed, and none to the shoot. Raises ShootUnreachable, ApiError.
        """
        try:
            source, kubeconfig = self._read(namespace)
        except ShootUnreachable:
            self.forget(namespace)
            raise
        with self._lock:
            known, client = self._known.pop(namespace, (b"", None))
        if client is None or known != kubeconfig:
            client = _connect(source, kubeconfig)
        with self._lock:
            self._known[namespace] = kubeconfig, client
            if len(self._known) > _MAX_SHOOTS:
                del self._known[next(iter(self._known))]
        return client

    def forget(self, namespace: str) -> None:
        """Drop the client of a shoot that is deleted or no longer checked."""
        with self._lock:
            self._known.pop(namespace, None)

    def _read(self, namespace: str) -> tuple[str, bytes]:
        for name in self._names:
            source = f"Secret {namespace}/{name}"
            with suppress(NotFound):
                try:
                    secret = self._seed.get(SECRETS, name, namespace)
                except Forbidden as error:
                    remedy = "add actuator.interface.SHOOT_ACCESS to the permissions"
                    raise ShootUnreachable(f"{source}: {error}; {remedy}") from error
                return source, _kubeconfig(secret, source)
        names = " or ".join(self._names)
        raise ShootUnreachable(
            f"Secret {names} not found in namespace {namespace}; gardenlet creates it with the "
            "control plane of the shoot"
        )


def _kubeconfig(secret: Any, source: str) -> bytes:
    encoded = (secret.get("data") or {}).get("kubeconfig")
    if not encoded:
        raise ShootUnreachable(f"{source} has no key kubeconfig; wait until gardenlet adds it")
    try:
        return base64.b64decode(encoded)
    except binascii.Error as error:
        raise ShootUnreachable(f"{source}: its kubeconfig is not base64") from error


def _connect(source: str, kubeconfig: bytes) -> HttpClient:
    """Return a client. Raises ShootUnreachable, never with the kubeconfig's content."""
    try:
        return connect(read_kubeconfig(kubeconfig), connections=_CONNECTIONS)
    except (ConfigurationError, OSError) as error:
        raise ShootUnreachable(f"{source}: {error}") from error
