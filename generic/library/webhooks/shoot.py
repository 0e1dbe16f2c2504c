"""Webhooks in shoots: their configurations, in the ManagedResource of a control plane.

A shoot's API server runs in the seed and reaches the Service of the extension by its name there.
`GenericControlPlane.shoot_webhooks` returns the manifests; `refresh` updates those that are
deployed when the authorities change, which happens long before a certificate needs them.
"""

import logging
from collections.abc import Iterable

import attrs

from actuator.codec import decode
from actuator.errors import ActuatorError, ApiError, NotFound, RequeueAfter
from actuator.interface import Client, Permission
from actuator.meta import Raw
from generic.library import managedresources
from generic.library.managedresources import ManagedResource
from generic.library.managedresources.kind import MANAGED_RESOURCES, ORIGIN
from generic.library.webhooks.configurations import Endpoint, Mode, configurations
from generic.library.webhooks.webhook import Webhook, WebhookTarget

logger = logging.getLogger(__name__)

NAME = "extension-controlplane-shoot-webhooks"
SUFFIX = "-shoot"


def permissions() -> list[Permission]:
    """Return the permissions of `refresh`."""
    return [MANAGED_RESOURCES.permission("list"), *managedresources.PERMISSIONS]


def manifests(webhooks: Iterable[Webhook], endpoint: Endpoint, authorities: bytes) -> list[Raw]:
    """Return the configurations of the webhooks for shoots."""
    if endpoint.mode is Mode.SERVICE:
        endpoint = attrs.evolve(endpoint, mode=Mode.URL_SERVICE)
    wanted = [webhook for webhook in webhooks if webhook.target is WebhookTarget.SHOOT]
    return [config for _, config in configurations(wanted, endpoint, authorities, suffix=SUFFIX)]


def refresh(client: Client, wanted: Iterable[Raw], origin: str) -> bool:
    """Update every ManagedResource NAME of this origin; return whether all have the manifests.

    It creates none, and leaves those under deletion alone. A shoot in which it fails does not
    affect the others. Raises ApiError if the list fails.
    """
    documents = list(wanted)
    is_complete = True
    selector = f"{ORIGIN}={origin}"
    for found in client.list(MANAGED_RESOURCES, label_selector=selector):
        managed = decode(ManagedResource, found)
        meta = managed.metadata
        if meta.name != NAME or meta.deletion_timestamp is not None:
            continue
        try:
            managedresources.update(client, managed, documents, origin=origin)
        except NotFound:  # the shoot is being deleted
            continue
        except (ActuatorError, ApiError, RequeueAfter) as error:
            is_complete = False
            fields = {"namespace": meta.namespace, "error": str(error)}
            logger.warning("webhooks in shoot not updated", extra={"fields": fields})
    return is_complete
