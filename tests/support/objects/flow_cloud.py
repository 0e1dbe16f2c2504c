"""A cloud in memory for flows, with the refusals of a real one; it may die at any request."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

import attrs

from actuator.codec import decode
from actuator.errors import ActuatorError
from actuator.meta import Raw
from actuator.v1alpha1 import Infrastructure
from generic.library.flow import ExternalType, Flow, Task
from generic.library.flowstate import FlowState, Ids
from tests.support.objects.stand_ins import StandIn

TYPES = ("link", "host")


class Killed(BaseException):
    pass


class Refused(ActuatorError):
    pass


@attrs.frozen
class Wanted:
    """One task of a configuration."""

    needs: tuple[str, ...] = ()
    version: int = 1
    """It cannot be changed, so another one is a replacement."""
    when: bool = True
    existing: str = ""
    """The id of a resource of another owner."""
    type: str = TYPES[0]

    @property
    def owned(self) -> bool:
        return self.when and not self.existing


Config = Mapping[str, Wanted]


@attrs.define
class Thing:
    name: str
    type: str
    version: int
    uses: dict[str, str]
    """The ids of the resources that it needs."""


def infrastructure(state: Raw | None) -> Infrastructure:
    spec = {"type": "flow", "region": "here", "secretRef": {"name": "account"}}
    meta = {"name": "infra", "namespace": "shoot--flow"}
    status = {"state": state, "providerStatus": {"kind": "Network"} if state else None}
    return decode(Infrastructure, {"metadata": meta, "spec": spec, "status": status})


@attrs.define
class FlowCloud(StandIn):
    """Resources by id; each request may be the last one, before or after it takes effect."""

    things: dict[str, Thing] = attrs.field(factory=dict)
    log: list[str] = attrs.field(factory=list)
    state: Raw | None = None
    kill_at: int = 0
    """The request at which the process dies; 0 is never."""
    fails: bool = False
    parallel: int = 1
    _points: int = 0
    _ids: count[int] = attrs.field(factory=lambda: count(1))
    _lock: threading.RLock = attrs.field(factory=threading.RLock)

    @property
    def names(self) -> list[str]:
        return sorted(thing.name for thing in self.things.values())

    @property
    def saved(self) -> FlowState:
        return FlowState.read(infrastructure(self.state)) or FlowState()

    def run(
        self, config: Config, *, delete: bool = False, kill_at: int = 0, fails: bool = False
    ) -> bool:
        """Run the flow from the saved state; return False if the process was killed.

        With `fails` that request fails instead, and the framework writes the status.
        """
        obj = infrastructure(self.state)
        state = self.saved
        self.kill_at = kill_at
        self.fails = fails
        self._points = 0
        types = [self.type(name) for name in TYPES]
        tasks = [] if delete else [self.task(name, wanted) for name, wanted in config.items()]
        flow = Flow(types, tasks, parallel=self.parallel)
        try:
            ctx: Any = self
            (flow.delete if delete else flow.create)(ctx, obj, state)
            self.save(obj)  # the framework writes the status at the end of the call
        except Killed:
            return False
        except Refused:
            self.kill_at = 0
            self.save(obj)
            return False
        return True

    def save(self, obj: Infrastructure) -> None:
        """Write the status, as Context.save does."""
        self._point()
        self.state = obj.status.state
        self._point()

    def type(self, type: str) -> ExternalType:
        def find(name: str, ids: Ids) -> Sequence[str]:
            wanted = (name, type)
            return [id for id, it in self.things.items() if (it.name, it.type) == wanted]

        return ExternalType(name=type, find=find, delete=self._delete)

    def task(self, name: str, wanted: Wanted) -> Task:
        if wanted.existing:
            return Task(
                name=name,
                type=wanted.type,
                needs=wanted.needs,
                when=wanted.when,
                existing=lambda _ids: wanted.existing,
            )
        return Task(
            name=name,
            type=wanted.type,
            needs=wanted.needs,
            when=wanted.when,
            create=lambda ids: self._create(name, wanted, ids),
            update=lambda known, ids: self._update(known, wanted, ids),
            replace=lambda known, _ids: self.things[known].version != wanted.version,
        )

    def differences(self, interrupted: int = 1) -> list[str]:
        """Compare the records of the state with the existing things, as an Orphan would.

        Those may be recorded and not exist that were in flight in interrupted runs.
        """
        recorded = list(self.saved.external_resources(lambda name: {"Name": name}))
        by_id = {item.id for item in recorded if item.id}
        by_tag = {(item.type, item.tags["Name"]) for item in recorded if not item.id}
        pending = {
            id for id, thing in self.things.items() if (thing.type, thing.name) in by_tag
        } - by_id
        unrecorded = [f"not recorded: {id}" for id in self.things.keys() - by_id - pending]
        absent = len(by_id - self.things.keys()) + len(by_tag) - len(pending)
        return unrecorded + [f"recorded, but gone: {recorded}"] * (
            absent > interrupted * self.parallel
        )

    def _create(self, name: str, wanted: Wanted, ids: Ids) -> str:
        self._point()
        with self._lock:
            assert name not in self.names, f"{name} is created twice"
            id = f"id-{next(self._ids)}"
            uses = self._uses(wanted, ids)
            self.things[id] = Thing(name, wanted.type, wanted.version, uses)
            self.log.append(f"create {name}")
        self._point()
        return id

    def _update(self, id: str, wanted: Wanted, ids: Ids) -> None:
        self._point()
        with self._lock:
            uses = self._uses(wanted, ids)
            before = self.things[id].uses
            moved = [need for need in uses.keys() & before.keys() if uses[need] != before[need]]
            assert not moved, f"{id} cannot be moved to another {moved}"
            self.things[id].uses = uses
        self._point()

    def _uses(self, wanted: Wanted, ids: Ids) -> dict[str, str]:
        uses = {need: ids[need] for need in wanted.needs if need in ids}
        for id in uses.values():
            assert id in self.things or id.startswith("their"), f"{id} does not exist"
        return uses

    def _delete(self, id: str, _ids: Ids) -> None:
        self._point()
        with self._lock:
            users = [other for other, thing in self.things.items() if id in thing.uses.values()]
            assert not users, f"{id} is deleted before {users}"
            assert not id.startswith("their"), f"{id} has another owner"
            if thing := self.things.pop(id, None):
                self.log.append(f"delete {thing.name}")
        self._point()

    def _point(self) -> None:
        with self._lock:
            self._points += 1
            if 0 < self.kill_at <= self._points:
                raise Refused("not now") if self.fails else Killed
