"""The writes with which a scheduler binds a pod, and a kubelet removes it.

Not here: when they are due (`kubelet` for a seed, `nodes` for a shoot).
"""

import json

from actuator.meta import Raw
from generic.kube.client import HttpClient, path_of
from generic.testing.landscape.caches import PODS


def bind(client: HttpClient, meta: Raw, node: str) -> None:
    """Assign the pod with this metadata to a node. Raises ApiError."""
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    binding = {"metadata": {"name": meta["name"], "uid": meta["uid"]}, "target": target}
    path = path_of(PODS, meta["namespace"], meta["name"], "binding")
    client.send("POST", path, body=json.dumps(binding).encode())


def delete_now(client: HttpClient, meta: Raw) -> None:
    """Remove the pod with this metadata, whose containers have ended. Raises ApiError."""
    options = {"gracePeriodSeconds": 0, "preconditions": {"uid": meta["uid"]}}
    path = path_of(PODS, meta["namespace"], meta["name"])
    client.send("DELETE", path, body=json.dumps(options).encode())
