"""A simulated garden: the embedded cluster with a CRD for Shoots, without Gardener's own rules."""

from __future__ import annotations

from actuator.interface import Client, resource_of
from actuator.meta import Raw
from generic.testing.seed import CRDS, install_crds
from generic.tools.explain.shoot import SHOOT

SHOOTS = resource_of(SHOOT)
_SCHEMA = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_CRD: Raw = {
    "apiVersion": CRDS.api_version,
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"{SHOOT.plural}.{SHOOT.group}"},
    "spec": {
        "group": SHOOT.group,
        "names": {"kind": SHOOT.name, "plural": SHOOT.plural, "listKind": "ShootList"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": SHOOT.version,
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": _SCHEMA},
            }
        ],
    },
}


def install_garden(admin: Client) -> None:
    """Serve Shoots. The definition stays: it disturbs no other test of the cluster."""
    install_crds(admin, [_CRD])
