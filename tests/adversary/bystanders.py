"""Bystanders: healthy objects, served by the same manager as the hostile ones."""

from __future__ import annotations

import json
import threading
import time
from datetime import UTC, datetime

from actuator.errors import ActuatorError, NotFound
from actuator.interface import Resource, resource_of
from generic.controller.predicates import OPERATION, TIMESTAMP
from generic.kube.client import HttpClient
from generic.testing.drill.names import Names
from generic.testing.garden import Garden, not_ready_because
from tests.adversary.inputs import CLASSES, MARK, plain
from tests.adversary.judge import PATIENCE, Report
from tests.adversary.values import LABEL

__all__ = ["Bystanders"]

_CONFIGMAPS = Resource("v1", "configmaps")
_SECRETS = Resource("v1", "secrets")


class Bystanders:
    """A healthy object of every kind, asked for an operation again and again."""

    def __init__(self, client: HttpClient, names: Names, report: Report) -> None:
        self._client = client
        self._garden = Garden(client)
        self._report = report
        self._shoot = names.shoot("bystander", "eu-1")
        self._type = names.type
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Returns once each was served for the first time. Raises ActuatorError."""
        self._garden.create_namespace(self._shoot)
        namespace = self._shoot.technical_id
        meta = {"name": "bystander", "namespace": namespace, "labels": {LABEL: ""}}
        secret = {"metadata": {**meta, "name": "secret"}, "stringData": {"mark": MARK}}
        self._client.create(_SECRETS, secret)
        self._client.create(_CONFIGMAPS, {"metadata": meta})
        for cls in CLASSES:
            manifest = json.loads(plain(cls, self._type, namespace, namespace))
            self._client.create(resource_of(cls.KIND), manifest)
        self._ask_all()
        if self._report.problems:
            raise ActuatorError(f"the manager does not even serve plain objects: {self._report}")
        self._thread.start()

    def stop(self) -> None:
        """Send no more requests; report each protected object that was deleted."""
        self._over.set()
        self._thread.join()
        try:
            self._client.get(_CONFIGMAPS, "bystander", self._shoot.technical_id)
        except NotFound:
            self._report.complain("served", "bystander", "its ConfigMap was deleted")

    def _run(self) -> None:
        while not self._over.wait(2.0):
            self._ask_all()

    def _ask_all(self) -> None:
        for cls in CLASSES:
            kind = cls.KIND
            where = self._shoot.technical_id if kind.namespaced else ""
            now = datetime.now(UTC).isoformat()
            asked = {"annotations": {OPERATION: "reconcile", TIMESTAMP: now}}
            patch = {"metadata": asked, "spec": {"providerConfig": {"asked": now}}}
            if not kind.has_operation_annotation:
                del patch["metadata"]
            self._client.patch(resource_of(kind), self._shoot.technical_id, where, patch)
            problem = self._not_ready(resource_of(kind), where)
            if problem:
                self._report.complain("served", f"bystander {kind.name}", problem)

    def _not_ready(self, resource: Resource, namespace: str) -> str | None:
        deadline = time.monotonic() + PATIENCE
        while not self._over.is_set():
            obj = self._client.get(resource, self._shoot.technical_id, namespace)
            problem = not_ready_because(obj)
            if problem is None or time.monotonic() > deadline:
                return problem
            time.sleep(0.1)
        return None
