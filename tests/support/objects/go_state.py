"""Objects that an extension on Gardener's Go library leaves in a seed, by its documentation.

Sources: gardener `extensions/pkg/controller/controlplane/genericactuator`,
`pkg/utils/managedresources`, `docs/extensions`. Nothing here comes from our product code.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from actuator.interface import Client, Resource

__all__ = ["PARTS", "deploy_part", "ready_object", "reference"]

SECRETS = Resource("v1", "secrets")
MANAGED_RESOURCES = Resource("resources.gardener.cloud/v1alpha1", "managedresources")
API = "extensions.gardener.cloud/v1alpha1"
NO_CLEANUP = {"shoot.gardener.cloud/no-cleanup": "true"}

PARTS: dict[str, dict[str, Any]] = {
    "extension-controlplane-configuration-seed": {"class": "seed"},
    "extension-controlplane-seed": {"class": "seed"},
    "extension-controlplane-shoot": {
        "injectLabels": NO_CLEANUP,
        "keepObjects": False,
        "forceOverwriteAnnotations": False,
    },
    "extension-controlplane-shoot-crds": {
        "injectLabels": NO_CLEANUP,
        "keepObjects": False,
        "forceOverwriteAnnotations": False,
    },
    "extension-controlplane-storageclasses": {
        "injectLabels": NO_CLEANUP,
        "keepObjects": False,
        "forceOverwriteAnnotations": True,
    },
    "extension-controlplane-shoot-webhooks": {},
}
"""The spec of each ManagedResource of a control plane, but for its Secret."""


def reference(secret_name: str) -> dict[str, str]:
    """The annotation that keeps the garbage collector from a Secret in use."""
    digest = sha256(secret_name.encode()).hexdigest()[:8]
    return {f"reference.resources.gardener.cloud/secret-{digest}": secret_name}


def deploy_part(client: Client, namespace: str, name: str, manifests: Sequence[Any]) -> str:
    """Deploys a ManagedResource with its Secret as Go does; returns the Secret's name."""
    text = "".join(f"\n---\n{json.dumps(manifest)}" for manifest in manifests)
    digest = sha256(text.encode()).hexdigest()[:8]
    secret_name = f"{name}-{digest}"
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": secret_name,
            "namespace": namespace,
            "labels": {"resources.gardener.cloud/garbage-collectable-reference": "true"},
        },
        "immutable": True,
        "type": "Opaque",
        "data": {"seed-controlplane": base64.b64encode(text.encode()).decode()},
    }
    client.apply(SECRETS, secret, field_manager="provider")
    spec = {**PARTS[name], "secretRefs": [{"name": secret_name}]}
    existing = [
        obj for obj in client.list(MANAGED_RESOURCES, namespace) if obj["metadata"]["name"] == name
    ]
    meta = {"name": name, "namespace": namespace, "annotations": reference(secret_name)}
    if not existing:
        manifest = {"apiVersion": MANAGED_RESOURCES.api_version, "kind": "ManagedResource"}
        client.create(MANAGED_RESOURCES, {**manifest, "metadata": meta, "spec": spec})
    else:  # labels stay, reference annotations and spec are replaced
        patch = [
            {"op": "add", "path": "/metadata/annotations", "value": meta["annotations"]},
            {"op": "add", "path": "/spec", "value": spec},
        ]
        client.patch(MANAGED_RESOURCES, name, namespace, patch)
    return secret_name


def ready_object(
    client: Client, kind: str, plural: str, finalizer: str, meta: Any, spec: Any, **status: Any
) -> Any:
    """Creates an extension object that Go reconciled successfully; returns it."""
    resource = Resource(API, plural, namespaced="namespace" in meta)
    manifest = {"apiVersion": API, "kind": kind, "metadata": {**meta, "finalizers": [finalizer]}}
    made = client.create(resource, {**manifest, "spec": spec})
    operation = {
        "description": f"Successfully reconciled {kind.lower()}",
        "lastUpdateTime": "2026-01-01T00:00:00Z",
        "progress": 100,
        "state": "Succeeded",
        "type": "Reconcile",
    }
    patch = {"status": {"lastOperation": operation, "observedGeneration": 1, **status}}
    where = (made["metadata"]["name"], made["metadata"].get("namespace", ""))
    return client.patch(resource, *where, patch, subresource="status")
