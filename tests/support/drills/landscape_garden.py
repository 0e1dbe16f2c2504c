"""A simulated landscape for drills: garden and seed are one embedded cluster.

Not Gardener: gardenlet's part for a Shoot is played by `GardenletFlows`, its status is written as
gardenlet writes it, and a policy accepts a force deletion like gardener-apiserver.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from threading import Thread
from types import SimpleNamespace
from typing import Any

from actuator import Actuator
from actuator.errors import NotFound
from actuator.interface import Resource, kind_of, resource_of
from actuator.meta import Raw
from extensions.local.network import LocalNetwork
from generic.kube.client import HttpClient
from generic.kube.clusters import NAMESPACES
from generic.library.lookup import find
from generic.library.manifests import manifest
from generic.library.webhooks import Shoot
from generic.manager.options import Options
from generic.testing.drill.seeds import embedded_seed
from generic.testing.drill.world import manager_for, outside, serving
from generic.testing.garden import Garden, GardenletFlows, SeedShoot, error_of
from generic.testing.gardenapi.install import install_garden
from generic.testing.landscape.offers import NAMESPACE
from generic.testing.landscape.programs import gardener_version
from generic.testing.landscape.users import ShootOwner
from generic.testing.rehearsal import CombinedRehearsal, RehearsedShoot
from tests.support.drills.moving_rehearsal import OneNetwork

__all__ = ["LOST", "OwnFinalizer", "simulated_landscape"]

SHOOTS = resource_of(Shoot.KIND)
SPEC = {"region": "x", "provider": {"type": "local"}}
ADMISSION = "admissionregistration.k8s.io/v1"
POLICIES = Resource(ADMISSION, "validatingadmissionpolicies", namespaced=False)
BINDINGS = Resource(ADMISSION, "validatingadmissionpolicybindings", namespaced=False)
FORCED = "confirmation.gardener.cloud/force-deletion"
TYPE = "local"
HOLD = "gardener"
LOST = "_etcd"
"""The end of the name of a process that outlives its Shoot."""
NEVER_CODED = "s2"
"""The Shoot whose errors have no code; they show when the first Shoot is gone."""
FIRST = "s1"


class OwnFinalizer(OneNetwork):
    """The local sample's Network, whose actuator has a finalizer of its own."""

    def actuators(self) -> list[Actuator[Any]]:
        found = super().actuators()
        for actuator in found:
            assert isinstance(actuator, LocalNetwork)
            actuator.finalizer = "example.org/network"
        return found


@contextmanager
def simulated_landscape(
    _references: Sequence[str], rehearsal: CombinedRehearsal, _seeds: int, say: Any
) -> Iterator[Any]:
    """A landscape in place of `landscape_world`."""
    with outside(rehearsal, say), embedded_seed(rehearsal, say) as seed:
        install_garden(seed.admin)
        install_policy(seed.admin)
        seed.admin.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
        options = Options(kubeconfig=seed.environment.kubeconfig, outcome_events="all")
        gardenlet = Gardenlet(seed.admin, rehearsal)
        landscape = SimpleNamespace(
            seeds=[SimpleNamespace(client=seed.admin, cluster=seed.environment)],
            processes=SimpleNamespace(alive=gardenlet.processes),
        )
        offer = SimpleNamespace(shoot=gardenlet.shoot)
        try:
            with serving(manager_for(rehearsal.actuators(), [TYPE], options)):
                yield SimpleNamespace(
                    landscape=landscape,
                    installed=SimpleNamespace(offer=offer),
                    owner=partial(ShootOwner, seed.admin),
                )
        finally:
            gardenlet.stop()


