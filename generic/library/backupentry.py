"""GenericBackupEntry: copies a backup's credentials to the shoot's etcd.

Flow of reconcile and restore: technical ID from the entry's name → the shoot's namespace, if it
exists and is not deleted → the credentials of spec.secretRef, through the author's hook → a Secret
for etcd-druid. `generic.reconciler.behaviours` guards the Secret in spec.secretRef (Gardener
documentation, "BackupEntry"; extension library, `backupentry/genericactuator`).

Guarantees: a Secret of another BackupEntry is never deleted, nor are the backups that the entry of
a shoot has in the same bucket as the entry `source-…` of its migration. Labels or annotations that
other clients set on our Secret are removed. Every write tests the state that it was built on.
"""

from abc import abstractmethod
from collections.abc import Mapping
from contextlib import suppress

from actuator.cluster import Cluster
from actuator.errors import AlreadyExists, ConfigurationError, Conflict, NotFound, RequeueAfter
from actuator.interface import SECRETS, Actuator, Context, resource_of
from actuator.meta import Base64, Raw
from actuator.v1alpha1 import BackupEntry
from generic.kube.clusters import NAMESPACES
from generic.kube.finalizers import Stale, patch_tested
from generic.kube.patches import add, test, test_version
from generic.kube.workload_identity import CONFIG, PREFIX, PURPOSE, TOKEN, is_workload_identity
from generic.library.lookup import find
from generic.library.manifests import manifest

__all__ = ["CREATED_BY", "GenericBackupEntry", "folder_of", "technical_id_and_uid"]

CREATED_BY = "backup.gardener.cloud/created-by"
_SOURCE = "source-"
_SECRET = "etcd-backup"  # noqa: S105 - a name
_BUCKET = "bucketName"
_ENTRIES = resource_of(BackupEntry.KIND)

_IDENTITY_LABELS = (PURPOSE[0], f"{PREFIX}/provider")
_IDENTITY_ANNOTATIONS = (f"{PREFIX}/name", f"{PREFIX}/namespace")
_RENEW = f"{PREFIX}/token-renew-timestamp"
_LOOK_AGAIN = 1.0

SecretData = Mapping[str, bytes]


def technical_id_and_uid(name: str) -> tuple[str, str]:
    """Return technical ID and UID of the shoot from a name `[source-]<technical ID>--<uid>`.

    A technical ID contains "--" itself, so the last one separates. Raises ConfigurationError.
    """
    technical_id, divider, uid = name.removeprefix(_SOURCE).rpartition("--")
    if not divider or not technical_id or not uid:
        raise ConfigurationError(
            f"BackupEntry {name}: metadata.name does not identify a shoot; "
            "expected <technical ID>--<UID of the shoot>"
        )
    return technical_id, uid


def folder_of(entry: BackupEntry) -> str:
    """Return the folder of an entry's backups in its bucket, without a slash.

    In a control plane migration, the entry `source-<name>` is for the same folder in the bucket of
    the former seed (Gardener's extensions, `backupentry` actuators).
    """
    return entry.metadata.name.removeprefix(_SOURCE)


class GenericBackupEntry(Actuator[BackupEntry]):
    """A BackupEntry of any provider: the author defines etcd's data and deletes backups."""

    permissions = (
        NAMESPACES.permission("get"),
        SECRETS.permission("get", "create", "patch", "delete"),
        _ENTRIES.permission("get"),
    )

    @abstractmethod
    def etcd_secret_data(
        self, ctx: Context, entry: BackupEntry, data: dict[str, bytes], /
    ) -> SecretData:
        """Return the data of etcd's Secret, from the credentials in `data` and bucketName.

        Of a workload identity, `data` has only `config`: the token is requested for etcd's Secret.
        """

    @abstractmethod
    def delete_entry(self, ctx: Context, entry: BackupEntry, /) -> None:
        """Delete the backups of this entry, in its folder (`folder_of`).

        Backups that are already deleted count as success.
        """

    def reconcile(self, ctx: Context, entry: BackupEntry, cluster: Cluster, /) -> None:
        """Write etcd's credentials, unless the shoot's namespace is missing or being deleted."""
        namespace, _ = technical_id_and_uid(entry.metadata.name)
        home = find(ctx.client, NAMESPACES, namespace)
        if home is None or home["metadata"].get("deletionTimestamp") is not None:
            return
        reference = entry.spec.secret_ref
        given = find(ctx.client, SECRETS, reference.name, reference.namespace)
        if given is None:
            raise ConfigurationError(
                f"BackupEntry {entry.key}: spec.secretRef: Secret not found; create it"
            )
        data = {
            key: Base64(value).decode_bytes()
            for key, value in _data(given).items()
            if key == CONFIG or not is_workload_identity(given)
        }
        data[_BUCKET] = entry.spec.bucket_name.encode()
        wanted = dict(self.etcd_secret_data(ctx, entry, data))
        _write(ctx, entry, _manifest(entry, namespace, given, wanted))

    def delete(self, ctx: Context, entry: BackupEntry, cluster: Cluster, /) -> None:
        """Delete etcd's credentials and the backups."""
        with suppress(ConfigurationError):  # a name without a shoot: there is no Secret
            namespace, _ = technical_id_and_uid(entry.metadata.name)
            _delete_secret(ctx, entry, namespace)
        if _is_in_use(ctx, entry):
            ctx.event("BackupsKept", f"BackupEntry {folder_of(entry)} has the folder in the bucket")
        else:
            self.delete_entry(ctx, entry)


