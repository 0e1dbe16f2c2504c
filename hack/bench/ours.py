"""Our side of the benchmark: a manager with an actuator that does nothing.

Started by sides.py as a process of its own; an author's program looks just like it.
"""

from __future__ import annotations

from actuator import Actuator, Cluster, Context
from actuator.v1alpha1 import Infrastructure
from generic import Manager


class Noop(Actuator[Infrastructure]):
    """Has nothing outside, so what is measured is the machinery."""

    def reconcile(self, ctx: Context, infrastructure: Infrastructure, cluster: Cluster) -> None:
        """Nothing to make."""

    def delete(self, ctx: Context, infrastructure: Infrastructure, cluster: Cluster) -> None:
        """Nothing was made."""


if __name__ == "__main__":
    manager = Manager.from_args()
    manager.add(Noop(), type="bench")
    manager.run()
