"""Our side with pending deletions: all cached objects stay under deletion."""

from ours import Noop

from actuator import Cluster, Context, RequeueAfter
from actuator.v1alpha1 import Infrastructure
from generic import Manager


class Pending(Noop):
    """Never finishes a deletion during the benchmark."""

    def delete(self, ctx: Context, infrastructure: Infrastructure, cluster: Cluster) -> None:
        """Requeue after 10,000 s."""
        raise RequeueAfter(10_000)


if __name__ == "__main__":
    manager = Manager.from_args()
    manager.add(Pending(), type="bench")
    manager.run()
