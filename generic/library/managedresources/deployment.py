"""Deploys a ManagedResource and the Secret with its manifests."""

import hashlib
import json
from collections.abc import Iterable

import attrs

from actuator.codec import decode, encode
from actuator.errors import ActuatorError
from actuator.interface import SECRETS, Client
from actuator.meta import Base64, ObjectMeta, Raw
from generic.kube.patches import add, test
from generic.library.lookup import find
from generic.library.managedresources import kind, ours
from generic.library.manifests import manifest, manifest_of

_HASH_DIGITS = 8
_REFERENCE = "reference.resources.gardener.cloud/"


def deploy_for_seed(
    client: Client,
    namespace: str,
    name: str,
    manifests: Iterable[Raw],
    *,
    origin: str = ours.DEFAULT_ORIGIN,
) -> None:
    """Make the seed's resource manager apply exactly these manifests.

    Raises ActuatorError if a foreign object has the name, RequeueAfter while an older one is being
    deleted, and ApiError.
    """
    spec = kind.ManagedResourceSpec(class_=kind.SEED_CLASS, keep_objects=False)
    _deploy(client, namespace, name, manifests, spec, origin)


def deploy_for_shoot(
    client: Client,
    namespace: str,
    name: str,
    manifests: Iterable[Raw],
    *,
    origin: str = ours.DEFAULT_ORIGIN,
    force_overwrite_annotations: bool = False,
) -> None:
    """Make the shoot's resource manager apply exactly these manifests.

    The objects carry a label that keeps gardenlet from cleaning them up itself. Raises like
    `deploy_for_seed`.
    """
    spec = kind.ManagedResourceSpec(
        inject_labels={kind.NO_CLEANUP: "true"},
        keep_objects=False,
        force_overwrite_annotations=force_overwrite_annotations or None,
    )
    _deploy(client, namespace, name, manifests, spec, origin)


def update(
    client: Client, existing: kind.ManagedResource, manifests: Iterable[Raw], *, origin: str
) -> None:
    """Make the resource manager apply exactly these manifests instead of those it has.

    It never creates a ManagedResource. Raises like `deploy_for_shoot`, and NotFound if it is gone.
    """
    _update(client, existing, existing.spec, manifests, origin)


def _deploy(
    client: Client,
    namespace: str,
    name: str,
    manifests: Iterable[Raw],
    spec: kind.ManagedResourceSpec,
    origin: str,
) -> None:
    existing = ours.find(client, namespace, name)
    if existing is not None:
        _update(client, existing, spec, manifests, origin)
        return
    secret = _ensure_secret(client, namespace, name, _documents(manifests), origin)
    spec = attrs.evolve(spec, secret_refs=[kind.SecretName(name=secret)])
    _create(client, namespace, name, spec, origin)


def _update(
    client: Client,
    existing: kind.ManagedResource,
    spec: kind.ManagedResourceSpec,
    manifests: Iterable[Raw],
    origin: str,
) -> None:
    meta = existing.metadata
    ours.refuse_foreign(meta, f"ManagedResource {existing.key}", origin, existing)
    secret = _ensure_secret(client, meta.namespace, meta.name, _documents(manifests), origin)
    spec = attrs.evolve(spec, secret_refs=[kind.SecretName(name=secret)])
    if changes := _changes(existing, spec, origin):
        ours.patch_spec(client, existing, changes)


def _documents(manifests: Iterable[Raw]) -> bytes:
    """Return one YAML stream, the same for the same manifests."""
    texts = (json.dumps(manifest, sort_keys=True) for manifest in manifests)
    return "".join(f"---\n{text}\n" for text in texts).encode()


def _ensure_secret(client: Client, namespace: str, owner: str, data: bytes, origin: str) -> str:
    """Create the immutable Secret with this content if it is missing; return its name."""
    name = f"managedresource-{owner}-{_hash(data)}"
    labels = {kind.GARBAGE_COLLECTABLE: "true", kind.ORIGIN: origin}
    objects = {"objects.yaml": str(Base64.encode_bytes(data))}
    secret = manifest("v1", "Secret", name, namespace, labels, immutable=True, data=objects)
    existing = find(client, SECRETS, name, namespace)
    if existing is None:
        client.create(SECRETS, secret)
        return name
    what = f"Secret {namespace}/{name}"
    ours.refuse_foreign(decode(ObjectMeta, existing["metadata"]), what, origin)
    if existing.get("data") != secret["data"] or not existing.get("immutable"):
        raise ActuatorError(f"{what} was modified by another owner; delete it")
    return name


def _changes(
    existing: kind.ManagedResource, spec: kind.ManagedResourceSpec, origin: str
) -> list[Raw]:
    """Return the patch to the wanted state; one of the Go library gets our label."""
    meta = existing.metadata
    kept = {key: value for key, value in meta.annotations.items() if not key.startswith(_REFERENCE)}
    changes: list[Raw] = [] if existing.spec == spec else [add("/spec", encode(spec))]
    for path, before, after in (
        ("/metadata/labels", meta.labels, {**meta.labels, kind.ORIGIN: origin}),
        ("/metadata/annotations", meta.annotations, {**kept, **_references(spec)}),
    ):
        changes += [] if before == after else [test(path, before or None), add(path, after)]
    return changes


def _references(spec: kind.ManagedResourceSpec) -> dict[str, str]:
    """Return annotations without which Gardener's garbage collector deletes a Secret after an hour.

    Source: gardener, `pkg/resourcemanager/controller/garbagecollector`.
    """
    return {f"{_REFERENCE}secret-{_hash(r.name.encode())}": r.name for r in spec.secret_refs}


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:_HASH_DIGITS]


def _create(
    client: Client, namespace: str, name: str, spec: kind.ManagedResourceSpec, origin: str
) -> None:
    managed = manifest_of(
        kind.ManagedResource, name, namespace, {kind.ORIGIN: origin}, spec=encode(spec)
    )
    managed["metadata"]["annotations"] = _references(spec)
    client.create(kind.MANAGED_RESOURCES, managed)
