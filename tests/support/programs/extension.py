"""An extension as an author writes it: `extension.py TYPE FLAGS…`."""

import sys

from actuator import Actuator, Cluster, Context
from actuator.v1alpha1 import Infrastructure
from generic import Manager


class Network(Actuator[Infrastructure]):
    """Makes nothing."""

    def reconcile(self, ctx: Context, infrastructure: Infrastructure, cluster: Cluster) -> None:
        infrastructure.status.provider_status = {"by": sys.argv[1]}

    def delete(self, ctx: Context, infrastructure: Infrastructure, cluster: Cluster) -> None:
        pass


manager = Manager.from_args(sys.argv[2:])
manager.add(Network(), type=sys.argv[1])
manager.run()
