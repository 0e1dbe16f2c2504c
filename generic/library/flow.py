"""Flow: the external resources of one object, created and deleted as a graph of tasks.

An infrastructure actuator describes each type of resource once (`ExternalType`: how to find and to
delete one), and each resource as a `Task`: its type, how to create it, and the tasks that it needs.
`Flow.create` and `Flow.delete` run them in order. `FlowState` in status.state has a record of each
resource that may exist; providerStatus belongs to the actuator.

Guarantees, also for a process that is killed at any point:
- A resource is in the saved state before it is requested, and its id before the next creation.
- Every task looks for its resource first, so that none is created twice.
- After `create` exactly the resources of the tasks exist: those of tasks that are no longer there,
  or not wanted, are deleted.
- A resource is deleted after all resources that need it.
- `external_resources` returns what exists, and of resources that do not only those that were being
  created, identified by their tags, or deleted when a process ended: at most `parallel` for each.

Not here: a provider's requests.
"""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

import attrs

from actuator.errors import ActuatorError, ConfigurationError, ErrorCode
from actuator.interface import Context
from actuator.meta import Object
from generic.library.flowstate import (
    FlowState,
    Ids,
    ResourceRecord,
    dependents,
    obsolete,
    status_of,
)
from generic.library.inorder import Graph, run_in_order


@attrs.frozen(kw_only=True)
class ExternalType:
    """A type of resource. Each function may raise ActuatorError and RequeueAfter."""

    name: str
    """The provider's type, as in ExternalResource."""
    find: Callable[[str, Ids], Sequence[str]]
    """Returns the ids of all existing resources of the task with that name, by their tags: none or
    one, or more after a creation that was repeated. The ids are those of the other tasks."""
    delete: Callable[[str, Ids], None]
    """Deletes the resource with the id; a resource that does not exist is success."""


@attrs.frozen(kw_only=True)
class Task:
    """One resource; `name` is unique in its flow. Each function may raise ActuatorError.

    A task has `create`, or `existing` for a resource of another owner, which is neither changed nor
    deleted.
    """

    name: str
    type: str
    """The name of an ExternalType."""
    create: Callable[[Ids], str] | None = None
    """Requests the resource, with tags, and returns its id."""
    existing: Callable[[Ids], str] | None = None
    """Returns the id of the resource of another owner, or "" if there is none."""
    update: Callable[[str, Ids], None] = lambda _id, _ids: None
    """Changes the existing or new resource with the id until it is as requested."""
    replace: Callable[[str, Ids], bool] = lambda _id, _ids: False
    """Whether the resource with the id cannot be updated: it, and before it all that need it, are
    deleted and created again."""
    needs: Sequence[str] = ()
    """The names of the tasks whose resources must exist first."""
    when: bool = True
    """Whether the resource is wanted. Tasks that need an unwanted one do not get its id."""


class Flow:
    """The tasks of one object, ordered by their dependencies, otherwise as given.

    Up to `parallel` tasks run at once, each in its thread; with 1 all run in the calling thread.
    """

    def __init__(
        self, types: Iterable[ExternalType], tasks: Iterable[Task] = (), *, parallel: int = 1
    ) -> None:
        """Raises ValueError for a wrong graph: names, types, dependencies, cycles."""
        self._types = {type.name: type for type in types}
        self._tasks: dict[str, Task] = {}
        self._parallel = parallel
        for task in tasks:
            if self._tasks.setdefault(task.name, task) is not task:
                raise ValueError(f"two tasks have the name {task.name!r}")
        for task in self._tasks.values():
            self._check(task)
        try:
            TopologicalSorter({name: task.needs for name, task in self._tasks.items()}).prepare()
        except CycleError as error:
            raise ValueError(f"tasks need each other: {' -> '.join(error.args[1])}") from error

    def create(self, ctx: Context, obj: Object, state: FlowState) -> Ids:
        """Create missing resources, update or replace the others, delete those of former tasks.

        Returns the ids by task. Raises ActuatorError if a task has more than one resource, or a
        recorded one is of an unknown type. After an error, the state of `obj` has everything that
        may exist, too.
        """
        wanted = {name: task for name, task in self._tasks.items() if task.when}
        first, last = obsolete(state.resources, wanted)
        self._check_types(state)
        run = _Run(ctx, obj, state, self._types, wanted)
        try:
            run.delete_all(first, self._parallel)
            graph, parallel = self._order(state, [*wanted, *last])
            run_in_order(graph, run.ensure, parallel)
            run.delete_all(last, self._parallel)
        finally:
            state.write(obj)
        return state.ids

    def delete(self, ctx: Context, obj: Object, state: FlowState) -> None:
        """Delete all recorded resources, dependents first, also those whose ids are unknown.

        At last it clears state and providerStatus of `obj`. Raises ActuatorError for a resource of
        an unknown type, before anything is deleted.
        """
        names = [record.name for record in state.resources]
        self._check_types(state)
        try:
            _Run(ctx, obj, state, self._types, {}).delete_all(names, self._parallel)
        finally:
            state.write(obj)
        status = status_of(obj)
        status.provider_status = status.state = None

    def _check(self, task: Task) -> None:
        if task.type not in self._types:
            raise ValueError(f"task {task.name!r} has the type {task.type!r}, which is not given")
        if (task.create is None) == (task.existing is None):
            raise ValueError(f"task {task.name!r} needs either `create` or `existing`")
        for name in task.needs:
            if name not in self._tasks:
                raise ValueError(f"task {task.name!r} needs {name!r}, which is no task")

    def _check_types(self, state: FlowState) -> None:
        """Stop before anything is deleted if something could not be deleted later."""
        for record in state.resources:
            if record.type not in self._types and not record.existing:
                raise ActuatorError(
                    f"status.state has a resource {record.name!r} ({record.type} {record.id}) of "
                    "a type that this version of the extension does not know; use the version "
                    "that created it",
                    codes=[ErrorCode.ERR_INFRA_DEPENDENCIES],
                )

    def _order(self, state: FlowState, names: Iterable[str]) -> tuple[Graph, int]:
        """Return the order of the names, and how many may run at once.

        A task also waits for what its resource needed until now, because a replacement there
        deletes it. Where needs were reversed, that is impossible, so nothing runs in parallel.
        """
        needs = {name: [*self._tasks[name].needs] for name in names if name in self._tasks}
        now = {name: [need for need in needs.get(name, ()) if need in names] for name in names}
        recorded = {record.name: record.needs for record in state.resources}
        graph = {
            name: [*before, *(need for need in recorded.get(name, ()) if need in names)]
            for name, before in now.items()
        }
        try:
            TopologicalSorter(graph).prepare()
        except CycleError:
            return now, 1
        return graph, self._parallel