def install_policy(client: HttpClient) -> None:
    """Refuse the annotation of force deletion like gardener-apiserver."""
    annotated = f"object.metadata.?annotations['{FORCED}'].hasValue()"
    coded = "object.?status.lastErrors.orValue([]).exists(e, has(e.codes))"
    rules = [
        ("has(object.metadata.deletionTimestamp)", "deletionTimestamp is nil"),
        (coded, "status does not contain one of these error codes"),
    ]
    names = {"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["shoots"]}
    spec = {
        "matchConstraints": {"resourceRules": [{**names, "operations": ["UPDATE"]}]},
        "matchConditions": [{"name": "forced", "expression": annotated}],
        "validations": [
            {"expression": rule, "message": text, "reason": "Invalid"} for rule, text in rules
        ],
    }
    client.create(POLICIES, manifest(ADMISSION, "ValidatingAdmissionPolicy", "force", spec=spec))
    bound = {"policyName": "force", "validationActions": ["Deny"]}
    kind = "ValidatingAdmissionPolicyBinding"
    client.create(BINDINGS, manifest(ADMISSION, kind, "force", spec=bound))
    await_policy(client)


def await_policy(client: HttpClient) -> None:
    """Wait until the policy is in force, as the API server learns it later."""
    probe = manifest(SHOOTS.api_version, "Shoot", "probe", "default", spec=SPEC)
    client.create(SHOOTS, probe)
    deadline = time.monotonic() + 60
    while ShootOwner(client, "probe", "default").force_delete() == "":
        assert time.monotonic() < deadline, "the policy is not in force"
        time.sleep(0.1)
    client.delete(SHOOTS, "probe", "default")


class Gardenlet:
    """Serves each Shoot in a thread of its own."""

    def __init__(self, client: HttpClient, rehearsal: CombinedRehearsal) -> None:
        self.client = client
        self.rehearsal = rehearsal
        self.kinds = [*map(kind_of, rehearsal.actuators())]
        self.threads: list[Thread] = []
        self.stopped = False

    def shoot(self, name: str) -> Raw:
        """The manifest of a Shoot, which is served from now on."""
        self.threads.append(Thread(target=self._serve, args=(name,), daemon=True))
        self.threads[-1].start()
        found = manifest(SHOOTS.api_version, "Shoot", name, NAMESPACE, spec=SPEC)
        found["metadata"]["finalizers"] = [HOLD]
        return found

    def processes(self) -> list[str]:
        """One process of the first Shoot never ends."""
        return ["gardenlet", f"shoot--dev--s1{LOST}"]

    def stop(self) -> None:
        self.stopped = True
        for thread in self.threads:
            thread.join(60)

    def _serve(self, name: str) -> None:
        with suppress(NotFound):  # it ends when the landscape does
            self._live(name)

    def _live(self, name: str) -> None:
        id = f"shoot--dev--{name}"
        self._await(name, lambda _: True)
        self._report(name, "Create", "Processing", 10, "A, B, C", technicalID=id)
        shoot = SeedShoot(technical_id=id, name=name, project="dev", region=self.rehearsal.region)
        garden = Garden(self.client)
        flow = GardenletFlows(garden, shoot, self.kinds)
        plan = self.rehearsal.manifests(RehearsedShoot(technical_id=id, type=TYPE, labels={}))
        flow.create(plan)
        self._report(name, "Create", "Succeeded", 100, "Done")
        self._await(name, lambda obj: "deletionTimestamp" in obj["metadata"])
        self._report(name, "Delete", "Processing", 20, "Deleting")
        garden.mark_deleted(shoot)
        flow.remove(self.kinds)
        self._end(name, shoot, garden, flow)
        self.client.patch(SHOOTS, name, NAMESPACE, {"metadata": {"finalizers": None}})

    def _end(self, name: str, shoot: SeedShoot, garden: Garden, flow: GardenletFlows) -> None:
        """Report errors, until the force deletion is confirmed or all objects are gone."""
        told: list[Raw] = []
        while not self.stopped:
            objects = [obj for kind in self.kinds for obj in garden.objects(kind, shoot)]
            if FORCED in (self._get(name)["metadata"].get("annotations") or {}):
                flow.force_delete()
                return
            if not objects:
                flow.clear()
                garden.finish(shoot)
                while find(self.client, NAMESPACES, shoot.technical_id):
                    time.sleep(0.2)
                return
            errors = [self._shown(name, error) for obj in objects if (error := error_of(obj))]
            if name == NEVER_CODED and self._exists(FIRST):
                errors = []
            if errors and errors != told:
                told = errors
                self._report(name, "Delete", "Error", 30, "Failed", lastErrors=errors)
            time.sleep(0.3)

    def _shown(self, name: str, error: Raw) -> Raw:
        codes = {} if name == NEVER_CODED else {"codes": error.get("codes") or []}
        return {"description": error["description"], **codes}

    def _exists(self, name: str) -> bool:
        with suppress(NotFound):
            return bool(self._get(name))
        return False

    def _get(self, name: str) -> Raw:
        return self.client.get(SHOOTS, name, NAMESPACE)

    def _await(self, name: str, holds: Any) -> None:
        while not self.stopped:
            with suppress(NotFound):
                if holds(self._get(name)):
                    return
            time.sleep(0.2)
        raise NotFound(404, name)

    def _report(
        self, name: str, type: str, state: str, progress: int, description: str, **more: Any
    ) -> None:
        """Write the status."""
        operation = {
            "type": type,
            "state": state,
            "progress": progress,
            "description": description,
        }
        generation = self._get(name)["metadata"]["generation"]
        status = {"lastOperation": operation, "observedGeneration": generation, **more}
        status["gardener"] = {"version": gardener_version()}
        self.client.patch(SHOOTS, name, NAMESPACE, {"status": status}, subresource="status")
