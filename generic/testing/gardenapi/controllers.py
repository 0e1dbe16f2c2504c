"""The part of gardener-controller-manager that admissions need, simulated.

It labels the Secrets of bindings, and merges NamespacedCloudProfiles into their parents (Gardener
documentation, "gardener-controller-manager").
"""

from collections.abc import Iterator
from typing import Any

from actuator.interface import SECRETS, Client, resource_of
from actuator.meta import Raw, value_at
from generic.library.lookup import find
from generic.library.webhooks import (
    CloudProfile,
    CredentialsBinding,
    NamespacedCloudProfile,
    SecretBinding,
)

_PROFILES = resource_of(CloudProfile.KIND)
_OF_PROJECTS = resource_of(NamespacedCloudProfile.KIND)


def serve_garden(client: Client) -> None:
    """Do one round of work of the controllers of one garden. Raises ApiError."""
    for cls, field in ((SecretBinding, "secretRef"), (CredentialsBinding, "credentialsRef")):
        for binding in client.list(resource_of(cls.KIND)):
            if value_at(binding, field, "kind") in (None, "Secret"):
                _label(client, binding, field)
    for profile in client.list(_OF_PROJECTS):
        _merge(client, profile)


def _label(client: Client, binding: Raw, field: str) -> None:
    name = str(value_at(binding, field, "name") or "")
    namespace = str(value_at(binding, field, "namespace") or binding["metadata"]["namespace"])
    secret = find(client, SECRETS, name, namespace) if name else None
    labels = dict(secret_labels(binding))
    if secret and not labels.items() <= (secret["metadata"].get("labels") or {}).items():
        client.patch(SECRETS, name, namespace, {"metadata": {"labels": labels}})


def _merge(client: Client, profile: Raw) -> None:
    parent = find(client, _PROFILES, str(value_at(profile, "spec", "parent", "name")))
    if parent is None:
        return
    meta = profile["metadata"]
    status = profile.get("status") or {}
    merged = merged_profile(parent["spec"], profile["spec"])
    known = {**(status.get("cloudProfileSpec") or {})}
    if "providerConfig" in merged:  # completed by the webhook of the provider
        known["providerConfig"] = merged["providerConfig"]
    if known != merged or status.get("observedGeneration") != meta["generation"]:
        written = {"cloudProfileSpec": merged, "observedGeneration": meta["generation"]}
        where = (_OF_PROJECTS, meta["name"], meta["namespace"])
        client.patch(*where, {"status": written}, subresource="status")


def secret_labels(binding: Raw) -> Iterator[tuple[str, str]]:
    """Yield the labels of the Secret of a binding, for each of its providers."""
    for type in str(value_at(binding, "provider", "type") or "").split(","):
        if type:
            yield f"provider.shoot.gardener.cloud/{type}", "true"


def merged_profile(parent: Raw, own: Raw) -> Raw:
    """Return the spec of a CloudProfile with the additions of a NamespacedCloudProfile.

    The configuration of the provider is the parent's.
    """
    added = {key: value for key, value in own.items() if key not in ("parent", "providerConfig")}
    found: Raw = united(parent, added)
    return found


def united(base: Any, more: Any) -> Any:
    """Return a deep union; `more` wins. Items of lists are one if their names or versions are."""
    if isinstance(base, dict) and isinstance(more, dict):
        return {**base, **{key: united(base.get(key), value) for key, value in more.items()}}
    if isinstance(base, list) and isinstance(more, list):
        return [*united(_by_key(base), _by_key(more)).values()]
    return more


def _by_key(items: list[Any]) -> dict[str, Any]:
    """Return the items by their name or version, or by their text if they have neither."""
    named = [item if isinstance(item, dict) else {} for item in items]
    keys = [str(item.get("name") or item.get("version") or "") for item in named]
    return {key or str(item): item for key, item in zip(keys, items, strict=True)}
