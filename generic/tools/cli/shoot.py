"""`actuator shoot`: plays gardenlet for shoots in the cluster of `actuator dev`, or in a seed.

It changes only namespaces, Clusters and cluster-scoped objects with the labels of the shoot, and
objects in these namespaces.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from inspect import isfunction
from pathlib import Path
from typing import Any, BinaryIO

import attrs
import click
import msgspec

from actuator.cluster import Cluster
from actuator.codec import decode, decode_at
from actuator.errors import ConfigurationError, Invalid
from actuator.interface import SECRETS, SHOOT_ACCESS, Client, Resource
from actuator.meta import Kind, Object, Raw
from actuator.v1alpha1 import KINDS, BackupEntry
from generic.kube.clusters import CLUSTERS, NAMESPACES
from generic.kube.printable import echo
from generic.library.lookup import find
from generic.library.manifests import manifest, manifest_of
from generic.manager.flags import FLAGS
from generic.manager.orphans.ledger import read_orphans
from generic.manager.registry import Registration
from generic.reconciler.orphans import SHOOT_LABEL
from generic.testing.garden import (
    SHOOT,
    Garden,
    GardenletFlows,
    SeedShoot,
    ShootState,
    resource_of_manifest,
)
from generic.testing.garden.backups import BACKUPS, backup_namespace
from generic.testing.garden.gardenlet import create_missing, namespace_labels
from generic.testing.garden.order import ON_REQUEST, distinct
from generic.testing.garden.state import bare
from generic.testing.minimal import USER_DATA, example_spec, has_pools
from generic.tools.cli.development import DevelopmentTarget, select
from generic.tools.cli.env import validated
from generic.tools.cli.shoot_documents import of_cluster
from generic.tools.config_manifests import documents

_CREDENTIALS = "cloudprovider"
_MARK = "app.kubernetes.io/managed-by"
_USER = "actuator-shoot"
_OURS = f"{_MARK}={_USER}"


def shoot_named(name: str) -> SeedShoot:
    """Return the shoot of this name, in the project `dev`."""
    id = f"shoot--dev--{name}"
    labels = {_MARK: _USER, SHOOT: id}
    return SeedShoot(technical_id=id, name=name, project="dev", region="local", labels=labels)


def prepare(client: Client, shoot: SeedShoot) -> None:
    """Create namespace, Cluster and Secret of the shoot where missing, unless it has migrated.

    Raises ApiError, and ConfigurationError if they belong to others.
    """
    _existing(client, shoot)
    secret = manifest("v1", "Secret", _CREDENTIALS, shoot.technical_id, shoot.labels, type="Opaque")
    if not _state(shoot).exists():
        create_missing(client, shoot.namespace(), shoot.cluster(), secret)


def _existing(client: Client, shoot: SeedShoot) -> Cluster | None:
    """Return the Cluster of the shoot, an empty one if only its namespace exists, or None."""
    both = (NAMESPACES, CLUSTERS)
    namespace, cluster = (_own(client, shoot, item, shoot.technical_id) for item in both)
    return decode(Cluster, cluster or {}) if namespace or cluster else None


def _own(client: Client, shoot: SeedShoot, resource: Resource, name: str) -> Raw | None:
    """Return an object of the shoot, or None. Raises ConfigurationError for one of others."""
    found = find(client, resource, name)
    if found and not shoot.labels.items() <= (found["metadata"].get("labels") or {}).items():
        what = f"{found['kind']} {name}"
        raise ConfigurationError(f"{what} is not of this shoot; choose another name")
    return found


def _state(shoot: SeedShoot) -> Path:
    return Path(f"{shoot.name}.shootstate.json")


def _survives(secret: Raw) -> bool:
    """Whether gardenlet writes such a Secret in each seed of the shoot."""
    meta = secret["metadata"]
    is_ours = (meta.get("labels") or {}).get(_MARK) == _USER
    return is_ours or meta["name"] in (_CREDENTIALS, *SHOOT_ACCESS.names)


def _last_operation(cluster: Cluster) -> str:
    operation = (cluster.shoot.get("status") or {}).get("lastOperation") or {}
    return f"{operation.get('type', '')} {operation.get('state', '')}"


@attrs.frozen
class _Acts:
    """gardenlet's acts for a shoot, each a command; they return the result, for people."""

    client: Client
    shoot: SeedShoot
    cluster: Cluster | None
    """None if the shoot does not exist."""
    served: Sequence[Registration]
    kinds: Sequence[Kind]
    flow: GardenletFlows
    given: Sequence[Any]
    file: str
    """The manifests from a file, and its name."""

    def create(self) -> str:
        """Create a shoot, and wait until its objects are ready."""
        if self.cluster and _last_operation(self.cluster) != "Create Processing":
            raise ConfigurationError(f"shoot {self.shoot.name} exists; reconcile it instead")
        self.flow.reconcile(self._applied(), type="Create")
        return "created"

    def reconcile(self) -> str:
        """Reconcile all objects, create the missing ones, and wait until they are ready."""
        manifests = self._applied()
        self.flow.ask([kind for kind in self.kinds if kind.name in ON_REQUEST], "reconcile")
        hibernated = self.cluster is not None and self.cluster.hibernation_enabled
        self.flow.reconcile(manifests, hibernated=hibernated)
        return "reconciled"

    def hibernate(self) -> str:
        """Hibernate a shoot."""
        self.flow.reconcile(self._applied(), hibernated=True)
        return "hibernated"

    def wake(self) -> str:
        """Wake up a hibernated shoot."""
        self.flow.reconcile(self._applied())
        return "awake"

    def migrate(self) -> str:
        """Migrate a shoot away from this seed, and write its state into a file."""
        state = self.flow.begin_migration()
        file = _state(self.shoot)
        if not file.exists():  # else an interrupted migration wrote it, with all objects
            secrets = self.client.list(SECRETS, self.shoot.technical_id)
            kept = [bare(secret) for secret in secrets if _survives(secret)]
            state = attrs.evolve(state, resources=[*state.resources, *kept])
            new = file.with_suffix(".new")
            new.unlink(missing_ok=True)  # of an interrupted migration, or a link of others
            with open(new, "xb", opener=partial(os.open, mode=0o600)) as private:
                private.write(msgspec.json.encode(state))
            new.replace(file)
        self.flow.end_migration()
        return f"migrated; its state is in {file}"

    def restore(self) -> str:
        """Restore a migrated shoot from the file with its state."""
        file = _state(self.shoot)
        try:
            state = msgspec.json.decode(file.read_bytes(), type=ShootState)
        except (OSError, msgspec.MsgspecError) as error:
            why = f"{file} cannot be read: {error}"
            raise ConfigurationError(f"{why}; run `actuator shoot migrate` before") from error
        self._copy_credentials(state.resources)
        self.flow.restore(self._manifests(), state)
        file.unlink()
        return "restored"

    def delete(self) -> str:
        """Delete a shoot, and wait until all its objects are deleted."""
        self._copy_credentials()
        self.flow.delete(self._manifests())
        self._end_backups()
        return "deleted"

    def force_delete(self) -> str:
        """Force the deletion of a shoot, wait until it is deleted, and print its Orphans."""
        self._copy_credentials()
        self.flow.force_delete()
        self.flow.delete_afterwards()
        self._end_backups()
        found = read_orphans(self.client, label_selector=f"{SHOOT_LABEL}={self.shoot.technical_id}")
        left = [f"  {obj.metadata.name}: {obj.spec.resource}" for obj in found if obj.is_open]
        return "\n".join([f"deleted; open orphans: {len(left)}", *left])

    def _applied(self) -> list[Raw]:
        """Return all manifests, with those applied that the flow would only create."""
        manifests = self._manifests()
        prepare(self.client, self.shoot)
        self.shoot.document(self.client)
        labels = {"metadata": {"labels": namespace_labels(manifests)}}
        self.client.patch(NAMESPACES, self.shoot.technical_id, "", labels)
        for item in manifests:
            if (resource := resource_of_manifest(item)).group != CLUSTERS.group:
                self.client.apply(resource, item, field_manager=_USER)
        self._copy_credentials()
        return manifests

    def _copy_credentials(self, saved: Iterable[Raw] = ()) -> None:
        """Copy the Secret of the shoot, or of its saved resources, for its backups."""
        id = self.shoot.technical_id
        copies = [item for item in saved if item["metadata"]["name"] == _CREDENTIALS]
        if not BACKUPS & {item.kind.name for item in self.served}:
            return
        secret = copies[0] if copies else find(self.client, SECRETS, _CREDENTIALS, id)
        if secret is None:  # the namespace of the shoot is deleted already
            return
        where = backup_namespace(id)
        create_missing(self.client, manifest("v1", "Namespace", where, labels=self.shoot.labels))
        content = {"type": secret["type"], "data": secret.get("data") or {}}
        copy = manifest("v1", "Secret", _CREDENTIALS, where, self.shoot.labels, **content)
        self.client.apply(SECRETS, copy, field_manager=_USER)

    def _end_backups(self) -> None:
        name = backup_namespace(self.shoot.technical_id)
        if _own(self.client, self.shoot, NAMESPACES, name):
            self.client.delete(NAMESPACES, name)

    def _manifests(self) -> list[Raw]:
        found = [self._placed(item) for item in self.given]
        names = {kind.name for kind in self.kinds}
        if any(item["kind"] in names for item in found):
            return found
        found += [self._placed(item) for item in self._minimal()]
        if not found:
            raise ConfigurationError("the shoot has no objects; set --extension or --file")
        if not self.served:
            why = f"{self.file} has no object of an extension, and --extension is not set"
            echo(f"the shoot is without an extension: {why}", err=True)
        return found

    def _placed(self, given: Any) -> Raw:
        """Return a manifest with the namespace and the labels of the shoot."""
        where = self.file
        id = self.shoot.technical_id
        obj = decode_at(Object, given, where)
        spec = given.get("spec", {})
        if not (obj.api_version and obj.kind and obj.metadata.name and isinstance(spec, dict)):
            raise ConfigurationError(f"{where}: set apiVersion, kind, metadata.name and spec")
        kind = next((kind for kind in self.kinds if kind.name == obj.kind), None)
        meta = {**given["metadata"], "labels": {**obj.metadata.labels, **self.shoot.labels}}
        if kind is None or kind.namespaced:
            meta["namespace"] = id
        if isinstance(reference := spec.get("secretRef"), dict):
            home = backup_namespace(id) if obj.kind in BACKUPS else id
            spec = {**spec, "secretRef": {"namespace": home, **reference}}
        one = {**given, "metadata": meta, **({} if kind is None else {"spec": spec})}
        if "namespace" not in meta:
            _own(self.client, self.shoot, resource_of_manifest(one), obj.metadata.name)
        return one

    def _minimal(self) -> Iterator[Raw]:
        """Yield an object with only the required fields for each served kind and type.

        It has an example of its configuration, and a Worker has a pool with its Secret.
        """
        usual: Raw = {"region": self.shoot.region, "secretRef": {"name": _CREDENTIALS}}
        for item in self.served:
            base = self.shoot.name if item.kind.namespaced else self.shoot.technical_id
            entry = "-" if item.cls is BackupEntry else ""  # its name ends with "--" and a UID
            for type in item.types or ("",):
                bucket = f"{self.shoot.technical_id}-{type}"
                known = {**usual, "type": type, "bucketName": bucket} if type else usual
                spec = example_spec(item.actuator, known)
                yield manifest_of(item.cls, f"{base}-{entry}{type}" if type else base, spec=spec)
        if any(has_pools(item.cls) for item in self.served):
            data = {USER_DATA["key"]: "#!/bin/sh"}
            yield manifest("v1", "Secret", USER_DATA["name"], stringData=data)


