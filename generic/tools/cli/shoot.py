"""`actuator shoot`: plays gardenlet for shoots in the cluster of `actuator dev`, or in a seed.

It changes only namespaces, Clusters and cluster-scoped objects with the labels of the shoot, and
objects in these namespaces.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import attrs
import click
import msgspec

from actuator.cluster import Cluster
from actuator.codec import decode, decode_at
from actuator.errors import ConfigurationError, Invalid
from actuator.interface import Client, Resource
from actuator.meta import Kind, Object, Raw
from actuator.schema import structural
from actuator.v1alpha1 import KINDS
from generic.kube.client import HttpClient, connect
from generic.kube.clusters import CLUSTERS, NAMESPACES
from generic.kube.printable import echo
from generic.library.lookup import find
from generic.library.manifests import manifest, manifest_of
from generic.manager.manager import Manager
from generic.manager.registry import Registration
from generic.reconciler.orphans.ledger import read_orphans
from generic.testing.garden import SHOOT, Flow, Garden, Shoot, ShootState, resource_of_manifest
from generic.testing.garden.order import ON_REQUEST
from generic.testing.garden.state import bare
from generic.tools.cli.development import current
from generic.tools.cli.env import progress, validated
from generic.tools.cli.load import populate, types_option, with_flags
from generic.tools.config_manifests import documents

_SECRETS, _CREDENTIALS = Resource("v1", "secrets"), "cloudprovider"
_MARK, _USER = "app.kubernetes.io/managed-by", "actuator-shoot"
_OURS = f"{_MARK}={_USER}"
_EMPTY = {"array": [], "boolean": False, "integer": 0, "number": 0, "object": {}}


def shoot_named(name: str) -> Shoot:
    """Return the shoot of this name, in the project `dev`."""
    id = f"shoot--dev--{name}"
    labels = {_MARK: _USER, SHOOT: id}
    return Shoot(technical_id=id, name=name, project="dev", region="local", labels=labels)


def prepare(client: Client, shoot: Shoot) -> None:
    """Create namespace, Cluster and Secret of the shoot, unless it exists. Raises ApiError."""
    if not _exists(client, shoot, NAMESPACES, CLUSTERS):
        Garden(client).create_namespace(shoot)
        where = (_CREDENTIALS, shoot.technical_id, shoot.labels)
        client.create(_SECRETS, manifest("v1", "Secret", *where, type="Opaque"))


def _exists(client: Client, shoot: Shoot, *resources: Resource, name: str = "") -> bool:
    """Return whether it has one of these objects. Raises ConfigurationError for those of others."""
    found = [find(client, one, name or shoot.technical_id) for one in resources]
    for one in filter(None, found):
        if not shoot.labels.items() <= (one["metadata"].get("labels") or {}).items():
            what = f"{one['kind']} {one['metadata']['name']}"
            raise ConfigurationError(f"{what} is not of this shoot; choose another name")
    return any(found)


def _last_operation(cluster: Cluster) -> str:
    operation = (cluster.shoot.get("status") or {}).get("lastOperation") or {}
    return f"{operation.get('type')} {operation.get('state')}"


@attrs.frozen(kw_only=True)
class _Play:
    """gardenlet's acts for a shoot; each returns the result, for people."""

    client: Client
    shoot: Shoot
    served: Sequence[Registration]
    kinds: Mapping[str, Kind]
    flow: Flow
    file: BinaryIO | None

    def create(self) -> str:
        """Create a shoot, and wait until its objects are ready."""
        if self._state.exists():
            raise ConfigurationError(f"{self._state} exists; restore the shoot, or remove the file")
        prepare(self.client, self.shoot)
        if _last_operation(self._cluster) != "Create Processing":
            raise ConfigurationError(f"shoot {self.shoot.name} exists; reconcile it instead")
        return self._reconcile("created", type="Create")

    def reconcile(self) -> str:
        """Reconcile all objects, create the missing ones, and wait until they are ready."""
        self.flow.ask([self.kinds[name] for name in ON_REQUEST], "reconcile")
        return self._reconcile("reconciled", hibernated=self._cluster.hibernation_enabled)

    def hibernate(self) -> str:
        """Hibernate a shoot."""
        return self._reconcile("hibernated", hibernated=True)

    def wake(self) -> str:
        """Wake up a hibernated shoot."""
        return self._reconcile("awake")

    def migrate(self) -> str:
        """Migrate a shoot away from this seed, and write its state into a file."""
        self.flow.migrate(self._keep)
        return f"migrated; its state is in {self._state}"

    def restore(self) -> str:
        """Restore a migrated shoot from the file with its state."""
        try:
            state = msgspec.json.decode(self._state.read_bytes(), type=ShootState)
        except (OSError, msgspec.MsgspecError) as error:
            raise ConfigurationError(f"{error}; run `actuator shoot migrate` before") from error
        self.flow.restore(self._manifests(), state)
        self._state.unlink()
        return "restored"

    def delete(self) -> str:
        """Delete a shoot, and wait until all its objects are deleted."""
        self.flow.delete(self._manifests())
        return "deleted"

    def force_delete(self) -> str:
        """Force the deletion of a shoot, wait until it is deleted, and print its Orphans."""
        self.flow.force_delete()
        self.flow.delete_afterwards()
        found = [one for one in read_orphans(self.client) if one.is_open]
        left = [one for one in found if one.spec.shoot == self.shoot.technical_id]
        lines = [f"  {one.metadata.name}: {one.spec.resource}" for one in left]
        return "\n".join([f"deleted; open orphans: {len(left)}", *lines])

    @property
    def _cluster(self) -> Cluster:
        return decode(Cluster, find(self.client, CLUSTERS, self.shoot.technical_id) or {})

    @property
    def _state(self) -> Path:
        return Path(f"{self.shoot.name}.shootstate.json")

    def _keep(self, state: ShootState) -> None:
        """Write the state, with the shoot's Secrets, unless an interrupted migration did."""
        found = self.client.list(_SECRETS, self.shoot.technical_id, label_selector=_OURS)
        if not self._state.exists():
            self._state.touch(mode=0o600)
            resources = [*state.resources, *map(bare, found)]
            self._state.write_bytes(msgspec.json.encode(attrs.evolve(state, resources=resources)))

    def _reconcile(self, result: str, type: str = "Reconcile", *, hibernated: bool = False) -> str:
        manifests = self._manifests()
        for one in manifests:
            resource = resource_of_manifest(one)
            if resource.group != CLUSTERS.group:  # the flow only creates them
                self.client.apply(resource, one, field_manager=_USER)
        self.flow.reconcile(manifests, type=type, hibernated=hibernated)
        return result

    def _manifests(self) -> list[Raw]:
        given = filter(None, documents(self.file)) if self.file else self._minimal()
        if found := [self._placed(one) for one in given]:
            return found
        raise ConfigurationError("the shoot has no objects; set --extension or --file")

    def _placed(self, given: Any) -> Raw:
        """Return a manifest with the namespace and the labels of the shoot."""
        where, id = self.file.name if self.file else "", self.shoot.technical_id
        obj, spec = decode_at(Object, given, where), given.get("spec", {})
        if not (obj.api_version and obj.kind and obj.metadata.name and isinstance(spec, dict)):
            raise ConfigurationError(f"{where}: set apiVersion, kind, metadata.name and spec")
        kind = self.kinds.get(obj.kind)
        meta = {**given["metadata"], "labels": {**obj.metadata.labels, **self.shoot.labels}}
        if kind is None or kind.namespaced:
            meta["namespace"] = id
        if isinstance(reference := spec.get("secretRef"), dict):
            spec = {**spec, "secretRef": {"namespace": id, **reference}}
        one = {**given, "metadata": meta, **({} if kind is None else {"spec": spec})}
        if "namespace" not in meta:
            _exists(self.client, self.shoot, resource_of_manifest(one), name=obj.metadata.name)
        return one

    def _minimal(self) -> Iterator[Raw]:
        """Yield an object with only the required fields for each served kind and type."""
        for one in self.served:
            schema = structural(one.cls)["properties"]["spec"]
            fields, required = schema["properties"], {*schema.get("required", ())}
            base = self.shoot.name if one.kind.namespaced else self.shoot.technical_id
            for type in one.types or ("",):
                known = {"region": self.shoot.region, "secretRef": {"name": _CREDENTIALS}}
                known |= {"type": type} if type else {}
                names = sorted(required | known.keys() & fields.keys())
                empty = {name: _EMPTY.get(fields[name].get("type"), "") for name in names}
                spec = {**empty, **{name: known[name] for name in names if name in known}}
                yield manifest_of(one.cls, f"{base}-{type}" if type else base, spec=spec)