@attrs.define
class _Run:
    """One call of a flow; its state changes here only, under the lock."""

    _ctx: Context
    _obj: Object
    _state: FlowState
    _types: Mapping[str, ExternalType]
    _wanted: Mapping[str, Task]
    _lock: threading.Lock = attrs.field(factory=threading.Lock)
    _deleted: set[tuple[str, str]] = attrs.field(factory=set)
    """Types and ids that a provider may still return for a moment after their deletion."""

    def ensure(self, name: str) -> None:
        """Create the resource of a wanted task, or update it; ignore other names."""
        task = self._wanted.get(name)
        if task is None:
            return
        id = self._look(task)
        record = self._state.get(name)
        if record and _is_replaced(record, task, id, self._ids()):
            self.delete_all(dependents(self._state.resources, name))
            id = self._look(task)
        if not id:
            self._record(task, "")
            self._save()
            id = task.create(self._ids()) if task.create else ""
        if self._record(task, id):
            self._save()
        if task.existing is None:
            task.update(id, self._ids())
        self._record(task, id, updated=True)

    def delete_all(self, names: Iterable[str], parallel: int = 1) -> None:
        """Delete the resources of the names, in order: each after those that need it."""
        chosen = {*names}
        records = [record for record in self._state.resources if record.name in chosen]
        order: dict[str, list[str]] = {record.name: [] for record in records}
        for record in records:
            for need in record.needs:
                if need in order:
                    order[need].append(record.name)
        run_in_order(order, self._delete, parallel)

    def _delete(self, name: str) -> None:
        record = self._state.get(name)
        if record is None:
            return
        if not record.existing:
            type = self._types[record.type]
            ids = self._state.ids
            for id in dict.fromkeys((record.id, *type.find(name, ids))):
                if id and (record.type, id) not in self._deleted:
                    type.delete(id, ids)
                    self._deleted.add((record.type, id))
        with self._lock:
            self._state.resources = [
                other for other in self._state.resources if other is not record
            ]
        self._save()

    def _look(self, task: Task) -> str:
        """Return the id of the task's resource, or "". Raises ActuatorError for several."""
        if task.existing is not None:
            if id := task.existing(self._ids()):
                return id
            raise ConfigurationError(
                f"{task.name}: the existing {task.type} is not there; create it, or correct the "
                "configuration that names it"
            )
        ids = {*self._types[task.type].find(task.name, self._ids())}
        found = sorted(id for id in ids if (task.type, id) not in self._deleted)
        if len(found) > 1:
            raise ActuatorError(
                f"{task.name}: there is more than one {task.type}: {', '.join(found)}; find "
                "out which one is in use and delete the others",
                codes=[ErrorCode.ERR_INFRA_DEPENDENCIES],
            )
        return found[0] if found else ""

    def _ids(self) -> Ids:
        """Return the ids that tasks may use: without those of resources to be deleted."""
        return {name: id for name, id in self._state.ids.items() if name in self._wanted}

    def _record(self, task: Task, id: str, *, updated: bool = False) -> bool:
        """Record that the resource may exist, or its id; return whether it needs others now.

        Until it is updated, it may also need what it needed before.
        """
        with self._lock:
            record = self._state.get(task.name)
            if record is None:
                record = ResourceRecord(name=task.name, type=task.type)
                self._state.resources = [*self._state.resources, record]
            before = record.needs
            needs = [need for need in task.needs if need in self._wanted]
            record.id = id
            record.needs = needs if updated else [*dict.fromkeys((*before, *needs))]
            record.existing = task.existing is not None
            return not set(needs) <= set(before)

    def _save(self) -> None:
        with self._lock:
            self._state.write(self._obj)
            self._ctx.save(self._obj)


def _is_replaced(record: ResourceRecord, task: Task, id: str, ids: Ids) -> bool:
    """Whether the recorded resource, and all that need it, are deleted first.

    `id` is that of the task's resource, as it is found.
    """
    if record.type != task.type:
        return True
    if record.existing or task.existing is not None:
        return record.id != id or (record.existing and task.existing is None)
    return bool(id) and task.replace(id, ids)
