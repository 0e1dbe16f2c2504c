"""CRDs of seeds for drills, tests and local runs, and the part of a seed that is one shoot's.

On a user's cluster only for `actuator dev --kubeconfig`, which the user asked for.
"""

import builtins
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from actuator.errors import AlreadyExists, ApiError
from actuator.interface import Client, Resource
from actuator.meta import Object, Raw
from generic.kube.client import connect
from generic.kube.crds import crd
from generic.kube.delegating import DelegatingClient
from generic.testing.envtest.access import ClusterAccess

CRDS = Resource("apiextensions.k8s.io/v1", "customresourcedefinitions", namespaced=False)
_ESTABLISH_SECONDS = 120.0


def install(environment: ClusterAccess, classes: Iterable[type[Object]]) -> None:
    """Install the CRDs of these classes into the environment. Raises ApiError."""
    install_crds(connect(environment.kubeconfig), classes)


def install_crds(client: Client, crds: Iterable[Raw | type[Object]]) -> list[Resource]:
    """Create these CRDs, or those of these classes, where missing; return their resources.

    Waits until they are served. Raises ApiError.
    """
    wanted = [item if isinstance(item, dict) else crd(item) for item in crds]
    for manifest in wanted:
        with suppress(AlreadyExists):
            client.create(CRDS, manifest)
    deadline = time.monotonic() + _ESTABLISH_SECONDS
    for manifest in wanted:
        while not _is_served(client, manifest):
            if time.monotonic() > deadline:
                raise ApiError(0, f"CRD {manifest['metadata']['name']} is not being served")
            time.sleep(0.05)
    return [*map(resource_of_crd, wanted)]


class OneShoot(DelegatingClient):
    """A client of the seed whose lists have only the objects of one shoot."""

    def __init__(self, inner: Client, shoot: str) -> None:
        super().__init__(inner)
        self._shoot = shoot

    def list(self, resource: Any, namespace: str = "", **selection: Any) -> builtins.list[Any]:
        """See Client."""
        if resource.namespaced:
            return self._inner.list(resource, self._shoot, **selection)
        found = self._inner.list(resource, **selection)
        return [obj for obj in found if obj["metadata"]["name"] == self._shoot]


def resource_of_crd(manifest: Raw) -> Resource:
    """Return the resource of a CRD, in its first version."""
    spec = manifest["spec"]
    version = f"{spec['group']}/{spec['versions'][0]['name']}"
    return Resource(version, spec["names"]["plural"], namespaced=spec["scope"] == "Namespaced")


def _is_served(client: Client, manifest: Raw) -> bool:
    """Return whether requests succeed: right after Established they still fail with 429."""
    try:
        client.list(resource_of_crd(manifest))
    except ApiError:
        return False
    return True
