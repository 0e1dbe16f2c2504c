"""The objects that gardenlet itself removes from a shoot's namespace, finalizers included.

Only in the namespace of the shoot. Source: gardener `pkg/gardenlet/operation/botanist`
(managedresources.go, migration.go, etcd.go) and `pkg/gardenlet/controller/shoot/shoot/cleaner.go`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress

import attrs

from actuator.errors import Conflict, Invalid, NotFound
from actuator.interface import CONFIG_MAPS, SECRETS, Client, Resource
from actuator.meta import Raw, conditions_in, value_at
from generic.kube.deleting import CONFIRM_DELETION
from generic.kube.finalizers import remove_finalizers
from generic.library.lookup import find_all
from generic.library.machines import (
    MACHINE_CLASSES,
    MACHINE_DEPLOYMENTS,
    MACHINE_SETS,
    MACHINES,
    MC_FINALIZER,
    MCM_FINALIZER,
)
from generic.library.managedresources.kind import MANAGED_RESOURCES

_MACHINES = [MACHINE_DEPLOYMENTS, MACHINE_SETS, MACHINES, MACHINE_CLASSES]
_ETCDS = Resource("druid.gardener.cloud/v1alpha1", "etcds")
_OF_CLASSES = "gardener.cloud/purpose=machineclass"
_OF_CLOUD = "gardener.cloud/purpose=cloudprovider"
_OF_GARDENLET = "origin=gardener"
CONFIRM: Raw = {"metadata": {"annotations": {CONFIRM_DELETION: "true"}}}
_OF_MCM = frozenset({MCM_FINALIZER, MC_FINALIZER})


class _Everything(frozenset[str]):
    """Contains every name."""

    def __contains__(self, _name: object) -> bool:
        return True


ALL = _Everything("*")
"""All finalizers."""


@attrs.frozen(kw_only=True)
class Own:
    """Objects that gardenlet deletes itself: `of` these resources, with a label, `which` ones.

    It writes `patch`, deletes, removes the finalizers `strips`, and waits `seconds` for their end.
    """

    of: Sequence[Resource] = (MANAGED_RESOURCES,)
    selector: str = ""
    which: Callable[[Raw], bool] = lambda _obj: True
    patch: Raw | None = None
    deletes: bool = True
    strips: frozenset[str] = frozenset()
    seconds: float = 30.0

    def act(self, client: Client, namespace: str) -> None:
        """Patch, delete and strip the objects, without waiting; in all namespaces if "".

        An object that is deleted or replaced meanwhile is done, and its replacement is not changed:
        a controller may create it again at once, such as kube-root-ca.crt. Raises ApiError.
        """
        for resource, obj in self._objects(client, namespace):
            meta = obj["metadata"]
            where = (resource, meta["name"], meta.get("namespace", ""))
            uid = meta["uid"]
            with suppress(NotFound, Conflict):
                if self.patch is not None:
                    _merge(client, where, uid, self.patch)
                if self.deletes:
                    client.delete(*where, uid=uid)
                if not self.strips:
                    continue
                current = client.get(*where)
                if current["metadata"]["uid"] == uid:
                    remove_finalizers(client, resource, current, self.strips)

    def left(self, client: Client, namespace: str) -> list[str]:
        """Return the objects it still waits for, with the message of a resource manager."""
        found = self._objects(client, namespace) if self.seconds else ()
        return [_described(resource, obj) for resource, obj in found]

    def _objects(self, client: Client, namespace: str) -> Iterator[tuple[Resource, Raw]]:
        for resource in self.of:
            found = find_all(client, resource, namespace, self.selector)
            yield from ((resource, obj) for obj in found if self.which(obj))


def _merge(client: Client, where: tuple[Resource, str, str], uid: str, patch: Raw) -> None:
    """Merge the patch into the object with this uid, if it still exists. Raises ApiError."""
    try:
        client.patch(*where, {**patch, "metadata": {**patch.get("metadata", {}), "uid": uid}})
    except Invalid:
        if client.get(*where)["metadata"]["uid"] == uid:
            raise


def _described(resource: Resource, obj: Raw) -> str:
    said = value_at(conditions_in(obj.get("status")), "ResourcesApplied", "message")
    return f"{resource.plural} {obj['metadata']['name']}{f' ({said})' if said else ''}"


def _is_of_shoot(mr: Raw) -> bool:
    return not mr["spec"].get("class")


OWN: Mapping[str, Sequence[Own]] = {
    "machines": [Own(of=_MACHINES, strips=ALL)],
    "kept-machines": [  # the machines themselves stay
        Own(of=_MACHINES, strips=_OF_MCM, seconds=300.0),
        Own(of=[SECRETS], selector=_OF_CLASSES, strips=_OF_MCM),
        Own(of=[SECRETS], selector=_OF_CLOUD, strips=_OF_MCM, deletes=False, seconds=0.0),
    ],
    "own-managedresources": [Own(selector=_OF_GARDENLET, seconds=600.0)],
    "kept-managedresources": [
        Own(selector=_OF_GARDENLET, patch={"spec": {"keepObjects": True}}, seconds=600.0)
    ],
    "shoot-managedresources": [Own(which=_is_of_shoot, deletes=False)],  # extensions delete them
    "managedresources": [  # the resource manager in the seed has to finish those of its class
        Own(patch={"spec": {"keepObjects": False}}),
        Own(which=_is_of_shoot, strips=ALL),
    ],
    "etcds": [Own(of=[_ETCDS], patch=CONFIRM, seconds=300.0)],
    "configmaps-secrets": [Own(of=[CONFIG_MAPS, SECRETS], strips=ALL, seconds=0.0)],
}
"""gardenlet's own objects, by the names that `order` uses."""