_WITHOUT_MANIFESTS = (_Acts.migrate, _Acts.force_delete)
"""They work on what exists, also while the file with manifests cannot be read."""


@click.group()
def shoot() -> None:
    """Create, change and delete shoots, as gardenlet does.

    The shoot NAME has the namespace shoot--dev--NAME, in the cluster of the `actuator dev` that
    runs in this directory, or in that of --kubeconfig. Shoots that these commands did not create
    are refused. Each command prints the states that it waits for; after Ctrl-C, repeat it.
    """


def _list(**flags: Any) -> None:
    """List the shoots, with their namespaces and last operations."""
    client = select(DevelopmentTarget(**flags), required=True).connect()
    clusters = client.list(CLUSTERS, label_selector=_OURS)
    if not clusters:
        echo(f"no shoots of these commands in the cluster at {client.host}", err=True)
    for obj in clusters:
        found = decode(Cluster, obj)
        name = found.shoot["metadata"]["name"]
        echo(f"{name:<20} {found.metadata.name:<32} {_last_operation(found)}")


def _perform(
    act: Callable[[_Acts], str], name: str, file: BinaryIO | None, timeout: float, **flags: Any
) -> None:
    target = select(DevelopmentTarget(**flags), required=True)
    if act in _WITHOUT_MANIFESTS:
        file = None
    given = [*filter(None, documents(file))] if file else []
    where = file.name if file else ""
    fields, manifests = of_cluster(given, where)
    new = attrs.evolve(shoot_named(name), documents=fields)
    client = target.connect()
    served = target.manager().registrations
    kinds = distinct([*(item.kind for item in served), *(cls.KIND for cls in KINDS)])
    cluster = _existing(client, new)
    state = _state(new)
    if cluster is None and act not in (_Acts.create, _Acts.restore):
        where = f"in the cluster at {client.host}"
        remedy = "run `actuator shoot list`, or select another cluster with --kubeconfig"
        raise ConfigurationError(f"shoot {name} does not exist {where}; {remedy}")
    wrote = "Migrate" if act is _Acts.migrate else ("Migrate", "Restore")  # migrate keeps the file
    moves = cluster is not None and _last_operation(cluster).startswith(wrote)
    if state.exists() and act is not _Acts.restore and not moves:
        raise ConfigurationError(f"{state} exists; restore the shoot, or remove the file")
    progress = cache(partial(echo, err=True))  # each state once
    flow = GardenletFlows(Garden(client), new, kinds, patience=timeout, progress=progress)
    play = _Acts(client, new, cluster, served, kinds, flow, manifests, where)
    try:
        echo(f"shoot {name}: {act(play)}", lines=True)
    except Invalid as error:
        raise ConfigurationError(f"{error}; write a valid object into shoot.yaml") from error


