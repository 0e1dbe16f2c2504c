"""ShootState: the state of a shoot's extensions that a migration copies to another seed.

Source: gardener `pkg/utils/gardener/shootstate` and `pkg/extensions/customresources.go`
(RestoreExtensionWithDeployFunction). Not here: resources of the garden.
"""

from collections.abc import Iterable, Iterator, Sequence

import attrs

from actuator.errors import ActuatorError
from actuator.interface import SECRETS, Client, resource_of
from actuator.meta import Kind, Raw
from generic.library.lookup import find, find_all
from generic.library.machines import DEPLOYMENT_NAME, MACHINE_DEPLOYMENTS, MACHINE_SETS, MACHINES
from generic.testing.garden.gardenlet import Garden, SeedShoot, create_missing, resource_of_manifest


@attrs.frozen(kw_only=True)
class ExtensionState:
    """The status.state and status.resources of one extension object."""

    kind: str
    name: str
    state: Raw | None = None
    resources: Sequence[Raw] = ()


@attrs.frozen(kw_only=True)
class ShootState:
    """The state of one shoot.

    `resources` are the objects that the extensions refer to, and its persistent Secrets.
    """

    extensions: Sequence[ExtensionState] = ()
    resources: Sequence[Raw] = ()

    def of(self, kind: str, name: str) -> ExtensionState:
        """Return the state of one object; an empty one if there is none."""
        empty = ExtensionState(kind=kind, name=name)
        return next((e for e in self.extensions if (e.kind, e.name) == (kind, name)), empty)


def collect(garden: Garden, shoot: SeedShoot, kinds: Iterable[Kind]) -> ShootState:
    """Return the state of all objects that are not being deleted.

    Raises ActuatorError if an object refers to an object that does not exist, or if an extension
    set the state of a Worker: both make gardenlet's ShootState fail.
    """
    extensions = [
        _extension_state(garden, shoot, kind, obj)
        for kind in kinds
        if kind.migratable
        for obj in garden.objects(kind, shoot)
        if obj["metadata"].get("deletionTimestamp") is None
    ]
    found: dict[tuple[str, str], Raw] = {}
    for extension in extensions:
        for reference in extension.resources:
            ref = reference["resourceRef"]
            found[ref["kind"], ref["name"]] = _referenced(garden.client, shoot, extension, ref)
    kept = find_all(garden.client, SECRETS, shoot.technical_id, "persist=true")
    return ShootState(extensions=extensions, resources=[*found.values(), *map(bare, kept)])


def put_back_resources(client: Client, shoot: SeedShoot, state: ShootState) -> None:
    """Create the referenced objects in the shoot's namespace; existing ones are kept."""
    for resource in state.resources:
        meta = {**resource["metadata"], "namespace": shoot.technical_id}
        create_missing(client, {**resource, "metadata": meta})


def put_back(client: Client, kind: Kind, obj: Raw, state: ExtensionState) -> None:
    """Set status.state and status.resources where they are empty."""
    status = obj.get("status") or {}
    wanted: Raw = {}
    if state.state is not None and status.get("state") is None:
        wanted["state"] = state.state
    if state.resources and not status.get("resources"):
        wanted["resources"] = list(state.resources)
    if wanted:
        meta = obj["metadata"]
        where = (resource_of(kind), meta["name"], meta.get("namespace", ""))
        client.patch(*where, {"status": wanted}, subresource="status")


def _extension_state(garden: Garden, shoot: SeedShoot, kind: Kind, obj: Raw) -> ExtensionState:
    status = obj.get("status") or {}
    name = obj["metadata"]["name"]
    state = status.get("state")
    if kind.name == "Worker":
        if state is not None:
            raise ActuatorError(
                f"Worker {shoot.technical_id}/{name}: status.state is set, but gardenlet writes "
                "the state of machines itself; leave it alone"
            )
        state = _machine_state(garden.client, shoot.technical_id)
    resources = status.get("resources") or []
    return ExtensionState(kind=kind.name, name=name, state=state, resources=resources)


def _referenced(client: Client, shoot: SeedShoot, extension: ExtensionState, ref: Raw) -> Raw:
    """Return the object without the fields that the API server adds."""
    resource = resource_of_manifest({**ref, "metadata": {"namespace": shoot.technical_id}})
    found = find(client, resource, ref["name"], shoot.technical_id)
    if found is None:
        raise ActuatorError(
            f"{extension.kind} {shoot.technical_id}/{extension.name}: status.resources names "
            f"{ref['kind']} {ref['name']}, which does not exist; keep it, or remove the entry"
        )
    return {**bare(found), "apiVersion": ref["apiVersion"], "kind": ref["kind"]}


def bare(obj: Raw) -> Raw:
    """Return the object without the fields that the API server and controllers write."""
    kept = ("name", "namespace", "labels", "annotations")
    meta = {key: value for key, value in obj["metadata"].items() if key in kept}
    return {**{k: v for k, v in obj.items() if k != "status"}, "metadata": meta}


def _machine_state(client: Client, namespace: str) -> Raw | None:
    """Return each machine deployment with its sets and machines (MachineState in shootstate)."""
    deployments = find_all(client, MACHINE_DEPLOYMENTS, namespace)
    sets = find_all(client, MACHINE_SETS, namespace)
    machines = find_all(client, MACHINES, namespace)
    states: Raw = {}
    for deployment in deployments:
        name = deployment["metadata"]["name"]
        states[name] = {
            "replicas": deployment["spec"].get("replicas", 0),
            "machineSets": list(_belonging(name, sets)),
            "machines": list(_belonging(name, machines)),
        }
    return {"machineDeployments": states} if states else None


def _belonging(deployment: str, objects: Iterable[Raw]) -> Iterator[Raw]:
    for obj in objects:
        if (obj["metadata"].get("labels") or {}).get(DEPLOYMENT_NAME) == deployment:
            yield bare(obj)
