"""CustomResourceDefinitions of others that this extension needs in a seed, for rehearsals.

In a real seed the AWS load balancer controller's chart, and gardenlet, install them whole.
"""

from __future__ import annotations

from actuator.meta import Raw
from extensions.aws.seed import BINDINGS


def binding_crd() -> Raw:
    """TargetGroupBinding, cut down to the fields in use."""
    reference = {
        "type": "object",
        "required": ["name", "port"],
        "properties": {
            "name": {"type": "string"},
            "port": {"x-kubernetes-int-or-string": True},
        },
    }
    spec = {
        "type": "object",
        "required": ["serviceRef"],
        "properties": {
            "targetGroupName": {"type": "string"},
            "targetGroupARN": {"type": "string"},
            "targetType": {"type": "string", "enum": ["instance", "ip"]},
            "serviceRef": reference,
        },
    }
    properties = {
        "spec": spec,
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    }
    group, _, version = BINDINGS.api_version.partition("/")
    kind = "TargetGroupBinding"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{BINDINGS.plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {
                "kind": kind,
                "listKind": f"{kind}List",
                "plural": BINDINGS.plural,
                "singular": kind.lower(),
            },
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
                    "subresources": {"status": {}},
                }
            ],
        },
    }