_TARGET: list[click.Parameter] = [
    click.Option(["--extension"], help="MODULE:OBJECT. Default: that of `actuator dev`."),
    click.Option(["--type", "types"], multiple=True, help="Type, if --extension is an Actuator."),
    click.Option(
        ["--kubeconfig"],
        type=click.Path(path_type=Path, dir_okay=False),
        help="Path of the kubeconfig. Default: the cluster of `actuator dev`.",
    ),
    *(flag for flag in FLAGS if flag.name == "context"),
]
_ACT: list[click.Parameter] = [
    click.Argument(["name"], callback=validated),
    click.Option(
        ["--file", "-f"],
        type=click.File("rb"),
        default=lambda: "shoot.yaml" if Path("shoot.yaml").exists() else None,
        help="Its manifests. Default: shoot.yaml. Minimal objects, if it has none of an extension.",
    ),
    click.Option(["--timeout"], type=click.FloatRange(0), default=300.0, help="Seconds of a wait."),
    *_TARGET,
]
shoot.add_command(click.Command("list", callback=_list, params=_TARGET, help=_list.__doc__))
for _name, _act in vars(_Acts).items():
    if isfunction(_act) and not _name.startswith("_"):
        _name = _name.replace("_", "-")
        _run = partial(_perform, _act)
        shoot.add_command(click.Command(_name, callback=_run, params=_ACT, help=_act.__doc__))
