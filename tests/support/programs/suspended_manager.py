"""A manager that is suspended: `suspended_manager.py KUBECONFIG TYPE FOLDER`.

TYPE is the name of its namespace, too.

Its calls wait for the file `go`, then try everything that a call can do, and note the results.
It does not end when it loses the lease, so that nothing but the fence holds it back.
"""

import sys
import time
from pathlib import Path

from actuator import Actuator, Resource
from actuator.v1alpha1 import Infrastructure
from generic.manager.manager import Manager
from generic.manager.options import Options

MAPS = Resource("v1", "configmaps")


class Sleeper(Actuator[Infrastructure]):
    permissions = (Resource("v1", "configmaps").permission("create", "patch", "delete"),)

    def __init__(self, folder):
        self.folder = folder

    def reconcile(self, ctx, obj, cluster):
        name = obj.metadata.name
        namespace = obj.metadata.namespace
        self.note(name, "called")
        while not (self.folder / "go").exists():
            time.sleep(0.02)
        metadata = {"name": name, "namespace": namespace}
        manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
        obj.status.provider_status = {"by": "the one who slept"}
        for act in (
            ctx.check,
            lambda: ctx.save(obj),
            lambda: ctx.event("Woke", "after a long sleep"),
            lambda: ctx.client.create(MAPS, manifest),
            lambda: ctx.client.apply(MAPS, manifest),
            lambda: ctx.client.patch(MAPS, "kube-root-ca.crt", namespace, {"data": {"x": "y"}}),
            lambda: ctx.client.delete(MAPS, "kube-root-ca.crt", namespace),
        ):
            try:
                act()
                self.note(name, "done")
            except Exception as error:
                self.note(name, type(error).__name__)
        self.note(name, "returned")

    def delete(self, ctx, obj, cluster):
        self.note(obj.metadata.name, "delete called")

    def note(self, name, what):
        with (self.folder / f"{name}.notes").open("a") as notes:
            notes.write(f"{what}\n")


def manager(namespace, folder, kubeconfig=None):
    made = Manager(
        Options(
            kubeconfig=kubeconfig,
            metrics_bind_address="0",
            health_bind_address="0",
            leader_election=True,
            leader_election_namespace=namespace,
            max_concurrent_reconciles=2,
        )
    )
    made.add(Sleeper(folder), type=namespace)
    return made


if __name__ == "__main__":
    running = manager(sys.argv[2], Path(sys.argv[3]), Path(sys.argv[1]))
    running.start()
    print("started", flush=True)
    time.sleep(500)
