"""MachineController: a small double of the machine-controller-manager, for drills and tests.

Deployments become sets, sets become machines, machines are available at once and cost nothing:
there is no cloud behind them. It holds what the real one holds, with its finalizers, and lets go
in its order: machines, sets, deployments, then classes and their Secrets. It looks at everything
several times a second; there is no watch, no cache, no drain, and no surge: old machines go when
the new ones are there (machine-controller-manager documentation, "Design").
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Collection
from contextlib import suppress
from typing import Any

from actuator.codec import decode
from actuator.errors import AlreadyExists, NotFound
from actuator.interface import Client, Resource
from actuator.meta import ObjectMeta, Raw
from generic.finalizers import Stale, patch_tested, put_on, take_off
from generic.machines import (
    DEPLOYMENT_NAME,
    MACHINE_CLASSES,
    MACHINE_DEPLOYMENTS,
    MACHINE_KINDS,
    MACHINE_SETS,
    MACHINES,
    MC_FINALIZER,
    MCM_FINALIZER,
)

__all__ = ["MachineController"]

_SECRETS = Resource("v1", "secrets")
_KINDS = {cls.KIND.plural: cls.KIND.name for cls in MACHINE_KINDS}


class MachineController:
    """Serves the machine objects of one namespace, look by look (`generic.looking`).

    `client` needs an administrator's rights. While `enabled` is False it does nothing at all,
    like one that is scaled down. What fails is tried again at the next look.
    """

    def __init__(self, client: Client, namespace: str) -> None:
        self._client = client
        self._namespace = namespace
        self._enabled = True
        self._one_look = threading.Lock()

    @property
    def enabled(self) -> bool:
        """Whether it does anything; setting it waits for the look that is going on."""
        return self._enabled

    @enabled.setter
    def enabled(self, enabled: bool) -> None:
        with self._one_look:
            self._enabled = enabled

    def look(self) -> None:
        """One look at everything. Raises ApiError."""
        with self._one_look:
            if self._enabled:
                self._look()

    def _look(self) -> None:
        for machine in self._list(MACHINES):
            self._serve_machine(machine)
        for one in self._list(MACHINE_SETS):
            self._serve_set(one)
        for deployment in self._list(MACHINE_DEPLOYMENTS):
            self._serve_deployment(deployment)
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
            self._create(MACHINES, name, one["spec"]["template"], [MC_FINALIZER])
        status = {"replicas": len(mine), "availableReplicas": len(mine)}
        self._say(MACHINE_SETS, one, status)

    def _serve_deployment(self, deployment: Raw) -> None:
        sets = [s for s in self._list(MACHINE_SETS) if _deployment_of(s) == _name(deployment)]
        if _is_deleting(deployment):
            for one in sets:
                self._delete(MACHINE_SETS, one)
            if not sets:
                self._release(MACHINE_DEPLOYMENTS, deployment, [MCM_FINALIZER])
            return
        self._hold(MACHINE_DEPLOYMENTS, deployment, MCM_FINALIZER)
        spec = deployment["spec"]
        template, replicas = spec["template"], spec.get("replicas", 0)
        new = [s for s in sets if _class_of(s["spec"]["template"]) == _class_of(template)]
        if not new:
            self._create_set(deployment)
            return
        available = _count(new[0])
        self._scale(new[0], replicas)
        for old in (s for s in sets if s not in new):
            if available >= replicas:
                self._scale(old, 0)
        total = sum(map(_count, sets))
        self._report(deployment, replicas, available, total)

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
        """Classes and Secrets are held while a machine, or a class, needs them."""
        used = {_class_of(m) for m in self._list(MACHINES)}
        needed: set[tuple[str, str]] = set()
        for one in self._list(MACHINE_CLASSES):
            if not _is_deleting(one):
                self._hold(MACHINE_CLASSES, one, MCM_FINALIZER)
            elif _name(one) not in used:
                self._release(MACHINE_CLASSES, one, [MCM_FINALIZER, MC_FINALIZER])
                continue
            references = [one.get("secretRef"), one.get("credentialsSecretRef")]
            needed |= {(ref["namespace"], ref["name"]) for ref in references if ref}
        for secret in self._list(_SECRETS):
            if (self._namespace, _name(secret)) not in needed:
                self._release(_SECRETS, secret, [MCM_FINALIZER, MC_FINALIZER])
            elif not _is_deleting(secret):
                self._hold(_SECRETS, secret, MCM_FINALIZER)

    def _create_set(self, deployment: Raw) -> None:
        template = deployment["spec"]["template"]
        digest = hashlib.sha256(_class_of(template).encode()).hexdigest()[:5]
        spec = {"replicas": deployment["spec"].get("replicas", 0), "template": template}
        name, labels = f"{_name(deployment)}-{digest}", template["metadata"]["labels"]
        manifest = {"metadata": {"labels": labels}, "spec": spec}
        self._create(MACHINE_SETS, name, manifest, [MCM_FINALIZER])

    def _scale(self, one: Raw, replicas: int) -> None:
        if one["spec"].get("replicas", 0) != replicas and not _is_deleting(one):
            patch = {"spec": {"replicas": replicas}}
            with suppress(NotFound):
                self._client.patch(MACHINE_SETS, _name(one), self._namespace, patch)

    def _create(self, resource: Resource, name: str, like: Raw, finalizers: list[str]) -> None:
        meta = {"name": name, "namespace": self._namespace, "finalizers": finalizers}
        meta["labels"] = like["metadata"]["labels"]
        manifest = {"apiVersion": resource.api_version, "kind": _KINDS[resource.plural]}
        with suppress(AlreadyExists):
            self._client.create(resource, {**manifest, "metadata": meta, "spec": like["spec"]})

    def _list(self, resource: Resource) -> list[Raw]:
        return self._client.list(resource, self._namespace)

    def _delete(self, resource: Resource, obj: Raw) -> None:
        if not _is_deleting(obj):
            with suppress(NotFound):
                self._client.delete(resource, _name(obj), self._namespace)

    def _hold(self, resource: Resource, obj: Raw, finalizer: str) -> None:
        meta = decode(ObjectMeta, obj["metadata"])
        if finalizer not in meta.finalizers:
            self._patch(resource, obj, put_on(finalizer, meta.uid, meta.finalizers))

    def _release(self, resource: Resource, obj: Raw, finalizers: Collection[str]) -> None:
        meta = decode(ObjectMeta, obj["metadata"])
        if not set(finalizers).isdisjoint(meta.finalizers):
            self._patch(resource, obj, take_off(finalizers, meta.uid, meta.finalizers))

    def _patch(self, resource: Resource, obj: Raw, patch: list[Raw]) -> None:
        with suppress(NotFound, Stale):
            patch_tested(self._client, resource, _name(obj), self._namespace, patch)

    def _say(self, resource: Resource, obj: Raw, status: Raw) -> None:
        told = obj.get("status") or {}
        if any(told.get(key) != value for key, value in status.items()):
            with suppress(NotFound):
                where = (resource, _name(obj), self._namespace)
                self._client.patch(*where, {"status": status}, subresource="status")


def _name(obj: Raw) -> str:
    return str(obj["metadata"]["name"])


def _is_deleting(obj: Raw) -> bool:
    return obj["metadata"].get("deletionTimestamp") is not None


def _deployment_of(obj: Raw) -> str:
    return str((obj["metadata"].get("labels") or {}).get(DEPLOYMENT_NAME, ""))


def _class_of(template: Raw) -> str:
    return str(template["spec"]["class"]["name"])


def _same(machine: Raw, one: Raw) -> bool:
    """Whether a machine is one of that set's."""
    belongs = _deployment_of(machine) == _deployment_of(one)
    return belongs and _class_of(machine) == _class_of(one["spec"]["template"])


def _count(one: Raw) -> int:
    return int((one.get("status") or {}).get("replicas", 0))


def _condition(type: str, status: str) -> dict[str, Any]:
    return {"type": type, "status": status, "reason": "Counted", "message": "Counted."}
