"""The admission of an extension in a cluster with the garden's types."""

from collections.abc import Collection, Sequence
from pathlib import Path

from actuator.interface import Client
from generic.library.webhooks import ConfigAdmission
from generic.library.webhooks.admission import policies
from generic.library.webhooks.policies import BINDINGS, POLICIES
from generic.manager.options import Options

_OURS = {"app.kubernetes.io/managed-by": "actuator-garden"}
_SELECTOR = ",".join("=".join(pair) for pair in _OURS.items())


def admission_options(extension: str, kubeconfig: Path, host: str, port: int) -> Options:
    """Return the options of an admission whose webhooks the API server reaches at this address."""
    return Options(
        kubeconfig=kubeconfig,
        leader_election_id=f"{extension}-admission",
        metrics_bind_address="0",
        health_bind_address="0",
        shutdown_timeout=5.0,
        webhook_config_mode="url",
        webhook_config_url=f"{host}:{port}",
        webhook_config_server_host=host,
        webhook_config_server_port=port,
    )


def apply_policies(client: Client, admissions: Sequence[ConfigAdmission]) -> None:
    """Apply these policies in place of all that this function applied before. Raises ApiError."""
    wanted = policies(admissions)
    remove_policies(client, [item["metadata"]["name"] for _, item in wanted])
    for resource, item in wanted:
        client.apply(resource, {**item, "metadata": {**item["metadata"], "labels": _OURS}})


def remove_policies(client: Client, kept: Collection[str] = ()) -> None:
    """Remove the policies that `apply_policies` applied, except these. Raises ApiError."""
    for resource in (BINDINGS, POLICIES):
        for found in client.list(resource, label_selector=_SELECTOR):
            if (name := found["metadata"]["name"]) not in kept:
                client.delete(resource, name)
