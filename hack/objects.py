"""Manifests of Infrastructures for the programs in this folder."""

from typing import Any

from actuator.meta import Raw
from actuator.v1alpha1 import Infrastructure
from generic.library.manifests import manifest_of


def infrastructure(namespace: str, name: str, type_: str, **spec: Any) -> Raw:
    """Return the manifest of an Infrastructure; `spec` are additional fields of its spec."""
    secret = {"name": "cloudprovider", "namespace": namespace}
    wanted = {"type": type_, "region": "eu-1", "secretRef": secret, **spec}
    return manifest_of(Infrastructure, name, namespace, spec=wanted)
