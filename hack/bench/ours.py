"""Our side of the benchmark: a manager with an actuator that does nothing.

sides.py starts it as a separate process; an author's program looks the same.
"""

from actuator import Actuator, Cluster, Context
from actuator.v1alpha1 import Infrastructure
from generic import Manager


class Noop(Actuator[Infrastructure]):
    """Has no external resources, so that only the framework is measured."""

    def reconcile(self, ctx: Context, infrastructure: Infrastructure, cluster: Cluster) -> None:
        """Do nothing."""

    def delete(self, ctx: Context, infrastructure: Infrastructure, cluster: Cluster) -> None:
        """Do nothing."""


if __name__ == "__main__":
    manager = Manager.from_args()
    manager.add(Noop(), type="bench")
    manager.run()
