"""A manager for crash tests, and an outside world that outlives it: a folder of things.

    crash_program.py TYPE FOLDER FLAGS…

It prints "working" once its caches are filled. The file `die` in the folder says where it dies:
"before" or "after", and the path that a patch is about ("/metadata/finalizers", "/status"), or the
change outside ("make", "remove"). While there is a file `hold`, a deletion waits before its change
outside, and calls `ctx.check()`, as it should. With a file `leaves`, force_delete removes nothing.
"""

from __future__ import annotations

import os
import random
import sys
import threading
import time
import uuid
from pathlib import Path
from typing import Any

from actuator import Actuator
from actuator.errors import ActuatorError
from actuator.interface import ExternalResource
from actuator.v1alpha1 import Infrastructure
from generic.kube.delegating import DelegatingClient
from generic.manager import flags
from generic.manager.manager import Manager
from generic.reconciler.reporter import DeletionEnded
from generic.serving import logs

TYPE = sys.argv[1]
FOLDER = Path(sys.argv[2])


def note(file: str, *words: object) -> None:
    """Add a line to a file."""
    with (FOLDER / file).open("a") as lines:
        lines.write(" ".join(map(str, words)) + "\n")


def die_at(side: str, what: str) -> None:
    """Die if this is the place."""
    try:
        wanted = (FOLDER / "die").read_text()
    except FileNotFoundError:
        return
    if wanted == f"{side} {what}":
        (FOLDER / "die").unlink()
        os._exit(9)


def pause() -> None:
    """Leave a moment in which the process can be killed."""
    time.sleep(random.uniform(0, 0.03))


def things(uid: object) -> list[Path]:
    """Return the things of an object."""
    return sorted(FOLDER.glob(f"thing-{uid}-*"))


def change(what: str, thing: Path) -> None:
    """Make or remove a thing: one request to the outside."""
    pause()
    die_at("before", what)
    note("changes", os.getpid(), what)
    if what == "make":
        thing.touch()
    else:
        thing.unlink(missing_ok=True)
    die_at("after", what)
    pause()


class OneThing(Actuator[Infrastructure]):
    """One thing for each object, whose name has the object's uid."""

    def reconcile(self, ctx: Any, obj: Any, cluster: Any) -> None:
        """Make it once."""
        assert Infrastructure.KIND.finalizer in obj.metadata.finalizers
        uid = obj.metadata.uid
        if not things(uid):
            change("make", FOLDER / f"thing-{uid}-{uuid.uuid4()}")
        obj.status.provider_status = {"thing": things(uid)[0].name}
        note("done", "reconcile", obj.metadata.name)

    def restore(self, ctx: Any, obj: Any, cluster: Any) -> None:
        """Do the same."""
        self.reconcile(ctx, obj, cluster)
        note("done", "restore", obj.metadata.name)

    def migrate(self, ctx: Any, obj: Any, cluster: Any) -> None:
        """Leave it."""
        pause()
        note("done", "migrate", obj.metadata.name)

    def delete(self, ctx: Any, obj: Any, cluster: Any) -> None:
        """Remove it, if it exists."""
        note("calls", os.getpid(), "delete")
        while (FOLDER / "hold").exists():
            ctx.check()
            time.sleep(0.05)
        ctx.check()
        for thing in things(obj.metadata.uid):
            change("remove", thing)
        note("done", "delete", obj.metadata.name)

    def force_delete(self, ctx: Any, obj: Any, cluster: Any) -> None:
        """Do the same, or leave it."""
        if not (FOLDER / "leaves").exists():
            self.delete(ctx, obj, cluster)
        pause()
        note("done", "force_delete", obj.metadata.name)

    def external_resources(self, obj: Any) -> list[ExternalResource]:
        """Report the thing."""
        if obj.metadata.uid is None:
            raise ActuatorError("no object without a uid")
        return [ExternalResource(type="thing", tags={"uid": obj.metadata.uid})]


class DyingClient(DelegatingClient):
    """A client that dies before or after a patch of a kind."""

    def patch(
        self, resource: Any, name: str, namespace: str, patch: Any, *, subresource: str = ""
    ) -> Any:
        """See Client."""
        what = f"/{subresource}" if subresource else "/metadata/finalizers"
        die_at("before", what)
        answer = self._inner.patch(resource, name, namespace, patch, subresource=subresource)
        die_at("after", what)
        return answer


def note_counted(ended: DeletionEnded) -> None:
    """Note a final outcome, already counted, in a file that survives a kill."""
    if ended.outcome.final:
        note("counted", ended.outcome.value, ended.name)


def tell(manager: Manager) -> None:
    """Print once the caches are filled."""
    while not manager.wait_synced():
        time.sleep(0.02)
    print("working", flush=True)


def main() -> None:
    """Run until a signal."""
    options = flags.from_args(sys.argv[3:])
    logs.configure(options.log_level, options.log_format)
    manager = Manager(options, intercept=DyingClient, listeners=[note_counted])
    manager.add(OneThing(), type=TYPE)
    threading.Thread(target=tell, args=(manager,), daemon=True).start()
    manager.run()


if __name__ == "__main__":
    main()
