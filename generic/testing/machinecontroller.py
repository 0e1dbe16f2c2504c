"""MachineController: a small simulated machine-controller-manager, for drills and tests.

It creates sets for deployments and machines for sets. There is no cloud behind the machines, so
they are available at once. It sets the real controller's finalizers and removes them in its
order: machines, sets, deployments, then classes and their Secrets. It polls all objects several
times a second, without watch, cache, drain or surge. It deletes old machines when the new ones
exist. In-place updates pass the real controller's conditions, one step per polling: an old
machine becomes a candidate, is selected, and is then transferred to the new set. The label
`SELECTED` on a Machine stands for the user's label on its Node, which a seed does not have
(machine-controller-manager documentation, "Design"; pkg/controller/deployment_inplace.go).
"""

import hashlib
from collections.abc import Collection
from contextlib import suppress
from typing import Any

from actuator.codec import decode, encode
from actuator.errors import AlreadyExists, ApiError, NotFound
from actuator.interface import SECRETS, Client, Resource, resource_of
from actuator.meta import ObjectMeta, OwnerReference, Raw, conditions_in, value_at
from generic.kube.finalizers import Stale, patch_adding, patch_removing, patch_tested
from generic.kube.headers import as_dict
from generic.library.machines import (
    DEPLOYMENT_NAME,
    MACHINE_CLASSES,
    MACHINE_DEPLOYMENTS,
    MACHINE_KINDS,
    MACHINE_SETS,
    MACHINES,
    MC_FINALIZER,
    MCM_FINALIZER,
)
from generic.testing.polling import serve_each

SELECTED = "node.machine.sapcloud.io/selected-for-update"
"""Label of a machine that the user selects for its in-place update."""

_UPDATE = "InPlaceUpdate"
_CANDIDATE = "CandidateForUpdate"
_CHOSEN = "SelectedForUpdate"
_KINDS = {cls.KIND.plural: cls.KIND.name for cls in MACHINE_KINDS}


