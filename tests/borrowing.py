"""Clusters: embedded clusters that are lent to one test after the other."""

from __future__ import annotations

import pytest

from generic.testing.envtest import Environment
from generic.testing.envtest.servers import APISERVER, CONTROLLER_MANAGER, ETCD, Servers

__all__ = ["Clusters"]

_PROGRAMS = (ETCD, APISERVER, CONTROLLER_MANAGER)


class Clusters:
    """Lends a cluster to each Environment that starts; it is nobody else's until that stops.

    What the last one left is still in it: CRDs, namespaces that are ending, events.
    """

    def __init__(self) -> None:
        self._free: list[Servers] = []

    def patch(self, patch: pytest.MonkeyPatch) -> None:
        """As long as the patch holds, environments borrow."""
        start, stop = Environment.start, Environment.stop

        def borrow(environment: Environment) -> None:
            if environment._running is None and self._free:
                environment._running = self._free.pop()
            else:
                start(environment)

        def give_back(environment: Environment) -> None:
            running = environment._running
            if running is not None and all(map(running.is_running, _PROGRAMS)):
                self._free.append(running)
                environment._running = None
            stop(environment)

        patch.setattr(Environment, "start", borrow)
        patch.setattr(Environment, "stop", give_back)

    def close(self) -> None:
        """Ends those that are free."""
        while self._free:
            self._free.pop().close()
