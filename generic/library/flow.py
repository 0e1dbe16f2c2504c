"""Flow: the external resources of one object, created and deleted as a graph of tasks.

An infrastructure actuator describes each resource as a `Task`: its type, how to find, create and
delete it, and the tasks that it needs. `Flow.create` and `Flow.delete` run the tasks in order, and
`FlowStatus` is what they keep in the providerStatus: all resources that may exist.

Guarantees, also for a process that is killed at any point:
- A resource is in the saved status before it is requested, and its id before the next request.
- Every task looks for its resource first, so that none is created twice.
- `external_resources` returns what exists, and at most one resource more: the one that is being
  created, identified by its tags, or deleted.

Not here: parallel tasks; a provider's requests.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

import attrs

from actuator.errors import ActuatorError, ErrorCode
from actuator.interface import Context, ExternalResource
from actuator.meta import DefaultStatus, KeepsUnknownFields, Object
from actuator.provider_status import write_status

Ids = Mapping[str, str]
"""The ids of the resources that exist, by the names of their tasks."""


@attrs.define(kw_only=True)
class ResourceRecord(KeepsUnknownFields):
    """One resource in the status; `id` is "" from before its creation until its id is known."""

    name: str
    type: str
    id: str = ""


@attrs.define(kw_only=True)
class FlowStatus(KeepsUnknownFields):
    """The part of a providerStatus that a flow keeps: all resources that may exist."""

    api_version: str = "actuator.extensions.gardener.cloud/v1alpha1"
    kind: str = "FlowStatus"
    resources: list[ResourceRecord] = attrs.field(factory=list)

    @property
    def ids(self) -> Ids:
        """The known ids."""
        return {record.name: record.id for record in self.resources if record.id}

    def external_resources(
        self, tags: Callable[[str], dict[str, str]], region: str = ""
    ) -> Iterator[ExternalResource]:
        """Yield all resources that may exist; `tags` returns the tags of a task's resource."""
        for one in self.resources:
            yield ExternalResource(type=one.type, id=one.id, tags=tags(one.name), region=region)


def _nothing(_id: str, _ids: Ids) -> None:
    """Update nothing."""


@attrs.frozen(kw_only=True)
class Task:
    """One resource; `name` is unique in its flow. Each function may raise ActuatorError."""

    name: str
    type: str
    """The provider's type, as in ExternalResource."""
    find: Callable[[], Sequence[str]]
    """Returns the ids of all existing resources of this task, by their tags: none or one, or more
    after a creation that was repeated."""
    create: Callable[[Ids], str]
    """Requests the resource, with tags, and returns its id."""
    delete: Callable[[str], None]
    """Deletes the resource with the id; a resource that does not exist is success."""
    update: Callable[[str, Ids], None] = _nothing
    """Changes the existing or new resource with the id until it is as requested."""
    needs: Sequence[str] = ()
    """The names of the tasks whose resources must exist first."""


class Flow:
    """The tasks of one object, ordered by their dependencies, otherwise as given."""

    def __init__(self, tasks: Iterable[Task]) -> None:
        """Raises ValueError for a repeated name, an unknown dependency and a cycle."""
        by_name: dict[str, Task] = {}
        for task in tasks:
            if by_name.setdefault(task.name, task) is not task:
                raise ValueError(f"two tasks have the name {task.name!r}")
        for task in by_name.values():
            for name in task.needs:
                if name not in by_name:
                    raise ValueError(f"task {task.name!r} needs {name!r}, which is no task")
        try:
            order = TopologicalSorter({name: task.needs for name, task in by_name.items()})
            self._tasks = [by_name[name] for name in order.static_order()]
        except CycleError as error:
            raise ValueError(f"tasks need each other: {' -> '.join(error.args[1])}") from error

    def create(self, ctx: Context, obj: Object, status: FlowStatus) -> None:
        """Create missing resources, update the others, and write `status` to the status of `obj`.

        Raises ActuatorError if a task has more than one resource. After an error the status has
        everything that may exist, too.
        """
        try:
            for task in self._tasks:
                id = _only(task, task.find())
                if not id:
                    _record(status, task)
                    write_status(_status_of(obj), status)
                    ctx.save(obj)
                    id = task.create(status.ids)
                _record(status, task, id)
                task.update(id, status.ids)
        finally:
            write_status(_status_of(obj), status)

    def delete(self, ctx: Context, obj: Object, status: FlowStatus) -> None:
        """Delete all resources, dependents first: known ids, and others that the tasks find.

        Each deleted resource is removed from `status`, and at last `status` from `obj`. Raises
        ActuatorError for a resource without a task, before anything is deleted.
        """
        names = {task.name for task in self._tasks}
        for record in status.resources:
            if record.name not in names:
                raise ActuatorError(
                    f"the status has a resource {record.name!r} ({record.type} {record.id}) that "
                    "this version of the extension does not know; use the version that created it"
                )
        for task in reversed(self._tasks):
            known = status.ids.get(task.name, "")
            for id in dict.fromkeys((known, *task.find())):
                if id:
                    task.delete(id)
            status.resources = [one for one in status.resources if one.name != task.name]
            write_status(_status_of(obj), status)
            if known:
                ctx.save(obj)
        kept = _status_of(obj)
        kept.provider_status = kept.state = None


def _status_of(obj: Object) -> DefaultStatus:
    """Return the status of `obj`. Raises TypeError for a kind without providerStatus."""
    status: object = getattr(obj, "status", None)
    if not isinstance(status, DefaultStatus):
        raise TypeError(f"{type(obj).__name__} has no providerStatus, so a flow cannot be used")
    return status


def _record(status: FlowStatus, task: Task, id: str = "") -> None:
    """Record that the resource of the task may exist, or its id."""
    for record in status.resources:
        if record.name == task.name:
            record.id = id
            return
    status.resources.append(ResourceRecord(name=task.name, type=task.type, id=id))


def _only(task: Task, found: Sequence[str]) -> str:
    """Return the only id found, or ""."""
    if len(found) > 1:
        raise ActuatorError(
            f"{task.name}: there is more than one {task.type}: {', '.join(sorted(found))}; find "
            "out which one is in use and delete the others",
            codes=[ErrorCode.ERR_INFRA_DEPENDENCIES],
        )
    return found[0] if found else ""