class MachineController:
    """Serves the machine objects of one namespace; each `poll` is one round of work.

    `client` needs an administrator's rights. Failed work is retried in the next round.
    """

    def __init__(self, client: Client, namespace: str, unread: set[str] | None = None) -> None:
        self._client = client
        self._namespace = namespace
        self._unread = set[str]() if unread is None else unread
        self._known: dict[Resource, list[Raw]] = {}  # as listed in this round, until it is changed

    def poll(self) -> None:
        """Do one round of work. Raises ApiError."""
        self._known.clear()
        for owners_first in (MACHINE_DEPLOYMENTS, MACHINE_SETS, MACHINES):
            self._list(owners_first)
        serve_each(self._list(MACHINES), self._serve_machine, self._unread)
        serve_each(self._list(MACHINE_SETS), self._serve_set, self._unread)
        serve_each(self._list(MACHINE_DEPLOYMENTS), self._serve_deployment, self._unread)
        self._serve_classes()

    def _serve_machine(self, machine: Raw) -> None:
        if _is_deleting(machine):
            self._release(MACHINES, machine, [MC_FINALIZER])
            return
        self._hold(MACHINES, machine, MC_FINALIZER)
        phase = ((machine.get("status") or {}).get("currentStatus") or {}).get("phase")
        if phase is None:
            self._say(MACHINES, machine, {"currentStatus": {"phase": "Running"}})

    def _serve_set(self, one: Raw) -> None:
        mine = [m for m in self._list(MACHINES) if _same(m, one)]
        wanted = 0 if _is_deleting(one) else one["spec"].get("replicas", 0)
        if _is_deleting(one) and not mine:
            self._release(MACHINE_SETS, one, [MCM_FINALIZER])
            return
        if not _is_deleting(one):
            self._hold(MACHINE_SETS, one, MCM_FINALIZER)
        for machine in mine[wanted:]:
            self._delete(MACHINES, machine)
        taken = {machine["metadata"]["name"] for machine in mine}
        free = (n for i in range(wanted + len(mine)) if (n := f"{_name(one)}-{i}") not in taken)
        for name, _ in zip(free, range(wanted - len(mine)), strict=False):
            self._create(MACHINES, name, one["spec"]["template"], [MC_FINALIZER], one)
        status = {"replicas": len(mine), "availableReplicas": len(mine)}
        self._say(MACHINE_SETS, one, status)

    def _serve_deployment(self, deployment: Raw) -> None:
        sets = [s for s in self._list(MACHINE_SETS) if _deployment_of(s) == _name(deployment)]
        if _is_deleting(deployment):
            for set_ in sets:
                self._delete(MACHINE_SETS, set_)
            if not sets:
                self._release(MACHINE_DEPLOYMENTS, deployment, [MCM_FINALIZER])
            return
        self._hold(MACHINE_DEPLOYMENTS, deployment, MCM_FINALIZER)
        spec = deployment["spec"]
        template = spec["template"]
        replicas = spec.get("replicas", 0)
        new = [s for s in sets if _class_of(s["spec"]["template"]) == _class_of(template)]
        old = [s for s in sets if s not in new]
        in_place = (spec.get("strategy") or {}).get("inPlaceUpdate")
        if not new:
            self._create_set(deployment, 0 if old and in_place else replicas)
            return
        available = _count(new[0])
        if in_place:
            self._update_in_place(new[0], old, replicas, in_place["orchestrationType"] == "Manual")
        else:
            self._scale(new[0], replicas)
            for item in old if available >= replicas else ():
                self._scale(item, 0)
        total = sum(map(_count, sets))
        self._report(deployment, replicas, available, total)

    def _update_in_place(self, new: Raw, old: list[Raw], replicas: int, manual: bool) -> None:
        """Advance the update of each old machine by one step; sets keep the machines they own."""
        room = replicas
        for item in old:
            mine = [m for m in self._list(MACHINES) if _same(m, item)]
            kept = [machine for machine in mine if not self._transferred(machine, new, manual)]
            self._scale(item, min(len(kept), room))
            room -= min(len(kept), room)
        self._scale(new, room)

    def _transferred(self, machine: Raw, new: Raw, manual: bool) -> bool:
        reason = value_at(conditions_in(machine.get("status")), _UPDATE, "reason")
        meta = machine["metadata"]
        if reason == _CHOSEN:
            patch = {"labels": {SELECTED: None}, "ownerReferences": _owned_by(new)}
            self._change(MACHINES).patch(
                MACHINES, meta["name"], self._namespace, {"metadata": patch}
            )
            self._say(MACHINES, machine, {"conditions": []})
            return True
        if reason is None:
            self._say(MACHINES, machine, {"conditions": [_condition(_UPDATE, "True", _CANDIDATE)]})
        elif not manual or SELECTED in (meta.get("labels") or {}):
            self._say(MACHINES, machine, {"conditions": [_condition(_UPDATE, "True", _CHOSEN)]})
        return False

    def _report(self, deployment: Raw, replicas: int, updated: int, total: int) -> None:
        enough = "True" if total >= replicas else "False"
        status = {
            "observedGeneration": deployment["metadata"]["generation"],
            "replicas": total,
            "updatedReplicas": updated,
            "availableReplicas": total,
            "unavailableReplicas": max(0, replicas - total),
            "conditions": [_condition("Available", enough)],
        }
        self._say(MACHINE_DEPLOYMENTS, deployment, status)

    def _serve_classes(self) -> None:
        """Keep our finalizers on classes and Secrets while a machine or a class needs them."""
        used = {_class_of(m) for m in self._list(MACHINES)}
        needed: set[tuple[str, str]] = set()
        for item in self._list(MACHINE_CLASSES):
            if not _is_deleting(item):
                self._hold(MACHINE_CLASSES, item, MCM_FINALIZER)
            elif _name(item) not in used:
                self._release(MACHINE_CLASSES, item, [MCM_FINALIZER, MC_FINALIZER])
                continue
            references = [as_dict(item.get(key)) for key in ("secretRef", "credentialsSecretRef")]
            needed |= {(ref.get("namespace", ""), ref.get("name", "")) for ref in references}
        for secret in self._list(SECRETS):
            if (self._namespace, _name(secret)) not in needed:
                self._release(SECRETS, secret, [MCM_FINALIZER, MC_FINALIZER])
            elif not _is_deleting(secret):
                self._hold(SECRETS, secret, MCM_FINALIZER)

    def _create_set(self, deployment: Raw, replicas: int) -> None:
        template = deployment["spec"]["template"]
        digest = hashlib.sha256(_class_of(template).encode()).hexdigest()[:5]
        spec = {"replicas": replicas, "template": template}
        name = f"{_name(deployment)}-{digest}"
        labels = template["metadata"]["labels"]
        manifest = {"metadata": {"labels": labels}, "spec": spec}
        self._create(MACHINE_SETS, name, manifest, [MCM_FINALIZER], deployment)

    def _scale(self, one: Raw, replicas: int) -> None:
        if one["spec"].get("replicas", 0) != replicas and not _is_deleting(one):
            patch = {"spec": {"replicas": replicas}}
            with suppress(NotFound):
                self._change(MACHINE_SETS).patch(MACHINE_SETS, _name(one), self._namespace, patch)

    def _create(
        self, resource: Resource, name: str, like: Raw, finalizers: list[str], owner: Raw
    ) -> None:
        meta: Raw = {"name": name, "namespace": self._namespace, "finalizers": finalizers}
        meta["ownerReferences"] = _owned_by(owner)
        meta["labels"] = like["metadata"]["labels"]
        manifest = {"apiVersion": resource.api_version, "kind": _KINDS[resource.plural]}
        with suppress(AlreadyExists):
            self._change(resource).create(
                resource, {**manifest, "metadata": meta, "spec": like["spec"]}
            )

    def _list(self, resource: Resource) -> list[Raw]:
        if resource not in self._known:
            self._known[resource] = self._client.list(resource, self._namespace)
        return self._known[resource]

    def _change(self, resource: Resource) -> Client:
        """Return the client for a write, after which these objects have to be listed again."""
        self._known.pop(resource, None)
        return self._client

    def _delete(self, resource: Resource, obj: Raw) -> None:
        if not _is_deleting(obj):
            with suppress(NotFound):
                self._change(resource).delete(resource, _name(obj), self._namespace)

    def _hold(self, resource: Resource, obj: Raw, finalizer: str) -> None:
        meta = decode(ObjectMeta, obj["metadata"])
        if finalizer not in meta.finalizers:
            self._patch(resource, obj, patch_adding(finalizer, meta.uid, meta.finalizers))

    def _release(self, resource: Resource, obj: Raw, finalizers: Collection[str]) -> None:
        meta = decode(ObjectMeta, obj["metadata"])
        if not set(finalizers).isdisjoint(meta.finalizers):
            self._patch(resource, obj, patch_removing(finalizers, meta.uid, meta.finalizers))

    def _patch(self, resource: Resource, obj: Raw, patch: list[Raw]) -> None:
        with suppress(NotFound, Stale):
            patch_tested(self._change(resource), resource, _name(obj), self._namespace, patch)

    def _say(self, resource: Resource, obj: Raw, status: Raw) -> None:
        told = obj.get("status") or {}
        if any(told.get(key) != value for key, value in status.items()):
            with suppress(NotFound):
                where = (resource, _name(obj), self._namespace)
                self._change(resource).patch(*where, {"status": status}, subresource="status")


