"""A manager that dies where it is told to, and an outside that outlives it: a folder of things.

    mortal.py TYPE FOLDER FLAGS…

The file `die` in the folder says where: "before" or "after", and what: the path that a patch is
about ("/metadata/finalizers", "/status"), or the change outside ("make", "remove"). While there is
a file `hold`, a deletion waits before its change outside, asking `ctx.check()`, as it should.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

from actuator import Actuator
from actuator.errors import ActuatorError
from actuator.interface import ExternalResource
from actuator.v1alpha1 import Infrastructure
from generic.controller import logs
from generic.kube.delegating import DelegatingClient
from generic.manager import flags
from generic.manager.manager import Manager

TYPE, FOLDER = sys.argv[1], Path(sys.argv[2])


def pass_by(side: str, what: str) -> None:
    """Dies if this is the place."""
    try:
        wanted = (FOLDER / "die").read_text()
    except FileNotFoundError:
        return
    if wanted == f"{side} {what}":
        (FOLDER / "die").unlink()
        os._exit(9)


def change(what: str, thing: Path) -> None:
    """One request to the outside."""
    pass_by("before", what)
    with (FOLDER / "changes").open("a") as changes:
        changes.write(f"{os.getpid()} {what}\n")
    if what == "make":
        thing.touch()
    else:
        thing.unlink(missing_ok=True)
    pass_by("after", what)


class Mortal(Actuator[Infrastructure]):
    """Makes a thing for each object, under a name that it finds again."""

    def reconcile(self, ctx: Any, obj: Any, cluster: Any) -> None:
        """Makes it once."""
        thing = FOLDER / f"thing-{obj.metadata.uid}"
        if not thing.exists():
            change("make", thing)
        obj.status.provider_status = {"thing": thing.name}

    def delete(self, ctx: Any, obj: Any, cluster: Any) -> None:
        """Removes it, if it is there."""
        with (FOLDER / "calls").open("a") as calls:
            calls.write(f"{os.getpid()} delete\n")
        while (FOLDER / "hold").exists():
            ctx.check()
            time.sleep(0.05)
        ctx.check()
        thing = FOLDER / f"thing-{obj.metadata.uid}"
        if thing.exists():
            change("remove", thing)

    def force_delete(self, ctx: Any, obj: Any, cluster: Any) -> None:
        """The same, where that works."""
        self.delete(ctx, obj, cluster)

    def external_resources(self, obj: Any) -> list[ExternalResource]:
        """The thing, by its name."""
        if obj.metadata.uid is None:
            raise ActuatorError("no object without a uid")
        return [ExternalResource(type="thing", id=f"thing-{obj.metadata.uid}")]


class Dying(DelegatingClient):
    """A client that dies before or after a patch of a kind."""

    def patch(
        self, resource: Any, name: str, namespace: str, patch: Any, *, subresource: str = ""
    ) -> Any:
        """See Client."""
        what = f"/{subresource}" if subresource else "/metadata/finalizers"
        pass_by("before", what)
        answer = self._inner.patch(resource, name, namespace, patch, subresource=subresource)
        pass_by("after", what)
        return answer


if __name__ == "__main__":
    options = flags.from_args(sys.argv[3:])
    logs.configure(options.log_level, options.log_format)
    manager = Manager(options, intercept=Dying)
    manager.add(Mortal(), type=TYPE)
    manager.run()
