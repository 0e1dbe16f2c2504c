"""An extension that serves one webhook: `webhook.py FLAGS…`."""

import os
import sys
from collections.abc import Sequence

from actuator.v1alpha1 import Network
from generic import Manager
from generic.library.webhooks import AdmissionRequest, mutates


def build(args: Sequence[str]) -> Manager:
    manager = Manager.from_args(args)
    labels = {"kubernetes.io/metadata.name": manager.options.webhook_config_namespace}

    @mutates(Network, failure_policy="Fail", namespace_labels=labels)
    def mark(request: AdmissionRequest[Network]) -> None:
        request.new.metadata.labels["seen"] = str(os.getpid())

    manager.add_webhooks(mark)
    return manager


if __name__ == "__main__":
    build(sys.argv[1:]).run()
