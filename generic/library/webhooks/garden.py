"""The objects of a garden that webhooks admit, and the mutator of NamespacedCloudProfiles.

Specs are JSON: gardener-apiserver checks their types, and an admission reads few fields (Gardener
documentation, API reference of core.gardener.cloud/v1beta1 and security.gardener.cloud/v1alpha1).
"""

from collections.abc import Callable
from typing import Any, ClassVar

import attrs

from actuator.meta import Kind, Object, Raw, value_at
from generic.kube.expressions import Expr
from generic.library.webhooks.objects import kubernetes_kind
from generic.library.webhooks.webhook import AdmissionRequest, FailurePolicy, Webhook, mutates

CORE = "core.gardener.cloud"
_CORE = (CORE, "v1beta1")
Merge = Callable[[Raw, Raw], Raw]
"""Returns a configuration of a CloudProfile from that of a NamespacedCloudProfile and its parent's;
it may change the latter."""


@attrs.define(kw_only=True)
class Shoot(Object):
    """core.gardener.cloud/v1beta1 Shoot."""

    KIND: ClassVar[Kind] = kubernetes_kind("Shoot", *_CORE)

    spec: Raw = attrs.field(factory=dict)
    status: Raw = attrs.field(factory=dict)


@attrs.define(kw_only=True)
class CloudProfile(Object):
    """core.gardener.cloud/v1beta1 CloudProfile."""

    KIND: ClassVar[Kind] = kubernetes_kind("CloudProfile", *_CORE, namespaced=False)

    spec: Raw = attrs.field(factory=dict)


@attrs.define(kw_only=True)
class NamespacedCloudProfile(Object):
    """core.gardener.cloud/v1beta1 NamespacedCloudProfile."""

    KIND: ClassVar[Kind] = kubernetes_kind("NamespacedCloudProfile", *_CORE)

    spec: Raw = attrs.field(factory=dict)
    status: Raw = attrs.field(factory=dict)


@attrs.define(kw_only=True)
class GardenSeed(Object):
    """core.gardener.cloud/v1beta1 Seed."""

    KIND: ClassVar[Kind] = kubernetes_kind("Seed", *_CORE, namespaced=False)

    spec: Raw = attrs.field(factory=dict)


@attrs.define(kw_only=True)
class GardenBackupBucket(Object):
    """core.gardener.cloud/v1beta1 BackupBucket: that of the garden."""

    KIND: ClassVar[Kind] = kubernetes_kind("BackupBucket", *_CORE, namespaced=False)

    spec: Raw = attrs.field(factory=dict)


@attrs.define(kw_only=True)
class SecretBinding(Object):
    """core.gardener.cloud/v1beta1 SecretBinding."""

    KIND: ClassVar[Kind] = kubernetes_kind("SecretBinding", *_CORE)

    secret_ref: Raw = attrs.field(factory=dict)
    provider: Raw = attrs.field(factory=dict)


@attrs.define(kw_only=True)
class CredentialsBinding(Object):
    """security.gardener.cloud/v1alpha1 CredentialsBinding."""

    KIND: ClassVar[Kind] = kubernetes_kind(
        "CredentialsBinding", "security.gardener.cloud", "v1alpha1"
    )

    credentials_ref: Raw = attrs.field(factory=dict)
    provider: Raw = attrs.field(factory=dict)


def provider_label(type: str) -> dict[str, str]:
    """Return the label that Gardener sets on objects of the garden with this provider type."""
    return {f"provider.extensions.gardener.cloud/{type}": "true"}


def merge_machine_images(own: Raw, parent: Raw) -> Raw:
    """Add the versions of `machineImages` to those of the parent, or replace them.

    Every other field remains the parent's.
    """
    images = _by(parent.get("machineImages"), "name")
    for name, image in _by(own.get("machineImages"), "name").items():
        known = images.setdefault(name, image)
        versions = _by(known.get("versions"), "version") | _by(image.get("versions"), "version")
        images[name] = known | {"versions": [*versions.values()]}
    return parent | {"machineImages": [*images.values()]}


def cloud_profile_status(
    type: str,
    merge: Merge = merge_machine_images,
    *,
    failure_policy: FailurePolicy = "Fail",
) -> Webhook:
    """Return the webhook that completes the status of NamespacedCloudProfiles of this provider.

    Gardener merges all but the configurations, so `status.cloudProfileSpec.providerConfig` is the
    parent's; this webhook merges that in `spec.providerConfig` into it. If its server cannot be
    reached, Gardener retries, with the failure policy Fail.
    """
    generation = Expr("object").optional("status", "observedGeneration")
    is_merged = generation.equals(Expr("object").optional("metadata", "generation"))

    def complete(request: AdmissionRequest[NamespacedCloudProfile]) -> None:
        profile = request.new
        own = profile.spec.get("providerConfig")
        parent = value_at(profile.status, "cloudProfileSpec", "providerConfig")
        is_current = profile.status.get("observedGeneration") == profile.metadata.generation
        if is_current and isinstance(own, dict) and isinstance(parent, dict):
            profile.status["cloudProfileSpec"]["providerConfig"] = merge(own, parent)

    return mutates(
        NamespacedCloudProfile,
        name="cloud-profile-status",
        failure_policy=failure_policy,
        operations=["UPDATE"],
        subresource="status",
        object_labels=provider_label(type),
        conditions={"generation-observed": is_merged.text},
    )(complete)


def _by(listed: Any, key: str) -> dict[Any, Raw]:
    """Return the entries of a list by a field."""
    entries = listed if isinstance(listed, list) else ()
    return {str(item.get(key)): item for item in entries if isinstance(item, dict)}
