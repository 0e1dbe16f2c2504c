"""Our side of the benchmark: a manager with an actuator that does nothing.

sides.py starts it as a separate process with a variant: `noop`, which looks like an author's
program; `pending`, in which all deletions stay unfinished; `counting`, see counting.py.
"""

import sys

from actuator import Actuator, Cluster, Context, RequeueAfter
from actuator.meta import Raw
from actuator.v1alpha1 import Infrastructure
from generic import Manager


class Noop(Actuator[Infrastructure, Raw]):
    """Has no external resources, so that only the framework is measured."""

    def reconcile(self, ctx: Context, infrastructure: Infrastructure, cluster: Cluster) -> None:
        """Do nothing."""

    def delete(self, ctx: Context, infrastructure: Infrastructure, cluster: Cluster) -> None:
        """Do nothing."""


class Pending(Noop):
    """Never finishes a deletion during the benchmark."""

    def delete(self, ctx: Context, infrastructure: Infrastructure, cluster: Cluster) -> None:
        """Requeue after 10,000 s."""
        raise RequeueAfter(10_000)


if __name__ == "__main__":
    variant = sys.argv.pop(1)
    manager = Manager.from_args()
    manager.add(Pending() if variant == "pending" else Noop(), type="bench")
    if variant == "counting":
        from hack.bench.counting import count_calls

        count_calls(manager.metrics.registry)
    manager.run()
