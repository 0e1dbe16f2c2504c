"""An extension object whose work is in a shoot, and the shoot as its resource manager sees it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import builders
from harness import Seed

from actuator.interface import Client, Resource
from actuator.meta import Object, Raw
from generic.kube.crds import crd
from generic.kube.delegating import DelegatingClient
from generic.library.managedresources import MANAGED_RESOURCES, ManagedResource
from generic.reconciler.orphans import ORPHANS, SHOOT_LABEL
from generic.testing.drill.shoots import ShootManager, Shoots
from generic.testing.polling import polling
from generic.testing.seed import install_crds

__all__ = ["Extended", "shoot_managers"]


@contextmanager
def shoot_managers(admin: Client, namespace: str) -> Iterator[Shoots]:
    """The shoots, with a resource manager for the one of this namespace."""
    install_crds(admin, [crd(ManagedResource)])
    found = Shoots()
    with polling(ShootManager(OneShoot(admin, namespace), found).poll, "shoot-manager"):
        yield found


class OneShoot(DelegatingClient):
    """A seed as one shoot's resource manager sees it; the others' are tests of their own."""

    def __init__(self, client: Client, namespace: str) -> None:
        super().__init__(client)
        self._namespace = namespace

    def list(
        self, resource: Resource, namespace: str = "", *, label_selector: str = ""
    ) -> list[Raw]:
        if resource.namespaced:
            return self._inner.list(resource, self._namespace, label_selector=label_selector)
        found = self._inner.list(resource, label_selector=label_selector)
        return [one for one in found if one["metadata"]["name"] == self._namespace]


class Extended(Seed):
    """One extension object of one shoot."""

    def __init__(self, seed: Seed, shoots: Shoots, cls: type[Object]) -> None:
        super().__init__(seed.client, seed.namespace, cls, "x")
        self.shoots = shoots

    def deploy(self, operation: str = "reconcile", **spec: object) -> None:
        """As gardenlet does."""
        manifest = {
            "apiVersion": self.kind.api_version,
            "kind": self.kind.name,
            "metadata": {"name": self.name, "namespace": self.namespace},
            "spec": {"type": self.namespace, **spec},
        }
        self.garden.deploy(manifest, operation)

    def inside(self) -> set[tuple[str, str]]:
        """Kind and name of all that is in the shoot."""
        found = (one for one in self.shoots.contents() if one.tags["shoot"] == self.namespace)
        return {(one.type, one.tags["object"]) for one in found}

    def managed(self, name: str) -> Raw:
        """A ManagedResource of it. Raises NotFound."""
        return self.client.get(MANAGED_RESOURCES, name, self.namespace)

    def orphans(self) -> list[Raw]:
        """What is on record as left outside."""
        return self.client.list(ORPHANS, label_selector=f"{SHOOT_LABEL}={self.namespace}")

    def force(self) -> None:
        """The user confirms force deletion."""
        self.update_cluster(builders.cluster(self.namespace, force="true"))
