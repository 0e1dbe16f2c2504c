"""Webhooks in shoots: their configurations, in the ManagedResource of a control plane.

A shoot's API server runs in the seed and reaches the Service of the extension by its name there.
`GenericControlPlane.shoot_webhooks` returns the manifests; `refresh` updates those that are
deployed when the authorities change, which happens long before a certificate needs them.
"""

from collections.abc import Iterable

import attrs

from actuator.codec import decode
from actuator.interface import Client, Permission
from actuator.meta import Raw
from generic.library import managedresources
from generic.library.managedresources import MANAGED_RESOURCES, ManagedResource
from generic.library.webhooks.configurations import Endpoint, Mode, configurations
from generic.library.webhooks.webhook import Target, Webhook

NAME = "extension-controlplane-shoot-webhooks"
SUFFIX = "-shoot"


def permissions() -> list[Permission]:
    """Return the permissions of `refresh`."""
    return [MANAGED_RESOURCES.permission("list"), *managedresources.PERMISSIONS]


def manifests(webhooks: Iterable[Webhook], endpoint: Endpoint, authorities: bytes) -> list[Raw]:
    """Return the configurations of the webhooks for shoots."""
    if endpoint.mode is Mode.SERVICE:
        endpoint = attrs.evolve(endpoint, mode=Mode.URL_SERVICE)
    wanted = [one for one in webhooks if one.target is Target.SHOOT]
    return [config for _, config in configurations(wanted, endpoint, authorities, suffix=SUFFIX)]


def refresh(client: Client, wanted: Iterable[Raw], origin: str, name: str = NAME) -> None:
    """Deploy these manifests to every shoot that has the ManagedResource `name` of this origin.

    Those under deletion are left alone. Raises ApiError.
    """
    documents = list(wanted)
    selector = f"{managedresources.ORIGIN}={origin}"
    for found in client.list(MANAGED_RESOURCES, label_selector=selector):
        managed = decode(ManagedResource, found)
        meta = managed.metadata
        if meta.name == name and meta.deletion_timestamp is None:
            managedresources.deploy_for_shoot(
                client, meta.namespace, name, documents, origin=origin
            )
