"""ResourceManager: a small simulated gardener-resource-manager, for drills and tests.

It serves the ManagedResources of one class (the seed's; "" is the shoots'): applies the manifests
in their Secrets, reports in conditions, and deletes the objects again. It polls all objects
several times a second, without watch or cache. Applied objects count as healthy, because an
embedded cluster runs no workloads.
Gardener documentation, "gardener-resource-manager", "ManagedResource controller".
"""

import base64
import binascii
from collections.abc import Iterable, Iterator, Sequence

import yaml

from actuator.codec import decode, encode
from actuator.conditions import set_condition
from actuator.errors import ApiError, NotFound
from actuator.interface import SECRETS, Client
from actuator.meta import Condition, Raw
from generic.kube.clock import SystemClock
from generic.kube.finalizers import add_finalizer, remove_finalizers
from generic.library.lookup import find
from generic.library.managedresources import ManagedResource
from generic.library.managedresources.kind import MANAGED_RESOURCES, SEED_CLASS, SHOOT_FINALIZER
from generic.testing.garden import resource_of_manifest
from generic.testing.polling import serve_each

_COMPRESSED = ".br"
_IGNORE = "resources.gardener.cloud/ignore"
_MANAGER = "gardener-resource-manager"


class ResourceManager:
    """Serves one class of ManagedResources; each `poll` is one round of work.

    `client` needs an administrator's rights. Failures are reported in the condition
    ResourcesApplied and retried in the next round.
    """

    def __init__(self, client: Client, class_: str = SEED_CLASS) -> None:
        self._client = client
        self._class = class_
        self._finalizer = f"{SHOOT_FINALIZER}-{class_}" if class_ else SHOOT_FINALIZER
        self._unread = set[str]()

    def poll(self) -> None:
        """Do one round of work on all ManagedResources of the class. Raises ApiError."""
        serve_each(self._client.list(MANAGED_RESOURCES), self._serve_own, self._unread)

    def _serve_own(self, mr: Raw) -> None:
        if (mr["spec"].get("class") or "") == self._class:
            self._serve(mr)

    def _serve(self, mr: Raw) -> None:
        meta = mr["metadata"]
        if meta.get("deletionTimestamp") is not None:
            if self._finalizer in (meta.get("finalizers") or []):
                self._delete(mr)
        elif (meta.get("annotations") or {}).get(_IGNORE) == "true":
            return
        elif add_finalizer(self._client, MANAGED_RESOURCES, mr, self._finalizer):
            self._apply(mr)

    def _apply(self, mr: Raw) -> None:
        """Apply all its objects, and delete those that it no longer contains."""
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
        """Yield the manifests in a Secret. Raises ApiError, and ValueError for invalid content."""
        secret = self._client.get(SECRETS, ref["name"], mr["metadata"]["namespace"])
        for key, value in sorted((secret.get("data") or {}).items()):
            try:
                text = base64.b64decode(value)
                if key.endswith(_COMPRESSED):
                    import brotli  # an optional extra

                    text = brotli.decompress(text)
                documents = list(yaml.safe_load_all(text))
            except (yaml.YAMLError, binascii.Error):
                raise ValueError(f"Secret {ref['name']}: {key} is no YAML") from None
            for document in filter(None, documents):
                if not isinstance(document, dict) or not {"apiVersion", "kind"} <= set(document):
                    raise ValueError(f"Secret {ref['name']}: {key} is no manifest")
                yield document

    def _delete(self, mr: Raw) -> None:
        """Remove our finalizer once its objects are gone, or at once if they are to be kept."""
        keep = mr["spec"].get("keepObjects", False)
        try:
            left = [] if keep else self._remove(mr, _applied(mr))
        except ApiError as error:
            self._say(mr, "False", "DeletionFailed", str(error), _applied(mr))
            return
        if left:
            names = ", ".join(f"{ref['kind']} {ref['name']}" for ref in left)
            message = f"waiting for the deletion of {names}"
            self._say(mr, "False", "DeletionPending", message, left)
            return
        remove_finalizers(self._client, MANAGED_RESOURCES, mr, [self._finalizer])

    def _remove(self, mr: Raw, references: Iterable[Raw]) -> list[Raw]:
        """Delete these objects; return those that still exist. Raises ApiError."""
        return [ref for ref in references if not self._take(mr, ref)]

    def _target(self, mr: Raw) -> Client:
        """Return a client of the cluster with the objects. ServedShoots overrides it."""
        return self._client

    def _put(self, mr: Raw, obj: Raw) -> None:
        """Apply the object (server-side apply). Raises ApiError. ShootManager overrides it."""
        resource = resource_of_manifest(obj)
        meta = obj["metadata"]
        target = self._target(mr)
        if (meta.get("annotations") or {}).get(_IGNORE) == "true" and find(
            target, resource, meta["name"], meta.get("namespace", "")
        ):
            return  # it is created, and not updated
        target.apply(resource, obj, field_manager=_MANAGER)

    def _take(self, mr: Raw, ref: Raw) -> bool:
        """Delete the object; return whether it no longer exists. Raises ApiError."""
        resource = resource_of_manifest({**ref, "metadata": {"namespace": ref.get("namespace")}})
        target = self._target(mr)
        try:
            target.delete(resource, ref["name"], ref.get("namespace") or "")
            target.get(resource, ref["name"], ref.get("namespace") or "")
        except NotFound:
            return True
        return False

    def _say(
        self, mr: Raw, status: str, reason: str, message: str, references: Sequence[Raw]
    ) -> None:
        """Write the status, unless it is unchanged."""
        progressing = {"True": "False", "False": "True"}[status]
        states = {"Applied": status, "Healthy": status, "Progressing": progressing}
        conditions: Sequence[Condition] = decode(ManagedResource, mr).status.conditions
        for kind, state in states.items():
            said = Condition(type=f"Resources{kind}", status=state, reason=reason, message=message)
            conditions = set_condition(conditions, said, SystemClock().now())
        told = mr.get("status") or {}
        meta = mr["metadata"]
        wanted = {
            "conditions": [encode(condition) for condition in conditions],
            "observedGeneration": meta["generation"],
            "resources": list(references),
        }
        if any(told.get(key) != value for key, value in wanted.items()):
            where = (MANAGED_RESOURCES, meta["name"], meta["namespace"])
            self._client.patch(*where, {"status": wanted}, subresource="status")


def _applied(mr: Raw) -> list[Raw]:
    """Return the references to the applied objects that the status holds."""
    return list((mr.get("status") or {}).get("resources") or [])


def _reference(obj: Raw) -> Raw:
    ref = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "name": obj["metadata"]["name"]}
    namespace = obj["metadata"].get("namespace")
    return {**ref, "namespace": namespace} if namespace else ref
