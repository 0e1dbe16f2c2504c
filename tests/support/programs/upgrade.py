"""Objects in every operation, as a version of the framework leaves them, and how each has to end.

`python tests/support/programs/upgrade.py FILE` records them from a manager that is killed: a later
version must take them over. With `--first DIR` and `--second DIR`, the managers are those of these
folders.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from actuator import Client, Resource
from actuator.errors import NotFound
from actuator.meta import Raw
from actuator.v1alpha1 import KINDS, Cluster
from generic.kube.client import connect
from generic.kube.clusters import CLUSTERS, NAMESPACES
from generic.reconciler.orphans import FORCE_DELETIONS, ORPHANS, RECORD_KINDS
from generic.testing.envtest import Environment
from generic.testing.seed import install
from tests.support.objects import builders

INFRASTRUCTURES = Resource("extensions.gardener.cloud/v1alpha1", "infrastructures")
LEASES = Resource("coordination.k8s.io/v1", "leases")
OPERATION = "gardener.cloud/operation"
TYPE = "former"
VERSIONED = Path(__file__).with_name("versioned_extension.py")

STATES: dict[str, tuple[str, tuple[str, str] | None]] = {
    "ready": ("", ("Create", "Succeeded")),
    "creating": ("", ("Create", "Processing")),
    "reconciling": ("reconcile", ("Reconcile", "Processing")),
    "failed": ("reconcile", ("Reconcile", "Error")),
    "deleting": ("delete", ("Delete", "Error")),
    "migrating": ("migrate", ("Migrate", "Error")),
    "migrated": ("migrate", ("Migrate", "Succeeded")),
    "restoring": ("restore", ("Restore", "Error")),
    "waiting": ("wait-for-state", None),
    "force-deleting": ("force", ("Delete", "Error")),
    "forced": ("force", None),
}
"""The requested operation, and the lastOperation in which the manager is killed."""

HANG = {"creating", "reconciling"}
FAIL = {name for name, (_, last) in STATES.items() if last and last[1] == "Error"}

ENDS: dict[str, tuple[list[str], tuple[str, str] | None]] = {
    "ready": ([], ("Create", "Succeeded")),
    "creating": (["reconcile"], ("Create", "Succeeded")),
    "reconciling": (["reconcile"], ("Reconcile", "Succeeded")),
    "failed": (["reconcile"], ("Reconcile", "Succeeded")),
    "deleting": (["delete"], None),
    "migrating": (["migrate"], ("Migrate", "Succeeded")),
    "migrated": ([], ("Migrate", "Succeeded")),
    "restoring": (["restore"], ("Restore", "Succeeded")),
    "waiting": ([], None),
    "force-deleting": (["force_delete"], None),
    "forced": ([], None),
}
"""The calls of the version that takes over, and the last lastOperation."""

GONE = {"deleting", "force-deleting", "forced"}


class World:
    """The objects of all states in one API server; namespaces and types begin with `type`."""

    def __init__(self, client: Client, type: str, folder: Path) -> None:
        self.client = client
        self.type = type
        self.folder = folder

    def namespace(self, state: str) -> str:
        return f"{self.type}-{state}"

    def record(self, state: str) -> dict[str, str]:
        """The record of the extension about its VPC."""
        kind = {"apiVersion": "example.org/v1", "kind": "NetworkStatus"}
        return {**kind, "vpc": f"vpc-{self.namespace(state)}"}

    def get(self, state: str) -> Raw | None:
        with suppress(NotFound):
            return self.client.get(INFRASTRUCTURES, "infra", self.namespace(state))
        return None

    def last_operation(self, state: str) -> tuple[str, str] | None:
        last = ((self.get(state) or {}).get("status") or {}).get("lastOperation")
        return (last["type"], last["state"]) if last else None

    def orphans(self) -> dict[str, str]:
        """The recorded ids, by state."""
        found = [obj["spec"] for obj in self.client.list(ORPHANS)]
        mine = [item for item in found if item["object"].get("type") == self.type]
        return {item["shoot"].removeprefix(f"{self.type}-"): item["id"] for item in mine}

    def force_deletions(self) -> dict[str, Raw]:
        """The specs of the records, by state."""
        found = [obj["spec"] for obj in self.client.list(FORCE_DELETIONS)]
        mine = [spec for spec in found if spec["object"].get("type") == self.type]
        return {spec["object"]["namespace"].removeprefix(f"{self.type}-"): spec for spec in mine}

    def calls(self) -> dict[str, list[str]]:
        """The operations called by state, without repeats."""
        calls: dict[str, list[str]] = {}
        path = self.folder / "calls"
        for line in path.read_text().splitlines() if path.exists() else ():
            operation, state, _ = line.split(" ", 2)
            if operation not in calls.setdefault(state, []):
                calls[state].append(operation)
        return calls

    def set(self, **names: set[str]) -> None:
        for file, listed in names.items():
            (self.folder / file).write_text(" ".join(listed))

    def annotate(self, state: str, operation: str) -> None:
        patch = {"metadata": {"annotations": {OPERATION: operation}}}
        self.client.patch(INFRASTRUCTURES, "infra", self.namespace(state), patch)

    def create(self, state: str) -> None:
        """The shoot, and its object as gardenlet creates it."""
        namespace = self.namespace(state)
        asked = STATES[state][0]
        self.client.create(NAMESPACES, {"metadata": {"name": namespace}})
        self.client.create(CLUSTERS, builders.cluster(namespace))
        restores = asked in ("restore", "wait-for-state")
        annotations = {OPERATION: "wait-for-state" if restores else "reconcile"}
        made = builders.infrastructure(namespace, self.type, annotations=annotations)
        self.client.create(INFRASTRUCTURES, made)
        if restores:
            patch = {"status": {"state": self.record(state)}}
            self.client.patch(INFRASTRUCTURES, "infra", namespace, patch, subresource="status")

    def restore(self, records: dict[str, list[Raw]]) -> None:
        """Create recorded objects anew."""
        for cluster in records["clusters"]:
            self.client.create(NAMESPACES, {"metadata": {"name": cluster["metadata"]["name"]}})
            self.client.create(CLUSTERS, without_uid(cluster))
        for resource in (ORPHANS, FORCE_DELETIONS):
            for record in records[resource.plural]:
                self._create(resource, record)
        for infrastructure in records["infrastructures"]:
            self._create(INFRASTRUCTURES, infrastructure)
            if "deletionTimestamp" in infrastructure["metadata"]:
                self.client.delete(
                    INFRASTRUCTURES, "infra", infrastructure["metadata"]["namespace"]
                )

    def _create(self, resource: Resource, record: Raw) -> None:
        self.client.create(resource, without_uid(record))
        if status := record.get("status"):
            meta = record["metadata"]
            where = meta.get("namespace", "")
            patch = {"status": status}
            self.client.patch(resource, meta["name"], where, patch, subresource="status")

    def ask(self, state: str) -> None:
        """For the operation of the state."""
        asked = STATES[state][0]
        namespace = self.namespace(state)
        if asked in ("reconcile", "migrate", "restore"):
            self.annotate(state, asked)
        elif asked == "force":
            forced = builders.cluster(namespace, force="true")["spec"]
            self.client.patch(CLUSTERS, namespace, "", {"spec": forced})
        if asked in ("delete", "force"):
            self.client.delete(INFRASTRUCTURES, "infra", namespace)

    def prepare(self) -> None:
        """With a manager that runs: bring every object into its state."""
        self.set(hang={"creating"})
        for state in STATES:
            self.create(state)
        first = [state for state in STATES if state not in ("restoring", "waiting", "creating")]
        until(lambda: all(self.last_operation(item) == ("Create", "Succeeded") for item in first))
        self.set(hang=HANG, fail=FAIL)
        for state in STATES:
            self.ask(state)
        until(self.is_prepared)

    def is_prepared(self) -> bool:
        reached = all(self.last_operation(state) == last for state, (_, last) in STATES.items())
        return reached and self.get("forced") is None and "forced" in self.orphans()

    def take_over(self) -> None:
        """From now on, calls succeed and are counted."""
        self.set(hang=set(), fail=set())
        (self.folder / "calls").write_text("")

    def unfinished(self) -> dict[str, object]:
        """The states whose objects did not end as expected, with their calls and last operation."""
        calls = self.calls()
        return {
            state: (calls.get(state, []), self.last_operation(state))
            for state, (expected, last) in ENDS.items()
            if (calls.get(state, []), self.last_operation(state)) != (expected, last)
            or (self.get(state) is None) != (state in GONE)
        }


def without_uid(record: Raw) -> Raw:
    """As it can be created."""
    given = {"uid", "deletionTimestamp", "deletionGracePeriodSeconds"}
    kept = {name: value for name, value in record["metadata"].items() if name not in given}
    return {**record, "metadata": kept}


def until(condition: Callable[[], bool], seconds: float = 60) -> None:
    """Waits for it."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, condition
        time.sleep(0.05)


