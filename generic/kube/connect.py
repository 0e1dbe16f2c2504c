"""`connect` for users of the framework, which promises the methods of Client.

Not here: `client.connect`, which the framework itself calls for other requests and limits.
"""

from pathlib import Path

from actuator.interface import Client
from generic.kube import client
from generic.kube.kubeconfig import InlineKubeconfig


def connect(
    kubeconfig: Path | InlineKubeconfig | None = None,
    context: str | None = None,
    *,
    server: str = "",
) -> Client:
    """Return a client for the API server of the configuration.

    Uses the given kubeconfig, else KUBECONFIG, else the pod's service account, else ~/.kube/config;
    `server` is a URL that replaces the configured one. Raises ConfigurationError with one sentence:
    the file and its problem.
    """
    return client.connect(kubeconfig, context, server=server)