def _select(
    extension: str | None, types: tuple[str, ...], kubeconfig: Path | None, context: str | None
) -> tuple[HttpClient, Sequence[Registration]]:
    """Return a client for the cluster, and the extension's registrations."""
    if found := current(kubeconfig, context):
        kubeconfig, context = found.kubeconfig, found.context
        extension, types = (extension, types) if extension else (found.extension, found.types)
    elif not kubeconfig and not context:
        raise ConfigurationError(
            "no `actuator dev` runs in this directory; start it, or set --kubeconfig"
        )
    manager = Manager()
    if extension:
        populate(manager, extension, types)
    return connect(kubeconfig, context), manager.registrations


@click.group()
def shoot() -> None:
    """Create, change and delete shoots, as gardenlet does.

    The shoot NAME has the namespace shoot--dev--NAME, in the cluster of the `actuator dev` that
    runs in this directory, or in that of --kubeconfig. Shoots that these commands did not create
    are refused. Each command prints the states that it waits for; after Ctrl-C, repeat it.
    """


def _selected(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options that select a cluster and an extension."""
    path = click.Path(path_type=Path, dir_okay=False)
    for option in (
        with_flags("context"),
        click.option("--kubeconfig", type=path, help="Default: the cluster of `actuator dev`."),
        types_option,
        click.option("--extension", help="MODULE:OBJECT. Default: that of `actuator dev`."),
    ):
        function = option(function)
    return function


@shoot.command("list")
@_selected
def _list(**selected: Any) -> None:
    """List the shoots, with their namespaces and last operations."""
    for one in _select(**selected)[0].list(CLUSTERS, label_selector=_OURS):
        found = decode(Cluster, one)
        name = found.shoot["metadata"]["name"]
        echo(f"{name:<20} {found.metadata.name:<32} {_last_operation(found)}")


def _command(act: Callable[[_Play], str]) -> None:
    """Add the command of this act."""

    @shoot.command(act.__name__.replace("_", "-"), help=act.__doc__)
    @click.argument("name", callback=validated)
    @click.option(
        *("--file", "-f"),
        type=click.File("rb"),
        default=lambda: "shoot.yaml" if Path("shoot.yaml").exists() else None,
        help="Manifests of its objects. Default: shoot.yaml, else a minimal object of each type.",
    )
    @click.option("--timeout", type=click.FloatRange(0), default=300.0, help="Seconds of a wait.")
    @_selected
    def perform(name: str, file: BinaryIO | None, timeout: float, **selected: Any) -> None:
        client, served = _select(**selected)
        new, kinds = shoot_named(name), {one.KIND.name: one.KIND for one in KINDS}
        kinds |= {one.kind.name: one.kind for one in served}
        exists = _exists(client, new, NAMESPACES, CLUSTERS)
        if not exists and act not in (_Play.create, _Play.restore):
            raise ConfigurationError(f"shoot {name} does not exist; run `actuator shoot list`")
        known = [*kinds.values()]
        flow = Flow(Garden(client), new, known, patience=timeout, progress=progress)
        play = _Play(client=client, shoot=new, served=served, kinds=kinds, flow=flow, file=file)
        try:
            echo(f"shoot {name}: {act(play)}", lines=True)
        except Invalid as error:
            raise ConfigurationError(f"{error}; write a valid object into shoot.yaml") from error


for _act in (_Play.create, _Play.reconcile, _Play.hibernate, _Play.wake, _Play.migrate):
    _command(_act)
for _act in (_Play.restore, _Play.delete, _Play.force_delete):
    _command(_act)