def _name(entry: BackupEntry) -> str:
    return f"{_SOURCE if entry.metadata.name.startswith(_SOURCE) else ''}{_SECRET}"


def _delete_secret(ctx: Context, entry: BackupEntry, namespace: str) -> None:
    existing = find(ctx.client, SECRETS, _name(entry), namespace)
    meta = existing["metadata"] if existing is not None else {}
    creator = (meta.get("annotations") or {}).get(CREATED_BY)
    if meta and creator in (None, entry.metadata.name):
        with suppress(NotFound, Conflict):  # deleted, or replaced by another owner
            ctx.client.delete(SECRETS, _name(entry), namespace, uid=meta["uid"])


def _is_in_use(ctx: Context, entry: BackupEntry) -> bool:
    """Whether the shoot's entry has the same folder of the same bucket: it deletes the backups."""
    if folder_of(entry) == entry.metadata.name:
        return False
    other = find(ctx.client, _ENTRIES, folder_of(entry))
    return other is not None and other["spec"].get(_BUCKET) == entry.spec.bucket_name


def _data(secret: Raw) -> dict[str, str]:
    return dict(secret.get("data") or {})


def _manifest(entry: BackupEntry, namespace: str, given: Raw, wanted: dict[str, bytes]) -> Raw:
    """Return the wanted Secret; for a workload identity, the token requestor must find it again."""
    labels: dict[str, str] = given["metadata"].get("labels") or {}
    annotations: dict[str, str] = given["metadata"].get("annotations") or {}
    identity = is_workload_identity(given)
    missing = {*_IDENTITY_LABELS} - labels.keys() | {*_IDENTITY_ANNOTATIONS} - annotations.keys()
    if identity and missing:
        raise ConfigurationError(
            f"BackupEntry {entry.key}: spec.secretRef: the Secret of a workload identity has no "
            f"{min(missing)}; set it"
        )
    kept_labels = {key: labels[key] for key in _IDENTITY_LABELS if key in labels}
    copied = (*_IDENTITY_ANNOTATIONS, f"{PREFIX}/context-object")
    kept = {key: annotations[key] for key in copied if key in annotations}
    data = {key: Base64.encode_bytes(value) for key, value in wanted.items()}
    if identity and CONFIG in _data(given):
        data[CONFIG] = Base64(_data(given)[CONFIG])
    if identity:
        data.pop(TOKEN, None)  # the requestor writes a token for this Secret
    secret = manifest("v1", "Secret", _name(entry), namespace, type="Opaque", data=data)
    secret["metadata"] |= {
        "labels": kept_labels if identity else {},
        "annotations": {CREATED_BY: entry.metadata.name, **(kept if identity else {})},
    }
    return secret


def _write(ctx: Context, entry: BackupEntry, wanted: Raw) -> None:
    meta = wanted["metadata"]
    existing = find(ctx.client, SECRETS, meta["name"], meta["namespace"])
    try:
        if existing is None:
            ctx.client.create(SECRETS, wanted)
        elif changes := _changes(existing, wanted):
            uid = test("/metadata/uid", existing["metadata"]["uid"])
            patch = [uid, test_version(existing), *changes]
            patch_tested(ctx.client, SECRETS, meta["name"], meta["namespace"], patch)
    except (AlreadyExists, NotFound, Stale) as error:
        name = f"{meta['namespace']}/{meta['name']}"
        raise RequeueAfter(
            _LOOK_AGAIN, f"Secret {name} of BackupEntry {entry.key} was modified concurrently"
        ) from error


def _changes(existing: Raw, wanted: Raw) -> list[Raw]:
    """Return the patch from one Secret to the other; a requested token stays, with its time."""
    was = _data(existing)
    data = dict(wanted["data"])
    before = existing["metadata"]
    after = dict(wanted["metadata"])
    if is_workload_identity(wanted):
        data |= {TOKEN: was[TOKEN]} if TOKEN in was else {}
        given = before.get("annotations") or {}
        kept = {_RENEW: given[_RENEW]} if _RENEW in given else {}
        after["annotations"] = {**after["annotations"], **kept}
    changes = [add("/data", data)] if was != data else []
    return changes + [
        add(f"/metadata/{part}", after[part])
        for part in ("labels", "annotations")
        if (before.get(part) or {}) != after[part]
    ]
