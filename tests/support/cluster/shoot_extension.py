"""An extension object whose work is in a shoot, and the shoot as its resource manager sees it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from actuator.interface import Client
from actuator.meta import Object, Raw
from generic.kube.crds import crd
from generic.library.managedresources import ManagedResource
from generic.library.managedresources.kind import MANAGED_RESOURCES
from generic.reconciler.orphans import ORPHANS, SHOOT_LABEL
from generic.testing.polling import polling
from generic.testing.seed import OneShoot, install_crds
from generic.testing.shoots import ShootManager, Shoots
from tests.support.cluster.harness import Seed
from tests.support.objects import builders

__all__ = ["Extended", "shoot_managers"]


@contextmanager
def shoot_managers(admin: Client, namespace: str) -> Iterator[Shoots]:
    """The shoots, with a resource manager for the one of this namespace."""
    install_crds(admin, [crd(ManagedResource)])
    found = Shoots()
    with polling(ShootManager(OneShoot(admin, namespace), found).poll, "shoot-manager"):
        yield found


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
        found = (
            content for content in self.shoots.contents() if content.tags["shoot"] == self.namespace
        )
        return {(resource.type, resource.tags["object"]) for resource in found}

    def managed(self, name: str) -> Raw:
        """A ManagedResource of it. Raises NotFound."""
        return self.client.get(MANAGED_RESOURCES, name, self.namespace)

    def orphans(self) -> list[Raw]:
        """The recorded external resources."""
        return self.client.list(ORPHANS, label_selector=f"{SHOOT_LABEL}={self.namespace}")

    def force(self) -> None:
        """The user confirms force deletion."""
        self.update_cluster(builders.cluster(self.namespace, force="true"))
