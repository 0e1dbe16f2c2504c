"""SeedIdentity: the identity of the seed, from its ConfigMap kube-system/cluster-identity.

It is read once in a process, without an error: a record without the seed's identity is better than
no record. Source: Gardener documentation, "Cluster Identity".
"""

import logging
import threading

from actuator.errors import ApiError, Forbidden, NotFound
from actuator.interface import CONFIG_MAPS, Client, Clock
from actuator.meta import value_at

logger = logging.getLogger(__name__)

NAME = "cluster-identity"
"""The name of the ConfigMap, and its data key."""
NAMESPACE = "kube-system"
_RETRY_SECONDS = 60.0
"""Seconds after a failed request before the next: no deletion waits for each of them."""
PERMISSION = CONFIG_MAPS.permission("get", namespace=NAMESPACE, names=[NAME])


def read_seed_identity(client: Client) -> str:
    """Return the identity, or "" if the ConfigMap has none. Raises ApiError."""
    found = value_at(client.get(CONFIG_MAPS, NAME, NAMESPACE), "data", NAME)
    return found if isinstance(found, str) else ""


class SeedIdentity:
    """Reads the identity at its first use; safe to use from any thread."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._next = float("-inf")
        self._lock = threading.Lock()
        self._known: str | None = None

    def read(self) -> str:
        """Return the identity, or "" if there is none; a failed request is retried later."""
        with self._lock:
            if self._known is None and self._clock.monotonic() >= self._next:
                self._known = self._ask()
                self._next = self._clock.monotonic() + _RETRY_SECONDS
            return self._known or ""

    def _ask(self) -> str | None:
        try:
            return read_seed_identity(self._client)
        except NotFound:
            return ""
        except ApiError as error:
            fields = {"error": str(error)}
            logger.warning("seed identity not read", extra={"fields": fields})
            return "" if isinstance(error, Forbidden) else None
