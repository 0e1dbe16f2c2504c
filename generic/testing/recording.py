"""A Context and a Client for unit tests of an actuator: they record what it asked for.

RecordingContext is the framework's own Context. RecordingClient is not an API server: it has no
schemas, evaluates no patches, and no controllers run. For these use `generic.testing.fixtures`.
"""

import logging
from collections.abc import Iterable
from copy import deepcopy
from typing import Any

from actuator.codec import encode
from actuator.errors import NotFound
from actuator.interface import Client, Resource, SeedObjects, resource_of
from actuator.meta import Object, Raw
from generic.controller import logs
from generic.kube.clock import SystemClock
from generic.kube.headers import Request
from generic.reconciler.calls import Call, FencedClient
from generic.reconciler.operation import Operation
from generic.testing.garden import resource_of_manifest

__all__ = ["RecordingClient", "RecordingContext"]


class RecordingClient:
    """A Client with the given objects, to which requests add others."""

    def __init__(self, *objects: Object | Raw) -> None:
        self.steps: list[str] = []
        """The requests, such as `create configmaps shoot--a--b/one`."""
        self.bodies: dict[str, Any] = {}
        """The object or the patch of each request that has one; of equal requests, the last."""
        self._objects: dict[tuple[str, str, str], Raw] = {}
        for one in objects:
            if isinstance(one, Object):
                head = {"apiVersion": one.KIND.api_version, "kind": one.KIND.name}
                self._put(resource_of(one.KIND), encode(one) | head)
            else:
                self._put(resource_of_manifest(one), one)

    def get(self, resource: Resource, name: str, namespace: str = "") -> Raw:
        """See Client."""
        return self._found("get", resource, name, namespace)

    def list(
        self, resource: Resource, namespace: str = "", *, label_selector: str = ""
    ) -> list[Raw]:
        """See Client. Raises NotImplementedError for a selector other than `key=value,…`."""
        self.steps.append(f"list {resource} {namespace}".rstrip())
        wanted = [tuple(pair.split("=")) for pair in label_selector.split(",") if pair]
        if any(len(pair) != 2 or pair[0].endswith("!") for pair in wanted):
            given = f"list {resource}: RecordingClient cannot evaluate {label_selector!r}"
            raise NotImplementedError(f"{given}; select by key=value, or use the fixture seed")
        return [
            deepcopy(obj)
            for (plural, where, _), obj in self._objects.items()
            if (plural, namespace or where) == (str(resource), where)
            and {*wanted} <= {*(obj["metadata"].get("labels") or {}).items()}
        ]

    def create(self, resource: Resource, obj: Raw) -> Raw:
        """See Client; the object replaces an existing one."""
        return self._put(resource, obj, "create")

    def apply(self, resource: Resource, obj: Raw, **options: Any) -> Raw:
        """See Client; the object replaces an existing one."""
        return self._put(resource, obj, "apply")

    def patch(
        self, resource: Resource, name: str, namespace: str, patch: Any, **options: Any
    ) -> Raw:
        """Record the patch, and return the object as it was."""
        found = self._found("patch", resource, name, namespace)
        self.bodies[self.steps[-1]] = deepcopy(patch)
        return found

    def delete(self, resource: Resource, name: str, namespace: str = "", **options: Any) -> None:
        """See Client."""
        self._found("delete", resource, name, namespace)
        del self._objects[str(resource), namespace, name]

    def _found(self, verb: str, resource: Resource, name: str, namespace: str) -> Raw:
        self.steps.append(f"{verb} {resource} {namespace}/{name}".replace(" /", " "))
        found = self._objects.get((str(resource), namespace, name))
        if found is None:
            given = "if it has to exist, pass it to the recorder"
            raise NotFound(404, f"{self.steps[-1]}: not found; {given}")
        return deepcopy(found)

    def _put(self, resource: Resource, obj: Raw, verb: str = "") -> Raw:
        name, namespace = obj["metadata"]["name"], obj["metadata"].get("namespace", "")
        self._objects[str(resource), namespace, name] = deepcopy(obj)
        if verb:
            self._found(verb, resource, name, namespace)
            self.bodies[self.steps[-1]] = deepcopy(obj)
        return deepcopy(obj)


class RecordingContext(Call):
    """A Context whose client has the given objects. `cancel` ends it, as the framework does."""

    def __init__(
        self,
        *objects: Object | Raw,
        shoot: Client | None = None,
        garden: Client | None = None,
        seconds: float = 60.0,
    ) -> None:
        """`shoot` and `garden` are by default empty; `seconds` is the time until the deadline."""
        recorder = RecordingClient(*objects)
        self.steps = recorder.steps
        """Requests to the seed, saves, checks, events and deletions of seed objects, in order."""
        self.bodies = recorder.bodies
        self.saved: list[Any] = []
        """A copy of the object at each save."""
        clients = (recorder, shoot or RecordingClient(), garden or RecordingClient())
        services = _Services(self.steps, *clients)
        self.logs = services.lines
        super().__init__(Operation.RECONCILE, services, SystemClock(), lambda: None, seconds)

    def check(self) -> None:
        """See Context."""
        self.steps.append("check")
        super().check()

    def save(self, obj: Object) -> None:
        """See Context."""
        super().save(obj)
        self.saved.append(deepcopy(obj))


class _Services(logging.Handler):
    """The services of a RecordingContext, and the handler of its log."""

    def __init__(self, steps: list[str], client: Client, shoot: Client, garden: Client) -> None:
        super().__init__()
        self._steps, self.client, self._shoot, self._garden = steps, client, shoot, garden
        self.lines: list[str] = []
        logger = logging.Logger("actuator")  # noqa: LOG001 - of this context alone
        logger.addHandler(self)
        self.log = logs.bind(logger)
        self.formatter = logs.TextFormatter(tracebacks=False, colour=False)

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record).partition(" ")[2])  # without the time

    def event(self, reason: str, message: str, *, warning: bool) -> None:
        self._steps.append(f"{'warning' if warning else 'event'} {reason}: {message}")

    def save(self) -> None:
        self._steps.append("save")

    def secret(self, call: Call, secret: Request) -> Raw:
        return self.client.get(Resource("v1", "secrets"), secret.name, secret.namespace)

    def shoot(self, call: Call) -> Client:
        return FencedClient(self._shoot, call.permit)

    def garden(self, call: Call) -> Client:
        return FencedClient(self._garden, call.permit)

    def delete_seed_objects(self, call: Call, groups: Iterable[SeedObjects]) -> None:
        self._steps.extend(f"delete seed objects {group.resource}" for group in groups)
