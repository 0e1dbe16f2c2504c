"""Deploys a ManagedResource and the Secret with its manifests."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypedDict, Unpack

import attrs

from actuator.codec import decode, encode
from actuator.errors import ActuatorError
from actuator.interface import SECRETS, Client
from actuator.meta import Base64, ObjectMeta, Raw
from generic.kube.patches import add, test
from generic.library.lookup import find
from generic.library.managedresources import kind, ours
from generic.library.managedresources.packing import packed
from generic.library.manifests import manifest, manifest_of
from generic.library.references import GARBAGE_COLLECTABLE, PREFIX, digest, references_to


class Fields(TypedDict, total=False):
    """Further fields of the spec; those of one deployment replace those of the former one."""

    keep_objects: bool
    delete_persistent_volume_claims: bool
    force_overwrite_annotations: bool
    force_overwrite_labels: bool
    inject_labels: Mapping[str, str]
    equivalences: Sequence[Sequence[kind.GroupKind]]


def deploy_for_seed(
    client: Client,
    name: str,
    namespace: str,
    manifests: Iterable[Raw],
    *,
    origin: str = ours.DEFAULT_ORIGIN,
    **fields: Unpack[Fields],
) -> None:
    """Make the seed's resource manager apply exactly these manifests.

    `fields` are further ones of ManagedResourceSpec; one that is omitted is removed. Raises
    ActuatorError if a foreign object has the name, RequeueAfter while an older one is being
    deleted, ConfigurationError if a manifest does not fit into a Secret, and ApiError.
    """
    _deploy(client, name, namespace, manifests, _spec(fields, kind.SEED_CLASS), origin)


def deploy_for_shoot(
    client: Client,
    name: str,
    namespace: str,
    manifests: Iterable[Raw],
    *,
    origin: str = ours.DEFAULT_ORIGIN,
    **fields: Unpack[Fields],
) -> None:
    """Make the shoot's resource manager apply exactly these manifests.

    The objects carry a label that keeps gardenlet from cleaning them up itself. Raises like
    `deploy_for_seed`.
    """
    labels = {**fields.get("inject_labels", {}), kind.NO_CLEANUP: "true"}
    _deploy(client, name, namespace, manifests, _spec({**fields, "inject_labels": labels}), origin)


def _spec(fields: Fields, class_: str | None = None) -> kind.ManagedResourceSpec:
    given: dict[str, Any] = {"keep_objects": False} | {k: v for k, v in fields.items() if v}
    return kind.ManagedResourceSpec(class_=class_, **given)


def update(
    client: Client, existing: kind.ManagedResource, manifests: Iterable[Raw], *, origin: str
) -> None:
    """Make the resource manager apply exactly these manifests instead of those it has.

    It never creates a ManagedResource. Raises like `deploy_for_shoot`, and NotFound if it is gone.
    """
    _update(client, existing, existing.spec, manifests, origin)


def _deploy(
    client: Client,
    name: str,
    namespace: str,
    manifests: Iterable[Raw],
    spec: kind.ManagedResourceSpec,
    origin: str,
) -> None:
    existing = ours.find(client, name, namespace)
    if existing is not None:
        _update(client, existing, spec, manifests, origin)
        return
    spec = attrs.evolve(spec, secret_refs=_secrets(client, namespace, name, manifests, origin))
    labels = {kind.ORIGIN: origin}
    managed = manifest_of(kind.ManagedResource, name, namespace, labels, spec=encode(spec))
    managed["metadata"]["annotations"] = _references(spec)
    client.create(kind.MANAGED_RESOURCES, managed)


def _update(
    client: Client,
    existing: kind.ManagedResource,
    spec: kind.ManagedResourceSpec,
    manifests: Iterable[Raw],
    origin: str,
) -> None:
    meta = existing.metadata
    ours.refuse_foreign(meta, f"ManagedResource {existing.key}", origin, existing)
    references = _secrets(client, meta.namespace, meta.name, manifests, origin)
    spec = attrs.evolve(spec, secret_refs=references)
    if changes := _changes(existing, spec, origin):
        ours.patch_spec(client, existing, changes)


def _secrets(
    client: Client, namespace: str, owner: str, manifests: Iterable[Raw], origin: str
) -> list[kind.SecretName]:
    """Create the missing Secrets with these manifests; return the names of all."""
    data = packed(manifests, f"ManagedResource {namespace}/{owner}")
    names = (_ensure_secret(client, namespace, owner, *item, origin) for item in data)
    return [kind.SecretName(name=name) for name in names]


def _ensure_secret(
    client: Client, namespace: str, owner: str, key: str, data: bytes, origin: str
) -> str:
    """Create the immutable Secret with this content if it is missing; return its name."""
    name = f"managedresource-{owner}-{digest(data)}"
    labels = {GARBAGE_COLLECTABLE: "true", kind.ORIGIN: origin}
    objects = {key: str(Base64.encode_bytes(data))}
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
    kept = {key: value for key, value in meta.annotations.items() if not key.startswith(PREFIX)}
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
    return references_to(("secret", secret_ref.name) for secret_ref in spec.secret_refs)
