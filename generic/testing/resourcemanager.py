"""ResourceManager: a small double of gardener-resource-manager, for drills and tests.

It serves the ManagedResources of one class (the seed's; "" is the shoots'): applies what their
Secrets hold, says so in conditions, and deletes it again. It looks at everything several times a
second; there is no watch, no cache. What it applied counts as healthy: an embedded cluster has
nobody to run it.
Gardener documentation, "gardener-resource-manager", "ManagedResource controller".
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import yaml

from actuator.errors import ApiError, NotFound
from actuator.interface import Client, Resource
from actuator.meta import Raw, format_time
from generic.kube.clock import SystemClock
from generic.kube.finalizers import Stale, patch_tested, put_on, take_off
from generic.library.managedresources import MANAGED_RESOURCES, SEED_CLASS, SHOOT_FINALIZER
from generic.testing.garden import resource_of_manifest

_SECRETS = Resource("v1", "secrets")
_IGNORE = "resources.gardener.cloud/ignore"
_MANAGER = "gardener-resource-manager"


class ResourceManager:
    """Serves one class of ManagedResources, one round of work at each `poll`.

    `client` needs an administrator's rights. What fails is tried again in the next round, and is
    said in the condition ResourcesApplied.
    """

    def __init__(self, client: Client, class_: str = SEED_CLASS) -> None:
        self._client = client
        self._class = class_
        self._finalizer = f"{SHOOT_FINALIZER}-{class_}" if class_ else SHOOT_FINALIZER
        self._clock = SystemClock()

    def poll(self) -> None:
        """One round of work on all ManagedResources of the class. Raises ApiError."""
        for mr in self._client.list(MANAGED_RESOURCES):
            if (mr["spec"].get("class") or "") != self._class:
                continue
            with suppress(NotFound, Stale):  # served in the next round, if it is still there
                self._serve(mr)

    def _serve(self, mr: Raw) -> None:
        meta = mr["metadata"]
        finalizers = meta.get("finalizers") or []
        if meta.get("deletionTimestamp") is not None:
            if self._finalizer in finalizers:
                self._delete(mr)
        elif (meta.get("annotations") or {}).get(_IGNORE) == "true":
            return
        elif self._finalizer not in finalizers:
            patch = put_on(self._finalizer, meta["uid"], finalizers)
            self._apply(self._patch(mr, patch))
        else:
            self._apply(mr)

    def _apply(self, mr: Raw) -> None:
        """Afterwards all of it exists, and nothing of what it no longer asks for."""
        try:
            wanted = [obj for ref in mr["spec"]["secretRefs"] for obj in self._read(mr, ref)]
            for obj in wanted:
                self._put(mr, obj)
        except (ApiError, ValueError) as error:
            self._say(mr, "False", "ApplyFailed", str(error), _applied(mr))
            return
        references = [_reference(obj) for obj in wanted]
        self._remove(mr, [ref for ref in _applied(mr) if ref not in references])
        self._say(mr, "True", "ApplySucceeded", "All resources are applied.", references)

    def _read(self, mr: Raw, ref: Raw) -> Iterator[Raw]:
        """The manifests in a Secret. Raises ApiError, and ValueError where they are none."""
        secret = self._client.get(_SECRETS, ref["name"], mr["metadata"]["namespace"])
        for key, value in sorted((secret.get("data") or {}).items()):
            try:
                documents = list(yaml.safe_load_all(base64.b64decode(value)))
            except (yaml.YAMLError, binascii.Error):
                raise ValueError(f"Secret {ref['name']}: {key} is no YAML") from None
            for document in filter(None, documents):
                if not isinstance(document, dict) or not {"apiVersion", "kind"} <= set(document):
                    raise ValueError(f"Secret {ref['name']}: {key} is no manifest")
                yield document

    def _delete(self, mr: Raw) -> None:
        """Lets go of it once nothing of what it brought is left, or everything is to be kept."""
        keep = mr["spec"].get("keepObjects", False)
        try:
            left = [] if keep else self._remove(mr, _applied(mr))
        except ApiError as error:
            self._say(mr, "False", "DeletionFailed", str(error), _applied(mr))
            return
        if left:
            message = f"waiting for the deletion of {', '.join(map(_name, left))}"
            self._say(mr, "False", "DeletionPending", message, left)
            return
        meta = mr["metadata"]
        self._patch(mr, take_off([self._finalizer], meta["uid"], meta["finalizers"]))

    def _remove(self, mr: Raw, references: Iterable[Raw]) -> list[Raw]:
        """Deletes these objects; returns those that are still there. Raises ApiError."""
        return [ref for ref in references if not self._take(mr, ref)]

    def _put(self, mr: Raw, obj: Raw) -> None:
        """Afterwards the object exists. Raises ApiError."""
        self._client.apply(resource_of_manifest(obj), obj, field_manager=_MANAGER)

    def _take(self, mr: Raw, ref: Raw) -> bool:
        """Deletes the object; whether it is gone. Raises ApiError."""
        resource = resource_of_manifest({**ref, "metadata": {"namespace": ref.get("namespace")}})
        try:
            self._client.delete(resource, ref["name"], ref.get("namespace") or "")
            self._client.get(resource, ref["name"], ref.get("namespace") or "")
        except NotFound:
            return True
        return False

    def _say(
        self, mr: Raw, status: str, reason: str, message: str, references: Sequence[Raw]
    ) -> None:
        """Writes the status, unless it says that already."""
        progressing = {"True": "False", "False": "True"}[status]
        states = {"Applied": status, "Healthy": status, "Progressing": progressing}
        told = mr.get("status") or {}
        before = {c["type"]: c for c in told.get("conditions") or []}
        conditions = [
            self._condition(before.get(f"Resources{kind}"), f"Resources{kind}", *said)
            for kind, state in states.items()
            for said in [(state, reason, message)]
        ]
        wanted = {
            "conditions": conditions,
            "observedGeneration": mr["metadata"]["generation"],
            "resources": list(references),
        }
        if any(told.get(key) != value for key, value in wanted.items()):
            self._patch(mr, {"status": wanted}, subresource="status")

    def _condition(self, before: Raw | None, type: str, status: str, *why: str) -> Raw:
        """The condition; as it was where nothing changed, so that nothing is written."""
        reason, message = why
        said = {"type": type, "status": status, "reason": reason, "message": message}
        if before is not None and said.items() <= before.items():
            return before
        now = format_time(self._clock.now())
        since = now
        if before is not None and before["status"] == status:
            since = before["lastTransitionTime"]
        return {**said, "lastUpdateTime": now, "lastTransitionTime": since}

    def _patch(self, mr: Raw, patch: Any, *, subresource: str = "") -> Raw:
        meta = mr["metadata"]
        where = (self._client, MANAGED_RESOURCES, meta["name"], meta["namespace"])
        if isinstance(patch, dict):
            return self._client.patch(*where[1:], patch, subresource=subresource)
        return patch_tested(*where, patch)


def _applied(mr: Raw) -> list[Raw]:
    """References to what was applied, as the status remembers them."""
    return list((mr.get("status") or {}).get("resources") or [])


def _reference(obj: Raw) -> Raw:
    ref = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "name": obj["metadata"]["name"]}
    namespace = obj["metadata"].get("namespace")
    return {**ref, "namespace": namespace} if namespace else ref


def _name(reference: Raw) -> str:
    return f"{reference['kind']} {reference['name']}"
