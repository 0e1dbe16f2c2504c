"""The real gardener-resource-manager as a process beside the embedded cluster."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import mkdtemp

from actuator.meta import Raw
from generic.library.programs.processes import Processes
from generic.testing.envtest.access import ClusterAccess
from generic.testing.envtest.certificates import LocalAuthority
from generic.testing.envtest.servers import HOST, free_port
from generic.testing.landscape.programs import find_gardener

__all__ = ["running_resource_manager"]

NAME = "gardener-resource-manager"
SECONDS = 120.0
"""For its start on a busy machine."""


@contextmanager
def running_resource_manager(
    source: ClusterAccess, target: ClusterAccess, class_: str = ""
) -> Iterator[None]:
    """Applies the ManagedResources of a class in `source` to `target`, until the block ends.

    The class "" is that of a shoot's resource manager.
    """
    with closing(Processes(Path(mkdtemp(prefix="actuator-managing-")))) as processes:
        config = configuration(source, target, class_, processes.directory)
        path = processes.directory / "config.json"
        path.write_text(json.dumps(config))
        processes.start(NAME, [find_gardener(print), NAME, f"--config={path}"])
        ready = f"http://{HOST}:{config['server']['healthProbes']['port']}/readyz"
        processes.wait_until(NAME, lambda: answers(ready), SECONDS)
        yield


def configuration(source: ClusterAccess, target: ClusterAccess, class_: str, folder: Path) -> Raw:
    """A ResourceManagerConfiguration; the certificate of its webhook server is in `folder`."""
    pair = LocalAuthority.new("webhooks").serving([HOST])
    pair.save(folder / "tls.crt", folder / "tls.key")
    local = {"bindAddress": HOST}
    servers = {name: {**local, "port": free_port()} for name in ("healthProbes", "webhooks")}
    servers["webhooks"]["tls"] = {"serverCertDir": str(folder)}
    controllers = {"resourceClass": class_} if class_ else {}
    return {
        "apiVersion": "resourcemanager.config.gardener.cloud/v1alpha1",
        "kind": "ResourceManagerConfiguration",
        "sourceClientConnection": {"kubeconfig": str(source.kubeconfig)},
        "targetClientConnection": {"kubeconfig": str(target.kubeconfig)},
        "leaderElection": {"leaderElect": False},
        "logLevel": "info",
        "logFormat": "text",
        "server": {**servers, "metrics": {**local, "port": free_port()}},
        "controllers": {**controllers, "managedResource": {"concurrentSyncs": 2}},
    }


def answers(url: str) -> bool:
    """Whether the URL answers with success."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=5):
            return True
    except (urllib.error.URLError, TimeoutError):
        return False
