"""Our side, where every deletion waits for something: all that is cached stays under deletion."""

from __future__ import annotations

from ours import Noop

from actuator import Cluster, Context, RequeueAfter
from actuator.v1alpha1 import Infrastructure
from generic import Manager


class Pending(Noop):
    """Not done yet, and will not be for hours."""

    def delete(self, ctx: Context, infrastructure: Infrastructure, cluster: Cluster) -> None:
        """Asks to be called much later."""
        raise RequeueAfter(10_000)


if __name__ == "__main__":
    manager = Manager.from_args()
    manager.add(Pending(), type="bench")
    manager.run()
