"""Take-over: our extension continues shoots that an extension on Gardener's Go library served.

A manager of ours simulates that extension; `_leave` rewrites its ManagedResources as the Go
library deploys them.
"""

from hashlib import sha256

from actuator.interface import SECRETS, Client
from actuator.meta import Raw
from generic.kube.patches import add, remove
from generic.library.lookup import find_all
from generic.library.managedresources.kind import MANAGED_RESOURCES
from generic.library.managedresources.ours import GO_LIBRARY
from generic.library.references import GARBAGE_COLLECTABLE
from generic.testing.drill.evidence import Bystander
from generic.testing.drill.run import DrillRun
from generic.testing.drill.world import manager_for, serving
from generic.testing.garden import GardenletFlows, SeedShoot
from generic.testing.polling import parallel

SCENARIO = "take-over"


class TakeOver(DrillRun):
    """A former extension creates the shoots; ours takes over, and then they are force-deleted."""

    def play(self) -> None:
        """See Run."""
        world = self._world
        former = manager_for(world.actuators, [world.names.type], world.manager.options)
        with serving(former):
            self.set_up()
        self._take_over()
        self.get_stuck("After a take-over from a Go extension: ")
        self.force()

    def _take_over(self) -> None:
        """Let our manager reconcile all existing objects, none of which may be deleted.

        Raises ActuatorError if an object does not become ready.
        """
        self.act("Taking over from a Go extension")
        before = self._managed()
        left = [obj for obj in before if obj["metadata"]["name"] in GO_LIBRARY]
        for managed in left:
            _leave(self._world.admin, managed)
        if not left:
            problem = "the rehearsal has none, so no take-over was rehearsed"
            none = Bystander(name="ManagedResources of the Go library", problem=problem)
            self.evidence.bystanders.append(none)
        self.start_manager()
        parallel(self._shoots, self._reconcile)
        kept = {managed["metadata"]["uid"] for managed in self._managed()}
        for meta in (managed["metadata"] for managed in before):
            lost = None if meta["uid"] in kept else "deleted or replaced by the take-over"
            name = f"ManagedResource {meta['name']}"
            self.evidence.bystanders.append(Bystander(name=name, problem=lost))
        self.evidence.resources_before = list(self._rehearsal.remaining_resources())

    def _reconcile(self, shoot: SeedShoot) -> None:
        manifests = self._rehearsal.manifests(self._world.names.rehearsed(shoot))
        patience = self._settings.patience
        GardenletFlows(self._garden, shoot, self._world.kinds, patience=patience).reconcile(
            manifests
        )

    def _managed(self) -> list[Raw]:
        """Return the ManagedResources of all shoots."""
        client = self._world.admin
        names = [shoot.technical_id for shoot in self._shoots]
        return [item for name in names for item in find_all(client, MANAGED_RESOURCES, name)]


def _leave(client: Client, managed: Raw) -> None:
    """Remove our labels and annotations; give the Secret a name in the Go library's form."""
    name = managed["metadata"]["name"]
    namespace = managed["metadata"]["namespace"]
    [ours] = managed["spec"]["secretRefs"]
    secret = client.get(SECRETS, ours["name"], namespace)
    theirs = {"name": f"{name}-{sha256(repr(secret['data']).encode()).hexdigest()[:8]}"}
    meta = {**theirs, "namespace": namespace, "labels": {GARBAGE_COLLECTABLE: "true"}}
    client.create(SECRETS, {**secret, "metadata": meta})
    bare = [remove("/metadata/labels"), remove("/metadata/annotations")]
    client.patch(MANAGED_RESOURCES, name, namespace, [*bare, add("/spec/secretRefs", [theirs])])
    client.delete(SECRETS, ours["name"], namespace)
