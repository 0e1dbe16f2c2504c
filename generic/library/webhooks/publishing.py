"""Publishes a webhook configuration: its list of webhooks is ours alone.

An entry of another owner in our configuration, such as one of a former Go extension, would refuse
requests by a server that does not know it. So a patch replaces the whole list. It is written only
if a part that we decide differs: policies of a cluster may add to our entries, for example a
namespaceSelector, and would add it again after each write.
"""

import hashlib
import json
from collections.abc import Iterator
from contextlib import suppress

from actuator.errors import AlreadyExists, Conflict, NotFound
from actuator.interface import Client, Resource
from actuator.meta import Raw
from generic.kube.finalizers import Stale, patch_tested
from generic.kube.patches import add, remove, test, test_version
from generic.library.lookup import find

WRITTEN = "actuator.extensions.gardener.cloud/webhooks"
"""Annotation with a hash of the parts that we wrote last: with another one, all are written."""
_MAX_NAMED = 8
_MAX_ROUNDS = 5


def publish(client: Client, resource: Resource, wanted: Raw) -> str:
    """Write the configuration; return what another client changed in it, or "".

    Without webhooks it is not created, and an existing list becomes empty. Raises ApiError.
    """
    for _ in range(_MAX_ROUNDS):
        with suppress(AlreadyExists, NotFound, Stale):  # another replica was faster
            return _publish(client, resource, wanted)
    raise Conflict(409, f"{resource} {wanted['metadata']['name']} changes too often; retry")


def _publish(client: Client, resource: Resource, wanted: Raw) -> str:
    parts = _decided(wanted)
    meta = wanted["metadata"]
    text = json.dumps([wanted["webhooks"], parts], sort_keys=True)
    written = {WRITTEN: hashlib.sha256(text.encode()).hexdigest()[:16]}
    found = find(client, resource, meta["name"])
    if found is None:
        if wanted["webhooks"]:
            client.create(resource, {**wanted, "metadata": {**meta, "annotations": written}})
        return ""
    there = _decided(found)
    changed = [*_differing(parts, there, "")]
    added = [*_differing(there["webhooks"], parts["webhooks"], "webhooks")]
    is_ours = written.items() <= (found["metadata"].get("annotations") or {}).items()
    if not is_ours or changed or there["webhooks"].keys() != parts["webhooks"].keys():
        patch_tested(client, resource, meta["name"], "", _patch(found, wanted, written))
    paths = dict.fromkeys([*changed, *added]) if is_ours else ()
    return ", ".join([*paths][:_MAX_NAMED])


def _patch(found: Raw, wanted: Raw, written: Raw) -> list[Raw]:
    before = found["metadata"]
    after = wanted["metadata"]
    patch = [test("/metadata/uid", before["uid"]), test_version(found)]
    patch.append(add("/webhooks", wanted["webhooks"]))
    for part, more in (("labels", after.get("labels") or {}), ("annotations", written)):
        patch.append(add(f"/metadata/{part}", {**(before.get(part) or {}), **more}))
    if owners := after.get("ownerReferences"):
        patch.append(add("/metadata/ownerReferences", owners))
    elif before.get("ownerReferences"):
        patch.append(remove("/metadata/ownerReferences"))
    return patch


def _decided(configuration: Raw) -> dict[str, Raw]:
    """Return the parts that we decide, each by its key."""
    meta: Raw = configuration["metadata"]
    return {
        "labels": meta.get("labels") or {},
        "ownerReferences": {owner["uid"]: owner for owner in meta.get("ownerReferences") or ()},
        "webhooks": {webhook["name"]: webhook for webhook in configuration.get("webhooks") or ()},
    }


def _differing(wanted: object, found: object, path: str) -> Iterator[str]:
    """Yield the path of each part of `wanted` that `found` lacks or has otherwise."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        for key, value in wanted.items():
            yield from _differing(value, found.get(key), f"{path}.{key}" if path else key)
    elif (wanted or None) != (found or None):
        yield path
