"""A manager that gets killed, and an outside that outlives it: a folder with a file per thing.

    victim.py KUBECONFIG TYPE FOLDER WORKERS

Each thing carries the uid it was made for; making one takes a while, so that there is something
to interrupt.
"""

import random
import sys
import time
import uuid
from pathlib import Path

from actuator import Actuator
from actuator.v1alpha1 import Infrastructure
from generic.manager.manager import Manager
from generic.manager.options import Options
from generic.reconciler.reporter import DeletionEnded

WORKERS = int(sys.argv[4])
FOLDER = Path(sys.argv[3])


def pause():
    time.sleep(random.uniform(0, 0.03))


def note(operation, obj):
    with (FOLDER / "calls").open("a") as calls:
        calls.write(f"{operation} {obj.metadata.name}\n")


def things(uid):
    return sorted(FOLDER.glob(f"thing-{uid}-*"))


class Victim(Actuator[Infrastructure]):
    def reconcile(self, ctx, obj, cluster):
        assert Infrastructure.KIND.finalizer in obj.metadata.finalizers
        pause()
        if not things(obj.metadata.uid):
            (FOLDER / f"thing-{obj.metadata.uid}-{uuid.uuid4()}").touch()
        pause()
        obj.status.provider_status = {"thing": things(obj.metadata.uid)[0].name}
        ctx.save(obj)
        pause()
        note("reconcile", obj)

    def restore(self, ctx, obj, cluster):
        self.reconcile(ctx, obj, cluster)
        note("restore", obj)

    def migrate(self, ctx, obj, cluster):
        pause()
        note("migrate", obj)

    def delete(self, ctx, obj, cluster):
        pause()
        for thing in things(obj.metadata.uid):
            thing.unlink(missing_ok=True)
        pause()
        note("delete", obj)

    def force_delete(self, ctx, obj, cluster):
        pause()
        note("force_delete", obj)


def note_counted(ended: DeletionEnded):
    """Notes a final outcome, which is counted by now, where a kill does not reach it."""
    if ended.outcome.final:
        with (FOLDER / "counted").open("a") as counted:
            counted.write(f"{ended.outcome.value} {ended.name}\n")


if __name__ == "__main__":
    manager = Manager(
        Options(
            kubeconfig=Path(sys.argv[1]),
            metrics_bind_address="0",
            health_bind_address="0",
            max_concurrent_reconciles=WORKERS,
        ),
        listeners=[note_counted],
    )
    manager.add(Victim(), type=sys.argv[2])
    manager.start()
    manager.wait_synced()
    print("working", flush=True)
    time.sleep(120)