@contextmanager
def manager(source: Path, kubeconfig: Path, folder: Path, log: Path) -> Any:
    """One with the framework in that folder; killed at the end."""
    command = [sys.executable, str(VERSIONED), TYPE, str(folder), f"--kubeconfig={kubeconfig}"]
    flags = ["--metrics-bind-address=0", "--health-bind-address=0"]
    leading = ["--leader-election=true", "--leader-election-namespace=default"]
    env = {**os.environ, "PYTHONPATH": str(source.resolve())}
    with log.open("ab") as output:
        process = subprocess.Popen(
            [*command, *flags, *leading], env=env, cwd=folder, stdout=output, stderr=output
        )
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def recorded(client: Client) -> dict[str, list[Raw]]:
    """All objects, without fields that the API server adds."""
    found: dict[str, list[Raw]] = {}
    for resource in (CLUSTERS, INFRASTRUCTURES, ORPHANS, FORCE_DELETIONS, LEASES):
        where = "default" if resource is LEASES else ""
        found[resource.plural] = items = client.list(resource, where)
        for item in items:
            for field in ("resourceVersion", "managedFields", "creationTimestamp", "generation"):
                item["metadata"].pop(field, None)
    return found


def main() -> None:
    here = Path(__file__).parents[3]
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=Path, nargs="?")
    parser.add_argument("--first", type=Path, default=here)
    parser.add_argument("--second", type=Path, default=here)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, Environment() as environment:
        folder = Path(name)
        log = Path(name) / "log"
        install(environment, [*RECORD_KINDS, Cluster, *KINDS])
        client = connect(environment.kubeconfig)
        world = World(client, TYPE, folder)
        try:
            with manager(given.first, environment.kubeconfig, folder, log) as first:
                world.prepare()
                first.send_signal(signal.SIGKILL)
            if given.file:
                given.file.write_text(json.dumps(recorded(client), indent=1, sort_keys=True) + "\n")
            world.take_over()
            with manager(given.second, environment.kubeconfig, folder, log):
                with suppress(AssertionError):
                    until(lambda: not world.unfinished())
                time.sleep(3)
                left = world.unfinished()
                print("unfinished:", left)
                print("orphans:", world.orphans())
        except BaseException:
            print(log.read_text()[-8000:])
            raise
    sys.exit(bool(left))


if __name__ == "__main__":
    main()