class MachineControllers:
    """One MachineController for each namespace with machine objects, polled in one thread.

    With one thread per namespace, many shoots would need many threads that poll all the time.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._unread = set[str]()
        self._left: set[str] = set()  # polled once more: to release the last Secrets

    def poll(self) -> None:
        """Do one round of work in each namespace. Raises ApiError."""
        kinds = [resource_of(cls.KIND) for cls in MACHINE_KINDS]
        found = {obj["metadata"]["namespace"] for kind in kinds for obj in self._client.list(kind)}
        left = {namespace for namespace in found | self._left if not self._served(namespace)}
        self._left = found | left

    def _served(self, namespace: str) -> bool:
        try:
            MachineController(self._client, namespace, self._unread).poll()
        except (ApiError, Stale):
            return False
        return True


def _name(obj: Raw) -> str:
    return str(obj["metadata"]["name"])


def _is_deleting(obj: Raw) -> bool:
    return obj["metadata"].get("deletionTimestamp") is not None


def _deployment_of(obj: Raw) -> str:
    return str((obj["metadata"].get("labels") or {}).get(DEPLOYMENT_NAME, ""))


def _class_of(template: Raw) -> str:
    """Return the name of the class, or "": the simulated kinds have no required fields."""
    return str(as_dict(as_dict(template.get("spec")).get("class")).get("name", ""))


def _same(machine: Raw, one: Raw) -> bool:
    """Return whether a machine belongs to the set: by its owner, else by its class."""
    owners = [owner["name"] for owner in machine["metadata"].get("ownerReferences") or ()]
    if owners:
        return _name(one) in owners
    belongs = _deployment_of(machine) == _deployment_of(one)
    return belongs and _class_of(machine) == _class_of(one["spec"]["template"])


def _owned_by(owner: Raw) -> list[Raw]:
    meta = owner["metadata"]
    kind = owner["kind"]
    api = MACHINES.api_version
    uid = meta["uid"]
    return [encode(OwnerReference(api_version=api, kind=kind, name=meta["name"], uid=uid))]


def _count(one: Raw) -> int:
    return int((one.get("status") or {}).get("replicas", 0))


def _condition(type: str, status: str, reason: str = "Counted") -> dict[str, Any]:
    return {"type": type, "status": status, "reason": reason, "message": f"{reason}."}
